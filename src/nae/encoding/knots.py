"""Place the knots of a number: at every distinct value if there are few, else at quantiles of capped weights."""

import numpy as np

from nae._typing import Array

__all__ = ["place_knots"]


def place_knots(values: Array, weights: Array, limit: int) -> Array:
    """Return at most ``limit`` knots among the distinct ``values``, ascending.

    A value that fills much of the column, such as zero, would use up many quantiles and leave few knots for the other
    values. Therefore the weight of each value is capped at ``1 / limit`` of the total before the quantiles are taken.

    Examples
    --------
    >>> place_knots(np.array([3.0, 1.0, 1.0]), np.ones(3), limit=8)
    array([1., 3.])
    """
    distinct, inverse = np.unique(values, return_inverse=True)
    if len(distinct) <= limit:
        return distinct
    counts = np.bincount(inverse, weights=weights)
    mass = np.cumsum(np.minimum(counts, counts.sum() / limit))
    if not mass[-1] > mass[0]:  # one weight is so large that the others vanish by rounding
        mass = np.arange(len(distinct), dtype=np.float64)
    mass = (mass - mass[0]) / (mass[-1] - mass[0])
    chosen = np.searchsorted(mass, np.linspace(0.0, 1.0, limit))
    chosen[0], chosen[-1] = 0, len(distinct) - 1  # keeps both ends of the range despite rounding
    return distinct[np.unique(chosen)]
