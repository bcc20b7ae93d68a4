"""Layouts drawn with matplotlib: for papers and print."""
