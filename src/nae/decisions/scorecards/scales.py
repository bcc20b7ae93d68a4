"""Scales: from an effect on the score to what a table shows, points or factors, and back."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nae._typing import Array

__all__ = ["FactorScale", "PointScale", "Scale"]

_BASE_DIGITS = 6  # significant digits of the base of factors, which may be a small rate


class Scale(Protocol):
    """A rising map from effects on the score to rounded numbers."""

    def shown(self, effects: Array) -> Array:
        """Return the rounded numbers of effects."""

    def effects(self, shown: Array) -> Array:
        """Return the effects that rounded numbers stand for."""

    def base(self, start: float) -> float:
        """Return the number of the base, given the score of a row in the reference bins."""

    def outward(self, lower: float, upper: float) -> tuple[float, float]:
        """Return a range of effects in this scale, rounded so that it holds."""


@dataclass(frozen=True)
class PointScale:
    """Points: the effect times a number, rounded to ``decimals``."""

    per_unit: float
    decimals: int = 0

    def shown(self, effects: Array) -> Array:
        return np.asarray(np.round(self.per_unit * effects, self.decimals) + 0.0)  # no minus sign before a zero

    def effects(self, shown: Array) -> Array:
        return shown / self.per_unit

    def base(self, start: float) -> float:
        return float(self.shown(np.array(start)))

    def outward(self, lower: float, upper: float) -> tuple[float, float]:
        return _outward(self.per_unit * lower, self.per_unit * upper, self.decimals)


@dataclass(frozen=True)
class FactorScale:
    """Factors: the exponential of the effect, rounded to ``decimals``, and never zero."""

    decimals: int = 3

    def shown(self, effects: Array) -> Array:
        return np.maximum(np.round(np.exp(effects), self.decimals), 10.0**-self.decimals)

    def effects(self, shown: Array) -> Array:
        return np.log(shown)

    def base(self, start: float) -> float:
        return float(f"{np.exp(start):.{_BASE_DIGITS}g}")

    def outward(self, lower: float, upper: float) -> tuple[float, float]:
        return _outward(float(np.exp(lower)), float(np.exp(upper)), self.decimals)


def _outward(lower: float, upper: float, decimals: int) -> tuple[float, float]:
    """Return a range with one decimal more than its numbers have."""
    step = 10.0 ** (decimals + 1)
    low, high = np.floor(lower * step), np.ceil(upper * step)
    return float(low / step) + 0.0, float(high / step) + 0.0
