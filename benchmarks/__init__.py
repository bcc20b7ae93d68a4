"""Measurements on real tables. They are not part of the package."""
