"""The command ``nae``: one file per command, and files that several commands share."""
