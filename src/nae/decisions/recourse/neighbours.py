"""Combinations that rows support: every pair of values of which one is new must occur in one of them.

A row has a pair if it has the same levels, and numbers from which no more than a tenth of the training rows lie away.

Shapes: R rows, F features, N nodes, V vertices; n candidates or boxes.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Self

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.decisions.recourse.forest import Forest, Halved
from nae.decisions.recourse.growing import Growing
from nae.decisions.recourse.ranks import Ranks
from nae.decisions.recourse.runs import Runs
from nae.encoding.cells import Cells
from nae.encoding.schema import Number
from nae.errors import DataError
from nae.tables.model import TableModel

__all__ = ["Neighbours", "NodePairs"]

_MOST_ROWS = 2000  # that are compared; of more rows, some that are equally far apart
_FEWEST_ROWS = 20
_NEAR = 0.1  # of the training rows


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Rows among which pairs of values are looked for, and the row that is to be changed."""

    model: TableModel
    rows: Array  # (R, F), positions
    here: Array  # (F,), those of the row

    @classmethod
    def of(cls, model: TableModel, rows: Cells, row: Cells) -> Self:
        """Return the rows of a table."""
        if len(rows) < _FEWEST_ROWS:
            raise DataError(
                f"like must have at least {_FEWEST_ROWS} rows in which pairs of values occur; got {len(rows)}."
            )
        some = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _MOST_ROWS)).round().astype(np.int64))
        return cls(model, _positions(model, rows.take(some)), _positions(model, row)[0])

    def have(self, cells: Cells) -> BoolArray:
        """Return for which candidates every pair of values of which one is new occurs in a row, (n,)."""
        values = _positions(self.model, cells)
        near = [self.near(i, values[:, i]) for i in range(self.model.n_features)]
        found = np.ones(len(values), dtype=bool)
        for i, own in enumerate(near):
            at = np.flatnonzero(found & (values[:, i] != self.here[i]))
            for other in near[:i] + near[i + 1 :]:
                found[at] &= (own[at] & other[at]).any(axis=1)
        return found

    @cached_property
    def near_here(self) -> BoolArray:
        """Which rows are near the row's own values, (F, R)."""
        return np.concatenate([self.near(i, self.here[[i]]) for i in range(len(self.here))])

    def near(self, i: int, positions: Array) -> BoolArray:
        """Return which rows are near some values of a feature, (n, R)."""
        one, other = positions[:, None], self.rows[:, i]
        both = (one < 1) & (other < 1)
        return np.asarray(np.where(both, np.abs(one - other) <= _NEAR, one == other))

    def vertices(self, forest: Forest) -> Array:
        """Return where the values of all vertices lie, (V,)."""
        found: Array = np.zeros(len(forest.slot))
        for i in np.unique(forest.owner[1:]):
            own = np.flatnonzero(forest.owner == i)
            found[own] = _position(self.model, int(i), forest.slot[own], forest.fraction[own])
        return found

    def runs(self, i: int, positions: Array, runs: Runs) -> BoolArray:
        """Return which rows are near a value of the runs of a feature's vertices, (n, R)."""
        is_rank, rows = positions < 1, self.rows[:, i]
        low = -runs.largest(np.where(is_rank, -positions, -np.inf))
        high = runs.largest(np.where(is_rank, positions, -np.inf))
        between = (rows < 1) & (rows >= low[:, None] - _NEAR) & (rows <= high[:, None] + _NEAR)
        at, places = np.unique(runs.vertices, return_inverse=True)
        near = self.near(i, positions[at])
        apart = [near[part].any(axis=0) for part in np.split(places, runs.starts[1:])]
        return np.asarray(between | np.array(apart))


class NodePairs:
    """Which pairs of values the nodes of all features can make. Node 0 stands for no change."""

    def __init__(self, neighbours: Neighbours, forest: Forest) -> None:
        self._neighbours, self._forest = neighbours, forest
        self._here = neighbours.near_here.T.astype(np.float32)  # (R, F)
        n_rows, n_features = self._here.shape
        self._near, self._beside = (Growing(np.ones((1, size), dtype=bool)) for size in (n_rows, n_features))
        self._add(forest.roots, Runs.of(forest.first[forest.roots], forest.last[forest.roots]))

    def halve(self, halved: Halved) -> None:
        """Add the halves of nodes."""
        self._add(halved.parents, halved.runs)

    def _add(self, nodes: IntArray, runs: Runs) -> None:
        """Add nodes with runs of vertices; ``nodes`` are of the same features."""
        positions, feature = self._neighbours.vertices(self._forest), self._forest.feature[nodes]
        near = np.empty((len(nodes), len(self._here)), dtype=bool)
        sizes = np.diff(np.append(runs.starts, len(runs.vertices)))
        for i in np.unique(feature):
            own = np.flatnonzero(feature == i)
            ends = runs.vertices[runs.starts[own]]
            near[own] = self._neighbours.runs(int(i), positions, Runs.of(ends, ends + sizes[own] - 1))
        self._near.append(near)
        self._beside.append(near.astype(np.float32) @ self._here > 0)

    @property
    def near(self) -> BoolArray:
        """Which rows are near a value of a node, (N, R)."""
        return self._near.values

    @property
    def beside(self) -> BoolArray:
        """Whether a value of a node occurs beside the row's own value of a feature, (N, F)."""
        return self._beside.values

    def may_occur(self, nodes: IntArray, changed: BoolArray) -> BoolArray:
        """Return which boxes (n, change) may hold a combination whose pairs occur; ``changed`` is (n, F)."""
        found = np.ones(len(nodes), dtype=bool)
        for change in nodes.T:
            found &= (self.beside[change] | changed).all(axis=1)
        for one, other in combinations(nodes.T, 2):
            found &= (self.near[one] & self.near[other]).any(axis=1)
        return found


def _positions(model: TableModel, cells: Cells) -> Array:
    """Return where the values of rows lie, (n, F)."""
    columns = [_position(model, i, cells.slot[:, i], cells.fraction[:, i]) for i in range(model.n_features)]
    return np.stack(columns, axis=1)


def _position(model: TableModel, i: int, slot: IntArray, fraction: Array) -> Array:
    """Return the ranks of numbers, which are below 1; and beyond 1 the slots of levels, missing and unseen values."""
    kind, within = model.schema.features[i], slot - model.schema.offsets[i] + fraction
    if not isinstance(kind, Number):
        return np.asarray(2.0 + within)
    ranks = np.interp(within, np.arange(kind.n_values), Ranks.of(model, i).at_knots)
    return np.asarray(np.where(within > kind.n_values - 1, 2.0 + within, ranks))
