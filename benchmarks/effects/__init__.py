"""Measure how often the bands of effects hold the truth, and how often noise is taken for more."""
