"""Measurements on real tables; not part of the package."""
