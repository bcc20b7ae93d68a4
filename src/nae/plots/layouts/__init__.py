"""Layouts: all numbers that a picture shows, without graphics. Both backends draw them, and tests examine them."""
