"""Values of features: the value on a slot, values near a number that are easy to read, and columns of one value."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from nae._typing import AnyArray
from nae.encoding.columns import category_keys, is_missing
from nae.encoding.schema import Category, Feature

__all__ = ["column_of", "is_rounded", "readable", "value_at", "value_of"]

_FINEST = 1e-6  # of a change; values are not rounded to finer steps
_STEPS = (1.0, 0.5, 0.2)


def value_at(kind: Feature, slot: int, fraction: float) -> Any:
    """Return the value on a slot of a feature, or between it and the next one; None is a missing value."""
    if slot >= kind.n_values:
        return None
    if isinstance(kind, Category):
        return kind.levels[slot]
    value = float(kind.knots[slot])
    if fraction:
        value = value * (1 - fraction) + float(kind.knots[slot + 1]) * fraction
    if kind.is_boolean:
        return bool(value)
    return round(value) if kind.integral and abs(value - round(value)) < 1e-6 else value


def value_of(kind: Feature, column: AnyArray) -> Any:
    """Return the first value of a column; None is a missing value."""
    if is_missing(column)[0]:
        return None
    if isinstance(kind, Category):
        return category_keys(column)[0]
    value = float(column[0])
    if kind.is_boolean:
        return bool(value)
    return int(value) if kind.integral and value.is_integer() else value


def column_of(kind: Feature, value: Any) -> AnyArray:
    """Return a column of one value."""
    if isinstance(kind, Category):
        return np.array([value], dtype=object)
    return np.array([math.nan if value is None else float(value)])


def is_rounded(kind: Feature, value: Any) -> bool:
    """Return whether a value is one of a few already: a level, a truth value, missing."""
    return isinstance(kind, Category) or kind.is_boolean or value is None


def readable(value: float, old: float | None, *, is_whole: bool) -> Iterator[float]:
    """Yield values near a number: multiples of coarse steps first, those away from the old value before the others."""
    base = value - old if old is not None and math.isfinite(old) else value
    size = max(abs(base), 1e-300)
    exponent = math.floor(math.log10(max(abs(value), size)))
    while True:
        for part in _STEPS:
            step = part * 10.0**exponent
            if step < (1 if is_whole else _FINEST * size):
                return
            down, up = (_multiple(way(value / step), step, exponent) for way in (math.floor, math.ceil))
            yield from dict.fromkeys((up, down) if base > 0 else (down, up))
        exponent -= 1


def _multiple(n: int, step: float, exponent: int) -> float:
    return round(n * step, max(0, 1 - exponent))
