"""The parts of a table of points or factors: bins, features, and what the table costs in accuracy."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nae._typing import AnyArray, IntArray
from nae.encoding.columns import category_keys, numbers

__all__ = ["CardBin", "CardFeature", "CardLoss", "Measured"]


@dataclass(frozen=True)
class CardBin:
    """One row of the table: values that get the same points or factor.

    Effects and their bounds are in units of the score, measured from the reference.
    """

    label: str
    role: str  # 'value', 'missing' or 'unseen'
    low: float  # a number belongs to the bin from here on; NaN for levels
    high: float  # and below here
    levels: tuple[str, ...]  # of a category; rare ones included
    share: float  # of the training rows
    shown: float  # the points or the factor, rounded
    effect: float  # the mean contribution of the training rows
    lower: float  # no input with such a value contributes less
    upper: float  # or more
    least: float  # the same limits as points or factors, rounded outward
    most: float


@dataclass(frozen=True)
class CardFeature:
    """The bins of one feature, and how far they are from the model, in units of the score."""

    name: str
    kind: str
    bins: tuple[CardBin, ...]  # in order; *missing* and *unseen* last
    shift: float  # the contribution in the reference, which the base takes over
    direction: int  # 1 if the points rise with the value, -1 if they fall, else 0
    binning: float  # root mean square over the training rows of: mean effect at the value minus effect of the bin
    context: float  # of: contribution minus mean effect at the value, which no table of points can show
    rounding: float  # largest change of an effect by rounding
    largest: float  # the most that a contribution differs from the effect of its bin, for any input

    @property
    def is_exact(self) -> bool:
        """Whether every bin has one contribution for all inputs, up to rounding."""
        return self.largest <= 1e-5 * max(1e-300, *(abs(one.effect) for one in self.bins))

    def find(self, column: AnyArray) -> IntArray:
        """Return the position of the bin of every value, (row,)."""
        if self._levels is None:
            values = numbers(column, self.name)
            found = np.searchsorted(self._edges, values, side="right")
            return np.where(np.isnan(values), self._at("missing"), found)
        others = self._at("unseen")
        return np.array([self._levels.get(key, others) for key in category_keys(column)], dtype=np.int64)

    @cached_property
    def _edges(self) -> AnyArray:
        return np.array([one.low for one in self.bins if one.role == "value"][1:])

    @cached_property
    def _levels(self) -> dict[str | None, int] | None:
        """The bin of every level, or None for a number."""
        if all(one.role != "unseen" for one in self.bins):
            return None
        known: dict[str | None, int] = {level: at for at, one in enumerate(self.bins) for level in one.levels}
        return {**known, None: self._at("missing")}

    def _at(self, role: str) -> int:
        return next(at for at, one in enumerate(self.bins) if one.role == role)


@dataclass(frozen=True)
class Measured:
    """How far the rounded table is from the model on given rows, in units of the score."""

    n_rows: int
    rms: float
    largest: float
    mean: float


@dataclass(frozen=True)
class CardLoss:
    """How far a whole table is from its model, in units of the score."""

    binning: float  # no root mean square over the training rows is larger: the sum over the features
    context: float  # root mean square over the training rows of what only the context explains
    rounding: float  # the most that rounding changes, for any input
    largest: float  # the most that the rounded table differs from the model, for any input
    measured: Measured | None  # on the rows that were given
