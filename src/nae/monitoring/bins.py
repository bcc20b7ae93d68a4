"""Bins of a feature's values, as its distribution is compared: few enough for the number of rows."""

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding.schema import Category, Feature

__all__ = ["bins_of", "counts_in"]

_MOST_BINS = 10  # of a number
_MOST_LEVELS = 20  # of a category
_ROWS = 10  # new rows per bin, at least


def bins_of(feature: Feature, weight: Array, n_rows: float) -> IntArray:
    """Return the bin of every value of a feature, given the values' training weight and the number of new rows.

    Neighbouring values of a number share bins of about equal weight. The most frequent levels of a category have a bin
    each, and the others share one.
    """
    if isinstance(feature, Category) and not feature.is_ordered:
        return _of_levels(weight, _within(n_rows, _MOST_LEVELS))
    total = weight.sum()
    middle = (np.cumsum(weight) - weight / 2) / (total if total > 0 else 1.0)
    n_bins = _within(n_rows, _MOST_BINS)
    place = np.minimum((middle * n_bins).astype(np.int64), n_bins - 1)
    return np.unique(place, return_inverse=True)[1]


def counts_in(bins: IntArray, weight: Array, n_rows: float) -> Array:
    """Return the number of rows in every bin, where the weights of the values stand for ``n_rows`` rows."""
    total = weight.sum()
    scale = n_rows / total if total > 0 else 0.0
    return np.bincount(bins, weight * scale, minlength=int(bins.max()) + 1).astype(np.float64)


def _of_levels(weight: Array, n_bins: int) -> IntArray:
    rank = np.empty(len(weight), dtype=np.int64)
    rank[np.argsort(-weight, kind="stable")] = np.arange(len(weight))
    return np.minimum(rank, n_bins - 1)


def _within(n_rows: float, most: int) -> int:
    return max(2, min(most, int(n_rows / _ROWS)))
