"""Ranks: the share of the training rows below a value, from the statistics that a model stores."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from nae._typing import Array
from nae.tables.model import TableModel

__all__ = ["Ranks", "shares"]


@dataclass(frozen=True, eq=False)
class Ranks:
    """The ranks of a number at its knots; linear in between. Half of the rows at a value count as below it."""

    at_knots: Array  # (knot,), from 0 to 1

    @classmethod
    def of(cls, model: TableModel, feature: int) -> Self:
        """Return the ranks of a number."""
        own = shares(model, feature)[: model.schema.features[feature].n_values]
        total = own.sum()
        own = own / total if total > 0 else np.full(len(own), 1 / max(len(own), 1))
        return cls(np.cumsum(own) - own / 2)

    def place(self, rank: float) -> float:
        """Return where a rank lies, counted in knots."""
        return float(np.interp(rank, self.at_knots, np.arange(len(self.at_knots))))


def shares(model: TableModel, feature: int) -> Array:
    """Return the share of the training rows at each slot of a feature; equal shares without statistics."""
    n = model.schema.features[feature].n_slots
    if model.statistics is None:
        return np.full(n, 1 / max(n - 2, 1))
    weight = model.statistics.weight[model.schema.slots(feature)].astype(np.float64)
    total = float(weight.sum())
    return weight / total if total > 0 else np.full(n, 1 / max(n - 2, 1))
