"""How far a curve rises above its chords: the straight lines between two of its points.

The highest point above any chord is where the curve is farthest above its lower envelope, the largest convex function
that nowhere exceeds it. A convex curve is its own envelope.
"""

from typing import NamedTuple

import numpy as np

from nae._typing import Array

__all__ = ["Rise", "above_chords", "places_of"]


class Rise(NamedTuple):
    """The point of a curve that is farthest above a chord, and the ends of the chord: positions among the points."""

    gap: float  # 0 for a convex curve
    left: int
    middle: int
    right: int


def above_chords(places: Array, values: Array) -> Rise:
    """Return where a curve through points is farthest above a chord; ``places`` ascend."""
    ends: list[int] = []  # of the envelope's straight parts
    for new in range(len(places)):
        while len(ends) > 1 and _is_above(places, values, ends[-2], ends[-1], new):
            ends.pop()
        ends.append(new)
    gaps = values - np.interp(places, places[ends], values[ends])
    middle = int(gaps.argmax())
    right = int(np.searchsorted(ends, middle))
    return Rise(max(float(gaps[middle]), 0.0), ends[max(right - 1, 0)], middle, ends[right])


def _is_above(places: Array, values: Array, left: int, middle: int, right: int) -> bool:
    """Return whether a point lies on or above the chord between two others."""
    before, after = places[middle] - places[left], places[right] - places[middle]
    return bool((values[middle] - values[left]) * after >= (values[right] - values[middle]) * before)


def places_of(knots: Array) -> Array:
    """Return knots on a scale from 0 to 1. Straight lines remain straight."""
    with np.errstate(over="ignore"):
        span = knots[-1] - knots[0]
    if not np.isfinite(span):
        return places_of(knots / 2)
    return np.asarray((knots - knots[0]) / span) if span > 0 else np.zeros(len(knots))
