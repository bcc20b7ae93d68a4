"""How weights are drawn at the start."""

import numpy as np

from nae._typing import Array

__all__ = ["Random", "normal", "uniform"]

Random = np.random.Generator


def uniform(random: Random, *shape: int, bound: float) -> Array:
    """Return numbers drawn uniformly from [-bound, bound)."""
    return random.uniform(-bound, bound, shape)


def normal(random: Random, *shape: int, deviation: float) -> Array:
    """Return numbers from a normal distribution around zero."""
    return deviation * random.standard_normal(shape)
