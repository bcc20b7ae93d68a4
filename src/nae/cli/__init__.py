"""The command ``nae``: one file per command, and what they share."""
