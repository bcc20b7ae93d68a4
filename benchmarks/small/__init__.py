"""Measure how good the defaults are on small tables."""
