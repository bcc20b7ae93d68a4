"""Resamples of rows, and the intervals that they give."""

from collections.abc import Iterator

import numpy as np

from nae._typing import Array

__all__ = ["Interval", "interval_of", "resamples"]

Interval = tuple[float, float]

_COVERAGE = 95.0  # percent of the resamples that lie in an interval


def resamples(weight: Array, *, n_resamples: int, seed: int) -> Iterator[Array]:
    """Yield the weights of the rows in every resample: each weight times the number of times the row was drawn."""
    random, n_rows = np.random.default_rng(seed), len(weight)
    for _ in range(n_resamples):
        yield weight * np.bincount(random.integers(n_rows, size=n_rows), minlength=n_rows)


def interval_of(values: Array) -> Interval | None:
    """Return the range of 95 % of the values of a statistic over the resamples; None if it is never defined."""
    kept = values[np.isfinite(values)]
    if len(kept) == 0:
        return None
    low, high = np.percentile(kept, ((100 - _COVERAGE) / 2, (100 + _COVERAGE) / 2))
    return float(low), float(high)
