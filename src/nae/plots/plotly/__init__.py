"""Layouts drawn with plotly: for notebooks and pages, with values on hover."""
