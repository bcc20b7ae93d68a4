"""Explanations as data: read off the tables, exact, frozen, JSON in and out."""
