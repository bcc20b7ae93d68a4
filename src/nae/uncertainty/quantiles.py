"""The distribution of residuals as a bounded number of quantiles, and what is read off it."""

import numpy as np

from nae._typing import Array
from nae._words import counted
from nae.errors import DataError

__all__ = ["LEAST_ROWS", "Tails", "quantile_points"]

LEAST_ROWS = 39  # so that beyond each end of an interval of 95 % lies a row
_MOST_POINTS = 999


def quantile_points(values: Array, weight: Array) -> Array:
    """Return quantiles of values (row, output) at equally spaced levels, (point, output).

    There are at most 999 points, and at most half as many as rows, but at least 39. Every point is the value of a row:
    that whose rank among n rows is ``level * (n + 1)``, rounded up above the median and down below it, as the guarantee
    of split conformal prediction asks for.
    """
    n_rows = int(np.count_nonzero(weight))
    if n_rows < LEAST_ROWS:
        raise DataError(f"Intervals need residuals of at least {LEAST_ROWS} rows; got {n_rows}. Pass more rows.")
    n_points = min(_MOST_POINTS, max(LEAST_ROWS, n_rows // 2))
    levels = np.arange(1, n_points + 1) / (n_points + 1)
    is_low = levels < 0.5
    below = [-_ranked(-column, weight, 1 - levels[is_low]) for column in values.T]
    above = [_ranked(column, weight, levels[~is_low]) for column in values.T]
    return np.stack([np.concatenate(parts) for parts in zip(below, above, strict=True)], axis=1)


def _ranked(values: Array, weight: Array, levels: Array) -> Array:
    """Return the smallest values with at least so much of the weight at or below them."""
    kept = np.flatnonzero(weight > 0)
    order = kept[np.argsort(values[kept], kind="stable")]
    mass = np.cumsum(weight[order])
    wanted = levels * mass[-1] * (1 + 1 / len(order))
    return np.asarray(values[order[np.searchsorted(mass, wanted * (1 - 1e-12)).clip(0, len(order) - 1)]])


class Tails:
    """Quantiles of residuals at any level."""

    def __init__(self, points: Array, *, is_outward: bool) -> None:
        self.points, self.is_outward = points, is_outward

    @property
    def most(self) -> float:
        """The largest level."""
        return len(self.points) / (len(self.points) + 1)

    def upper(self, level: float) -> Array:
        """Return the quantiles at a level, (output,); rounded up to the next point if points are outward."""
        place = level * (len(self.points) + 1) - 1
        if self.is_outward:
            place = np.ceil(place - 1e-9)
        return self._at(place)

    def lower(self, level: float) -> Array:
        """Return the quantiles at a level, (output,); rounded down to a point if points are outward."""
        place = level * (len(self.points) + 1) - 1
        if self.is_outward:
            place = np.floor(place + 1e-9)
        return self._at(place)

    def check(self, level: float, coverage: float) -> None:
        """Raise an error if the points do not reach as far as a coverage asks."""
        if level > self.most + 1e-9:
            most = coverage - 2 * (level - self.most)
            raise DataError(
                f"coverage must be at most {max(most, 0.0):.3g}, since {counted(len(self.points), 'quantile')} of "
                f"residuals are known; got {coverage:g}. Pass more rows as calibrate_on=(X, y)."
            )

    def _at(self, place: float) -> Array:
        place = min(max(place, 0.0), len(self.points) - 1.0)
        low = int(np.floor(place))
        share = place - low
        high = min(low + 1, len(self.points) - 1)
        return np.asarray(self.points[low] * (1 - share) + self.points[high] * share)
