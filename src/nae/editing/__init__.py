"""Editing a finished model, with proofs and a record: who changed what, when and why, and what it cost."""

from nae.editing.editor import Editor, edit
from nae.editing.record import Edit, history

__all__ = ["Edit", "Editor", "edit", "history"]
