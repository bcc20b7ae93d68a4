"""Promises, measured against attacks and against other models."""
