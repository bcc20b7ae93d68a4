"""Whether two outputs of a model can cross: the least difference of their scores, and the search for a row below it.

The outputs share the weights r_j, so c_j differs by sum_k r_jk d_jk, where d_jk is the difference of the two outputs'
experts: a mean of these differences, no less than the least of them. It is linear between two knots, so the least one
is found at a slot. Clamps keep this: where experts, L and U of one output are all at least d above those of the other,
so are the clipped contributions.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from nae._typing import Array, IntArray
from nae.certificates.attacks import drawn_rows, most_rows
from nae.certificates.clamped import tables_of
from nae.certificates.proofs import TOLERANCE, Tables
from nae.certificates.slots import SlotRows, contributions
from nae.tables.model import TableModel

__all__ = ["Crossing", "Neighbours"]


@dataclass(frozen=True, eq=False)
class Crossing:
    """A row as slots, and by how much the lower output's score is above that of the upper one."""

    row: IntArray
    gap: float


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Two outputs, of which the upper one should never be below the lower one."""

    lower: Tables
    upper: Tables
    apart: Tables  # for the difference of the scores

    @classmethod
    def of(cls, model: TableModel, lower: int) -> Self:
        """Return an output and the one after it."""
        unit = np.eye(model.n_outputs)
        directions = (unit[lower], unit[lower + 1], unit[lower + 1] - unit[lower])
        return cls(*(tables_of(model, direction) for direction in directions))

    @property
    def tolerance(self) -> float:
        """The largest crossing that counts as none."""
        return TOLERANCE * max(self.lower.spread, self.upper.spread)

    @property
    def rounding(self) -> float:
        """The most by which rounding changes the difference of the computed scores."""
        return self.lower.rounding + self.upper.rounding

    @cached_property
    def least(self) -> Array:
        """The least difference of the contributions at every slot, (T,)."""
        model = self.apart.model
        least = model.routing.bounds(self.apart.experts, axis=1)[0].mean(axis=-1)
        if model.clamps is None:
            return np.asarray(least)
        ends = [array @ self.apart.direction for array in (model.clamps.lower, model.clamps.upper)]
        return np.asarray(np.minimum.reduce([least, *ends]))

    @property
    def offset(self) -> float:
        """The difference of the intercepts."""
        return float(self.apart.model.intercept @ self.apart.direction)

    def crossing(self) -> float:
        """Return the most by which the lower output can be above the upper one; negative if they stay apart."""
        return -self.offset - sum(float(self.least[own].min()) for own in self.apart.reachable)

    def find(self, *, seed: int = 0) -> Crossing:
        """Return the largest crossing that a search finds."""
        random, tables = np.random.default_rng(seed), self.apart
        worst = np.array([own[self.least[own].argmin()] for own in tables.reachable])
        rows = np.concatenate([worst[None], drawn_rows(tables, random, 1)])
        best = rows[contributions(tables, rows).sum(axis=1).argmin()]
        return self._climb(best, random.permutation(tables.model.n_features), most_rows(tables))

    def _climb(self, row: IntArray, order: IntArray, n_rows: int) -> Crossing:
        scorer = SlotRows.of(self.apart, np.arange(self.apart.model.n_features))
        hidden = scorer.hidden(row[None])
        best, n_left = np.inf, n_rows
        while n_left > 0:
            before = best
            for i in order:
                rows, moved = scorer.moved(row, hidden[0], int(i), self.apart.reachable[i])
                score = scorer.contributions(rows, moved).sum(axis=1)
                at = int(score.argmin())
                best, row, hidden = float(score[at]), rows[at], moved[[at]]
                n_left -= len(rows)
                if n_left <= 0:
                    break
            if best >= before:
                break
        return Crossing(row, -best - self.offset)
