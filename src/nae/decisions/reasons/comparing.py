"""Compare rows with a reference: how much more each feature counts for an outcome.

Every row has a way: what a contribution to each output counts, in the unit of the differences. In the unit of the score
it is the direction of the outcome. In the unit of the prediction it also has the mean slope of the prediction on the
straight way from the reference to the row. All tests of the order keep the way.

Shapes: B rows, F features, O outputs.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from nae._typing import Array, IntArray
from nae.contributions import Contributions
from nae.decisions.outcomes import Outcome
from nae.decisions.reasons.references import Reference
from nae.encoding.cells import Cells
from nae.explanation.own import own_effects
from nae.explanation.reference import require_statistics
from nae.tables.model import TableModel

__all__ = ["Compared"]


@dataclass(frozen=True, eq=False)
class Compared:
    """A few rows, compared with a reference."""

    model: TableModel
    cells: Cells
    reference: Reference
    contributions: Contributions
    start: Array  # (B, O), the scores of the reference, with the offset of each row
    end: Array  # (B, O), the scores of the rows
    way: Array  # (B, O)

    @classmethod
    def of(
        cls, model: TableModel, cells: Cells, *, reference: Reference, outcome: Outcome, offset: Array, unit: str
    ) -> Self:
        """Return rows with a way in the unit of the score, or of the prediction."""
        found = model.contributions(cells)
        base = model.intercept + offset
        start, end = base + reference.values.sum(axis=0), base + _apart(found.values, model).sum(axis=1)
        way = np.broadcast_to(outcome.direction, start.shape)
        if unit != "score":
            way = np.einsum("p,bpo->bo", outcome.share, model.link.mean_slope(start, end))
        return cls(model, cells, reference, found, start, end, way)

    def take(self, rows: IntArray) -> "Compared":
        """Return some of the rows."""
        found = self.contributions
        part = replace(found, values=found.values[rows], lower=found.lower[rows], upper=found.upper[rows])
        cells, ends = self.cells.take(rows), (self.start[rows], self.end[rows])
        return Compared(self.model, cells, self.reference, part, *ends, self.way[rows])

    @property
    def values(self) -> Array:
        """The contributions, (B, F, O)."""
        return _apart(self.contributions.values, self.model)

    @cached_property
    def differences(self) -> Array:
        """How much more every feature counts for the outcome than in the reference, (B, F)."""
        return self.counted(self.values)

    @property
    def own(self) -> Array:
        """The part of the differences that is due to the own value of a feature, (B, F)."""
        own = own_effects(self.model, self.cells, self.values, require_statistics(self.model).mean)
        return self._along(own - self.reference.own)

    def counted(self, values: Array) -> Array:
        """Return what contributions (B, F, O) count more than those of the reference, (B, F)."""
        return self._along(values - self.reference.values)

    def of_members(self, members: Array) -> Array:
        """Return the same for every member, given their contributions (B, F, O, member): (member, B, F)."""
        return np.asarray(np.einsum("bfom,bo->mbf", members - self.reference.members, self.way))

    def between(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Return the least and the most that contributions between bounds (B, F, O) can count more, (B, F) each."""
        low, high = lower - self.reference.values, upper - self.reference.values
        rising, falling = np.maximum(self.way, 0.0), np.minimum(self.way, 0.0)
        least = np.einsum("bfo,bo->bf", low, rising) + np.einsum("bfo,bo->bf", high, falling)
        most = np.einsum("bfo,bo->bf", high, rising) + np.einsum("bfo,bo->bf", low, falling)
        return least, most

    def in_any_context(self) -> tuple[Array, Array]:
        """Return the least and the most that features can count more if the others have any values, (B, F) each."""
        lower, upper = (_apart(end, self.model) for end in (self.contributions.lower, self.contributions.upper))
        return self.between(lower, upper)

    def _along(self, values: Array) -> Array:
        return np.asarray(np.einsum("bfo,bo->bf", values, self.way))


def _apart(values: Array, model: TableModel) -> Array:
    return values.reshape(*values.shape[:2], model.n_outputs)
