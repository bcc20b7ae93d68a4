"""Moves: which values a feature may take instead of its own, and what each of them costs.

The cost of a number is its weight times the share of the training rows that lie between the old and the new value. It
is linear between two vertices. A level costs its weight, or what is given for it.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from nae._typing import Array
from nae.decisions.recourse.asked import Asked
from nae.decisions.recourse.ranks import Ranks
from nae.decisions.recourse.support import supported
from nae.encoding.cells import Cells
from nae.encoding.schema import Category
from nae.ranges import Domain
from nae.tables.model import TableModel

__all__ = ["Moves"]


@dataclass(frozen=True, eq=False)
class Moves:
    """The values that the features of one row may take."""

    domains: tuple[Domain, ...]  # of the features that may change
    position: Array  # (slot,), linear between slots
    here: Array  # (feature,), the position of the row
    per_change: float

    @classmethod
    def of(cls, model: TableModel, row: Cells, asked: Asked) -> Self:
        """Return what the features of a row may become."""
        position, here = np.zeros(model.schema.n_slots), np.zeros(model.n_features)
        domains = []
        for i in range(model.n_features):
            if i in asked.fixed:
                continue
            position[model.schema.slots(i)], here[i] = _prices(model, i, row, asked)
            domain = supported(model, i, row, asked)
            if domain is not None:
                domains.append(domain)
        return cls(tuple(domains), position, here, asked.per_change)

    def costs(self, domain: Domain) -> Array:
        """Return what every vertex of a domain costs, (V,)."""
        return np.asarray(np.abs(domain.read(self.position) - self.here[domain.feature]) + self.per_change)


def _prices(model: TableModel, i: int, row: Cells, asked: Asked) -> tuple[Array, float]:
    """Return the position of every slot of a feature, and that of the row; their distance is what a change costs."""
    kind, weight, first = model.schema.features[i], asked.weight[i], int(model.schema.offsets[i])
    slot = int(row.slot[0, i]) - first
    prices = np.full(kind.n_slots, weight)
    for level, price in asked.levels.get(i, {}).items():
        prices[level] = price
    if isinstance(kind, Category) or slot >= kind.n_values:
        return prices, 0.0
    ranks = weight * Ranks.of(model, i).at_knots
    here = float(np.interp(slot + row.fraction[0, i], np.arange(kind.n_values), ranks))
    return np.concatenate([ranks, prices[kind.n_values :] + here]), here
