"""Layouts: every number a picture shows, and no graphics; both backends draw these, tests examine them."""
