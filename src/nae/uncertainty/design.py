"""The columns of the model of sizes: a few hat functions per feature, whose sum is a curve over the feature's slots."""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding.cells import Cells
from nae.encoding.schema import Feature, Number, Schema

__all__ = ["Design", "hats", "make_design"]

_MOST_COLUMNS = 400  # of all features
_MOST_FEATURES = 128
_MOST_KNOTS = 12  # of a feature


@dataclass(frozen=True, eq=False)
class Design:
    """The curves of some features, each a sum of columns with a coefficient each."""

    schema: Schema
    features: IntArray
    """The features that have columns."""
    curves: tuple[Array, ...]
    """Per feature, the value of each column at every slot of it, (slot, column)."""

    @property
    def sizes(self) -> list[int]:
        """The number of columns of every feature."""
        return [curve.shape[1] for curve in self.curves]

    def columns(self, cells: Cells) -> Array:
        """Return the columns of rows, (row, column)."""
        offsets = self.schema.offsets
        blocks = []
        for i, curve in zip(self.features, self.curves, strict=True):
            low, high = cells.slot[:, i] - offsets[i], cells.upper[:, i] - offsets[i]
            share = cells.fraction[:, i, None]
            blocks.append(curve[low] * (1 - share) + curve[high] * share)
        return np.concatenate(blocks, axis=1)

    def penalties(self) -> list[Array]:
        """Return, for every feature, what rough and large curves cost, (column, column)."""
        return [
            penalty(n, is_ordered=isinstance(self.schema.features[i], Number))
            for i, n in zip(self.features, self.sizes, strict=True)
        ]

    def at_slots(self, coefficients: Array) -> Array:
        """Return the curves of all features, (slot,), given the coefficients of all columns."""
        found = np.zeros(self.schema.n_slots)
        ends = np.cumsum([0, *self.sizes])
        for at, (i, curve) in enumerate(zip(self.features, self.curves, strict=True)):
            found[self.schema.slots(int(i))] = curve @ coefficients[ends[at] : ends[at + 1]]
        return found


def make_design(schema: Schema, weight: Array, importance: Array) -> Design:
    """Return the columns of the most important features; ``weight`` (slot,) says which levels are frequent."""
    features = np.sort(np.argsort(-importance, kind="stable")[:_MOST_FEATURES])
    n_most = min(_MOST_KNOTS, max(2, _MOST_COLUMNS // len(features)))
    curves = tuple(_curve(schema.features[i], weight[schema.slots(int(i))], n_most) for i in features)
    return Design(schema, features, curves)


def _curve(feature: Feature, weight: Array, n_most: int) -> Array:
    """Return the columns of a feature at its slots: hats over some of its knots, or its most frequent levels.

    Missing values have a column of their own; values that were never seen have none.
    """
    n_slots = feature.n_slots
    if not isinstance(feature, Number):
        kept = np.sort(np.argsort(-weight[: n_slots - 1], kind="stable")[: 2 * n_most])
        found = np.zeros((n_slots, len(kept)))
        found[kept, np.arange(len(kept))] = 1.0
        return found
    knots = np.unique(np.linspace(0, feature.n_values - 1, n_most).round())
    found = np.zeros((n_slots, len(knots) + 1))
    found[: feature.n_values, :-1] = hats(np.arange(feature.n_values), knots)
    found[feature.n_values, -1] = 1.0
    return found


def hats(values: Array | IntArray, knots: Array) -> Array:
    """Return hat functions over ascending knots at values, (value, knot); beyond the ends, the last one is 1."""
    eye = np.eye(len(knots))
    return np.stack([np.interp(values, knots, eye[k]) for k in range(len(knots))], axis=1)


def penalty(n_columns: int, *, is_ordered: bool) -> Array:
    """Return what coefficients cost: their squares, and those of the steps between neighbouring ones of a number."""
    found = np.eye(n_columns)
    if is_ordered and n_columns > 2:
        steps = np.diff(np.eye(n_columns)[:-1], axis=0)  # the last column is that of missing values
        found += (n_columns - 1) * steps.T @ steps
    return found
