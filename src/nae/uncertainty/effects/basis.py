"""The curves of the additive fit: a few nodes per feature, and the penalty on what is not smooth."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.encoding.cells import Cells
from nae.encoding.schema import Feature, Number, Schema

__all__ = ["Basis", "make_basis", "node_count"]

_MOST_NODES, _LEAST_NODES, _ALL_NODES = 24, 3, 240
_MOST_LEVELS = 60  # levels beyond share a node


@dataclass(frozen=True, eq=False)
class Curve:
    """The columns of one feature: its values at every slot, its penalty, and the slots whose level has no own node."""

    table: Array  # (slot, node)
    penalty: Array  # (node, node)
    rank: int  # of the penalty
    has_levels: bool
    has_rows: BoolArray  # (slot,), whether rows say something about the slot
    is_pooled: BoolArray  # (slot,), whether it shares a node with other levels


@dataclass(frozen=True, eq=False)
class Basis:
    """The columns of all features, side by side."""

    schema: Schema
    curves: tuple[Curve, ...]

    @property
    def parts(self) -> list[slice]:
        """The columns of every feature."""
        ends = np.cumsum([0, *(curve.table.shape[1] for curve in self.curves)]).tolist()
        return [slice(first, last) for first, last in pairwise(ends)]

    def columns(self, cells: Cells) -> Array:
        """Return the columns of rows, (row, column)."""
        found = []
        for i, curve in enumerate(self.curves):
            slot = cells.slot[:, i] - self.schema.offsets[i]
            fraction = cells.fraction[:, i, None].astype(np.float64)
            following = curve.table[slot + (fraction[:, 0] > 0)]
            found.append(curve.table[slot] * (1 - fraction) + following * fraction)
        return np.concatenate(found, axis=1)


def node_count(n_features: int) -> int:
    """Return the number of nodes of a number: fewer if there are many features."""
    return int(np.clip(_ALL_NODES // n_features, _LEAST_NODES, _MOST_NODES))


def make_basis(schema: Schema, weight: Array) -> Basis:
    """Return the columns for rows with the given weight at every slot."""
    n_nodes = node_count(len(schema))
    found = [_curve(feature, weight[schema.slots(i)], n_nodes) for i, feature in enumerate(schema.features)]
    return Basis(schema, tuple(found))


def _curve(feature: Feature, weight: Array, n_nodes: int) -> Curve:
    n_values = feature.n_values
    is_pooled = np.zeros(feature.n_slots, dtype=bool)
    if isinstance(feature, Number):
        own = _hats(feature.knots, _nodes(weight[:n_values], n_nodes))
        bends = np.diff(np.eye(own.shape[1]), min(2, own.shape[1]), axis=0)  # of a line there are none
        penalty = bends.T @ bends
    else:
        own, is_pooled[:n_values] = _level_columns(weight[:n_values])
        penalty = np.eye(own.shape[1])
    table = np.zeros((feature.n_slots, own.shape[1]))
    table[:n_values] = own
    table[n_values:] = _mean(table, weight)
    if weight[n_values] > 0:  # missing has a column of its own
        table = np.pad(table, ((0, 0), (0, 1)))
        table[n_values], table[n_values, -1] = 0.0, 1.0
        penalty = np.pad(penalty, ((0, 1), (0, 1)))
    has_rows = weight > 0
    if isinstance(feature, Number):
        has_rows[:n_values] = weight[:n_values].any()
    return Curve(
        table=table - _mean(table, weight),
        penalty=penalty,
        rank=int(np.linalg.matrix_rank(penalty)),
        has_levels=not isinstance(feature, Number),
        has_rows=has_rows,
        is_pooled=is_pooled,
    )


def _mean(table: Array, weight: Array) -> Array:
    total = weight.sum()
    return np.asarray(weight @ table / total) if total > 0 else np.zeros(table.shape[1])


def _nodes(weight: Array, limit: int) -> IntArray:
    """Return the knots that are nodes: both ends, and others that share the rows evenly."""
    n = len(weight)
    if n <= limit:
        return np.arange(n)
    mass = np.cumsum(weight) - weight / 2
    at = np.searchsorted(mass, np.linspace(0.0, 1.0, limit) * weight.sum()).clip(0, n - 1)
    return np.unique([0, *at, n - 1])


def _hats(knots: Array, nodes: IntArray) -> Array:
    """Return the weight of every node at every knot; linear between two nodes."""
    return np.stack([np.interp(knots, knots[nodes], unit) for unit in np.eye(len(nodes))], axis=1)


def _level_columns(weight: Array) -> tuple[Array, BoolArray]:
    """Return a column for each of the most frequent levels and one for the others, and which levels share a column."""
    order = np.argsort(-weight, kind="stable")
    number = np.empty(len(weight), dtype=np.int64)
    number[order] = np.minimum(np.arange(len(weight)), _MOST_LEVELS)
    return np.eye(number.max(initial=0) + 1)[number], number == _MOST_LEVELS
