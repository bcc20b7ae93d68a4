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
from nae.decisions.recourse.forest import Lines
from nae.decisions.recourse.growing import Growing
from nae.decisions.recourse.ranks import Ranks
from nae.encoding.cells import Cells
from nae.encoding.schema import Number
from nae.errors import DataError
from nae.ranges import Domain
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

    def nodes(self, domain: Domain) -> BoolArray:
        """Return which rows are near some value of every node, (N, R)."""
        at, rows = _position(self.model, domain.feature, domain.slot, domain.fraction), self.rows[:, domain.feature]
        low = -domain.largest(np.where(at < 1, -at, -np.inf))
        high = domain.largest(np.where(at < 1, at, -np.inf))
        between = (rows < 1) & (rows >= low[:, None] - _NEAR) & (rows <= high[:, None] + _NEAR)
        return np.asarray(between | (domain.largest(self.near(domain.feature, at).astype(np.float32)) > 0))


class NodePairs:
    """Which pairs of values the nodes of all features can make. Node 0 stands for no change."""

    def __init__(self, neighbours: Neighbours, domains: tuple[Domain, ...]) -> None:
        near = [neighbours.nodes(domain) for domain in domains]
        here = neighbours.near_here.T.astype(np.float32)
        beside = [(one.astype(np.float32) @ here) > 0 for one in near]
        self._near, self._beside = (
            Growing(np.concatenate([np.ones((1, parts[0].shape[1]), dtype=bool), *parts])) for parts in (near, beside)
        )

    def halve(self, lines: Lines) -> None:
        """Add the nodes of lines that were halved. What a line can do, its halves may be able to do."""
        for part in (self._near, self._beside):
            part.append(part.values[np.repeat(lines.nodes, 2)])

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
