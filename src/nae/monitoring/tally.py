"""Sums over new rows, from which drift is judged: a bounded amount of memory for any number of rows."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeGuard

import numpy as np

from nae._typing import Array
from nae.encoding.cells import Cells
from nae.encoding.columns import Columns, numbers
from nae.encoding.schema import Feature, Number
from nae.explanation.own import own_effects
from nae.explanation.reference import require_statistics
from nae.tables.model import TableModel
from nae.tables.statistics import Statistics, slot_weights

__all__ = ["Tally", "has_range"]


@dataclass(eq=False)
class Tally:
    """Sums over the rows that were added.

    Attributes
    ----------
    model
        A model with statistics.
    """

    model: TableModel
    n_rows: int = 0
    weight: float = 0.0
    weight_squared: float = 0.0
    slots: Array = field(init=False)  # (slot,), the weight of the rows there
    beyond: Array = field(init=False)  # (feature,), the weight of the numbers outside the first and the last knot
    totals: Array = field(init=False)  # (feature,), the sums of the numbers; 0 for categories
    sums: Array = field(init=False)  # (feature, output), of the contributions
    squares: Array = field(init=False)
    own: Array = field(init=False)  # (feature, output), of the mean contributions at the rows' values
    score: Array = field(init=False)  # (output,), sums of the scores without the intercept
    score_squares: Array = field(init=False)

    def __post_init__(self) -> None:
        shape = (self.model.n_features, self.model.n_outputs)
        self.slots = np.zeros(self.model.schema.n_slots)
        self.beyond, self.totals = np.zeros(shape[0]), np.zeros(shape[0])
        self.sums, self.squares, self.own = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.score, self.score_squares = np.zeros(shape[1]), np.zeros(shape[1])

    @cached_property
    def statistics(self) -> Statistics:
        """The statistics of the training rows."""
        return require_statistics(self.model)

    @property
    def effective_rows(self) -> float:
        """The number of rows of equal weight that are as informative as these."""
        return self.weight**2 / self.weight_squared if self.weight_squared > 0 else 0.0

    def add(self, columns: Columns, weight: Array | None = None) -> None:
        """Add rows, in the model's order of columns; without weights, each counts once."""
        weights = np.ones(columns.n_rows) if weight is None else weight
        model = self.model
        cells = model.schema.locate(columns, dtype=model.experts.dtype)
        self.n_rows += int(np.count_nonzero(weights))
        self.weight += float(weights.sum())
        self.weight_squared += float(weights @ weights)
        self.slots += slot_weights(cells, weights, model.schema.n_slots)
        for i, (feature, column) in enumerate(zip(model.schema.features, columns.arrays, strict=True)):
            if has_range(feature):
                self._add_numbers(i, feature.knots, numbers(column, feature.name), weights)
        for rows, part, values in model.each(cells, model.contribute):
            self._add_contributions(part, values.astype(np.float64), weights[rows])

    def _add_numbers(self, i: int, knots: Array, values: Array, weights: Array) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # infinities have no mean
            self.totals[i] += float(np.nansum(weights * values))
        self.beyond[i] += float(weights @ ((values < knots[0]) | (values > knots[-1])))

    def _add_contributions(self, cells: Cells, values: Array, weights: Array) -> None:
        score = values.sum(axis=1)
        self.sums += np.tensordot(weights, values, axes=1)
        self.squares += np.tensordot(weights, values**2, axes=1)
        self.own += np.tensordot(weights, own_effects(self.model, cells, values, self.statistics.mean), axes=1)
        self.score += weights @ score
        self.score_squares += weights @ score**2


def has_range(feature: Feature) -> TypeGuard[Number]:
    """Return whether a feature is a number whose training rows span a range."""
    return isinstance(feature, Number) and not feature.is_boolean and not feature.is_empty
