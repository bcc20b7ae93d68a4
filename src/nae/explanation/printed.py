"""Explanations as printed tables, by the function that every result shares."""

from nae._printed import MOST_LINES, digest

__all__ = ["MOST_LINES", "digest"]
