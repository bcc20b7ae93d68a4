"""Isotonic curves: the nearest ones that never fall."""

import numpy as np

from nae._typing import Array

__all__ = ["isotonic"]

_MOST = 4_000_000  # numbers that are compared at once


def isotonic(values: Array, weight: Array) -> Array:
    """Return the values (n, ...) that never fall along the first axis and are nearest to the given ones.

    Distances are squared and weighted (n,). The value at t is the largest over i <= t of the smallest over j >= t of
    the means from i to j. Computed this way, values never fall in floating point, either.
    """
    n, flat = len(values), values.reshape(len(values), -1)
    mass = np.append(0.0, np.cumsum(weight))
    below = np.tri(n, k=-1, dtype=bool)  # j < i
    total = np.where(below, 1.0, mass[None, 1:] - mass[:-1, None])
    out = np.empty_like(flat)
    step = max(1, _MOST // n**2)
    for start in range(0, flat.shape[1], step):
        columns = slice(start, start + step)
        centre = flat[:, columns].mean(axis=0)
        sums = np.cumsum(weight[:, None] * (flat[:, columns] - centre), axis=0)
        sums = np.concatenate([np.zeros_like(sums[:1]), sums])
        means = (sums[None, 1:] - sums[:-1, None]) / total[..., None]  # (i, j, column)
        means[below] = np.inf
        least = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
        least[below] = -np.inf
        is_done = (np.diff(flat[:, columns], axis=0) >= 0).all(axis=0)
        out[:, columns] = np.where(is_done, flat[:, columns], least.max(axis=0) + centre)
    return out.reshape(values.shape)
