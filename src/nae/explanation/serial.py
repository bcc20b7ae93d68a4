"""Explanations as JSON and data frames, by the functions that every result shares."""

from nae._serial import FORMAT, Column, Serial, make_frame

__all__ = ["FORMAT", "Column", "Serial", "make_frame"]
