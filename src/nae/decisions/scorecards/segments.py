"""Piecewise constant fits: the best one with a bounded number of steps, and the best monotone curve."""

import numpy as np

from nae._typing import Array, IntArray

__all__ = ["best_steps", "direction_of", "in_order"]


def best_steps(values: Array, weights: Array, limit: int) -> IntArray:
    """Return where each step of the best piecewise constant fit starts, with at most ``limit`` steps.

    The fit minimises the weighted sum of squared differences, by dynamic programming over all ways to cut. A step that
    would not lower this sum is left out.

    Examples
    --------
    >>> best_steps(np.array([0.0, 0.1, 3.0, 3.1, 9.0]), np.ones(5), 3)
    array([0, 2, 4])
    """
    loss = _losses(values, weights)
    enough = 1e-12 * loss[0, -1]
    best = loss[0]
    cuts: list[IntArray] = []
    while len(cuts) + 1 < limit and best[-1] > enough:
        total = best[:, None] + loss
        cuts.append(total.argmin(axis=0))
        best = total.min(axis=0)
    starts = [len(values)]
    for cut in reversed(cuts):
        starts.append(int(cut[starts[-1]]))
    return np.unique([0, *starts[1:]])


def _losses(values: Array, weights: Array) -> Array:
    """Return the loss of one step from ``i`` to before ``j``, (value + 1, value + 1); infinite where it is empty."""
    centred = values - np.average(values, weights=weights)
    count, first, second = (
        np.concatenate([[0.0], np.cumsum(weights * power)]) for power in (np.ones_like(centred), centred, centred**2)
    )
    size, total, square = (sums - sums[:, None] for sums in (count, first, second))
    found = np.full(size.shape, np.inf)
    np.subtract(square, np.divide(total**2, size, where=size > 0, out=np.zeros_like(size)), out=found, where=size > 0)
    return np.maximum(found, 0.0)


def direction_of(values: Array, weights: Array) -> int:
    """Return 1 or -1 if the values with a weight rise or fall throughout, else 0."""
    steps = np.diff(values[weights > 0])
    return int(np.all(steps >= 0)) - int(np.all(steps <= 0))


def in_order(values: Array, weights: Array, direction: int) -> Array:
    """Return the closest curve in weighted least squares that never falls (1) or never rises (-1).

    Neighbours that stand in the wrong order are pooled until none does. Cutting the result into the best steps gives
    the best monotone piecewise constant fit.

    Examples
    --------
    >>> in_order(np.array([1.0, 3.0, 2.0]), np.ones(3), 1)
    array([1. , 2.5, 2.5])
    """
    means: list[float] = []
    sizes: list[float] = []
    counts: list[int] = []
    for value, weight in zip(direction * values, weights, strict=True):
        mean, size, count = float(value), float(weight), 1
        while means and means[-1] >= mean:
            mean = (means[-1] * sizes[-1] + mean * size) / (sizes[-1] + size)
            size, count = size + sizes.pop(), count + counts.pop()
            means.pop()
        means.append(mean)
        sizes.append(size)
        counts.append(count)
    return np.asarray(direction * np.repeat(means, counts))
