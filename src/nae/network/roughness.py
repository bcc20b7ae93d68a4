"""Roughness: how far a curve is from straight lines between its neighbouring knots, as weights for a penalty.

With the values y of an expert, or of a gate term, on the ordered slots of a feature, the residual of an inner slot s is
its distance from the line between its neighbours,

    r_s = y_s - left_s y_(s-1) - (1 - left_s) y_(s+1),

with ``left`` from the places of the three knots: straight lines have none, whatever the distances of the knots. The
penalty is the sum of ``weight_s`` r_s^2, and n^3 in the weight makes it about a quarter of the integral of the squared
second derivative, so that it hardly depends on the number of knots n.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from nae._typing import Array, IntArray

__all__ = ["Roughness"]

_UNIT = 1e-5  # a smoothness of 1 hardly changes a curve that bends a few times, and removes steps between knots


@dataclass(frozen=True, eq=False)
class Roughness:
    """Weights of the residuals of all slots, zero where there is none."""

    left: Array  # (F, S)
    weight: Array  # (F, S)

    @property
    def arrays(self) -> tuple[Array, Array]:
        return self.left, self.weight

    @classmethod
    def of(cls, smoothness: Array, places: Array, n_ordered: IntArray) -> Self:
        """Return the weights for the smoothness of every feature, (F,), and the places of its ordered slots."""
        left, weight = np.zeros_like(places), np.zeros_like(places)
        for i, (strength, n) in enumerate(zip(smoothness, n_ordered, strict=True)):
            if strength == 0 or n < 3:
                continue
            own = places[i, :n]
            left[i, 1 : n - 1] = (own[2:] - own[1:-1]) / (own[2:] - own[:-2])
            weight[i, 1 : n - 1] = _UNIT * strength * float(n) ** 3
        return cls(left, weight)
