"""The search for the input on which two models differ most: random rows of slots, then the best slot of one feature.

Both models stand on one schema. Every row stands on slots: knots and levels of either model, *missing*, *unseen*. What
is found is a fact; a larger change may exist.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from nae._typing import Array, IntArray
from nae.certificates.changes import Changes
from nae.certificates.slots import SlotRows, contributions

__all__ = ["Found", "farthest"]

_BUDGET = 1e7  # experts and weights that a search computes for its random rows, and again for those it climbs from
_STARTS = 2
_CLIMBED = 12  # features whose contribution is searched for, beside the score: those that may change most
_TRIED = 24  # features that take their best slot, at least


@dataclass(frozen=True, eq=False)
class Found:
    """A row of slots, (feature,), and what it gives in both models: the score, or the contribution of a feature."""

    row: IntArray
    first: float
    second: float

    @property
    def change(self) -> float:
        """The value of the second model minus that of the first."""
        return self.second - self.first


def farthest(changes: Changes, *, seed: int = 0) -> tuple[Found, tuple[Found, ...]]:
    """Return the rows on which the score, and the contribution of every feature, change most, as far as they are found.

    All features share random rows. Climbing from the best ones is for the score, and for the features whose
    contribution may change most.
    """
    model = changes.first.model
    random = np.random.default_rng(seed)
    per_row = 2 * model.n_features * model.n_experts * model.n_members * (1 + model.n_outputs)
    n_rows = int(np.clip(_BUDGET / per_row, 64, 2048))
    rows = np.stack([random.choice(own, n_rows) for own in changes.first.reachable], axis=1)
    old, new = (contributions(tables, rows) for tables in (changes.first, changes.second))
    order = np.argsort(-np.abs(changes.of_features).max(axis=1), kind="stable")
    climbed = set(order[:_CLIMBED].tolist())
    budget = _BUDGET / per_row / _STARTS
    features = []
    for i in range(model.n_features):
        at = int(np.abs(new[:, i] - old[:, i]).argmax())
        found = Found(rows[at], float(old[at, i]), float(new[at, i]))
        if i in climbed:
            share = budget * model.n_features / len(climbed)  # in rows of one target each
            tried = np.array([i, *order[order != i]])  # its own value moves it most
            found = _Search.of(changes, i, tried).best(rows, new[:, i] - old[:, i], share)
        features.append(found)
    moved = new.sum(axis=1) - old.sum(axis=1) + changes.of_intercept
    return _Search.of(changes, None, order).best(rows, moved, budget), tuple(features)


@dataclass(frozen=True, eq=False)
class _Search:
    """The search for the change of the score, or of one contribution."""

    old: SlotRows
    new: SlotRows
    intercepts: tuple[float, float]  # of both models; 0 for a contribution
    options: tuple[IntArray, ...]
    order: IntArray  # in which the features are tried

    @classmethod
    def of(cls, changes: Changes, feature: int | None, order: IntArray) -> Self:
        """Return the search for the change of a feature's contribution; None: of the score."""
        tables, targets = (changes.first, changes.second), np.array([feature])
        first = second = 0.0
        if feature is None:
            targets = np.arange(len(order))
            first, second = (float(one.model.intercept @ one.direction) for one in tables)
        old, new = (SlotRows.of(one, targets) for one in tables)
        return cls(old, new, (first, second), changes.first.reachable, order)

    def best(self, rows: IntArray, moved: Array, n_rows: float) -> Found:
        """Return the best row that is reached from those of the rows whose values moved most, up or down."""
        starts = np.argsort(-np.abs(moved), kind="stable")[:_STARTS]
        ends = np.stack([self._climb(rows[at], abs(float(moved[at])), n_rows) for at in starts])
        old, new = self._values(ends, self.old.hidden(ends), self.new.hidden(ends))
        at = int(np.abs(new - old).argmax())
        return Found(ends[at], float(old[at]), float(new[at]))

    def _values(self, rows: IntArray, old: Array, new: Array) -> tuple[Array, Array]:
        """Return the values of rows in both models, given their hidden values."""
        first, second = self.intercepts
        return (
            self.old.contributions(rows, old).sum(axis=1) + first,
            self.new.contributions(rows, new).sum(axis=1) + second,
        )

    def _climb(self, row: IntArray, size: float, n_left: float) -> IntArray:
        """Return the row after every feature in turn has taken its best slot, until nothing helps or rows run out."""
        while n_left > 0:
            before = size
            hidden = tuple(one.hidden(row[None])[0] for one in (self.old, self.new))
            for number, i in enumerate(self.order):
                if n_left <= 0 and number >= _TRIED:
                    break
                rows, old = self.old.moved(row, hidden[0], int(i), self.options[i])
                new = self.new.moved(row, hidden[1], int(i), self.options[i])[1]
                n_left -= len(rows)
                first, second = self._values(rows, old, new)
                gaps = np.abs(second - first)
                at = int(gaps.argmax())
                if gaps[at] > size:
                    size, row, hidden = float(gaps[at]), rows[at], (old[at], new[at])
            if size <= before:
                break
        return row
