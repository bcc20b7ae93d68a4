"""Points that were tried: combinations of vertices, and the cheapest one that reaches the goal for each set."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.decisions.recourse.forest import Forest
from nae.decisions.recourse.goals import Goal
from nae.decisions.recourse.neighbours import Neighbours
from nae.encoding.cells import Cells
from nae.tables.model import TableModel

__all__ = ["Point", "Tries"]

_AT_ONCE = 64  # points for which rows are looked for


@dataclass(frozen=True, eq=False)
class Point:
    """Moves that reach the goal."""

    features: frozenset[int]
    vertices: tuple[int, ...]
    cost: float


@dataclass(eq=False)
class Tries:
    """What was tried."""

    model: TableModel
    row: Cells
    forest: Forest
    goal: Goal
    neighbours: Neighbours | None = None
    found: dict[frozenset[int], Point] = field(default_factory=dict)
    scores: Array = field(init=False)  # (V, output), with a single vertex moved

    def singles(self) -> None:
        """Try every vertex alone."""
        vertices = np.arange(len(self.forest.cost))[:, None]
        self.scores = self._scores(vertices)
        self._keep(vertices, self.scores)

    def points(self, vertices: IntArray) -> None:
        """Try some combinations of vertices (n, change)."""
        if len(vertices):
            self._keep(vertices, self._scores(vertices))

    def boxes(self, nodes: IntArray) -> None:
        """Try the middle of boxes."""
        self.points((self.forest.first[nodes] + self.forest.last[nodes]) // 2)

    def best(self, besides: Sequence[frozenset[int]] = ()) -> Point | None:
        """Return the cheapest point that does not change all features of a set in ``besides``."""
        allowed = [one for one in self.found.values() if not any(some <= one.features for some in besides)]
        return min(allowed, key=lambda one: (one.cost, len(one.features)), default=None)

    def forget(self, point: Point) -> None:
        """Forget a point that does not reach the goal after all."""
        del self.found[point.features]

    def _scores(self, vertices: IntArray) -> Array:
        """Return the scores of the row with some moves (n, change), (n, output)."""
        return self.model.decision_function(self.forest.place(self.row, vertices)).reshape(len(vertices), -1)

    def _keep(self, vertices: IntArray, scores: Array) -> None:
        """Keep the cheapest point of every set of features that reaches the goal."""
        vertices = np.sort(np.where(self.forest.is_here[vertices], 0, vertices), axis=1)
        vertices = vertices[self.goal.reached(scores) & vertices.any(axis=1)]
        cost = self.forest.cost[vertices].sum(axis=1)
        order = np.argsort(cost, kind="stable")
        moved = np.where(vertices > 0, self.forest.owner[vertices], -1)[order]
        _, which = np.unique(moved, axis=0, return_inverse=True)
        for same in np.unique(which):
            self._keep_first(vertices[order[which == same]])

    def _keep_first(self, vertices: IntArray) -> None:
        """Keep the first of some points with the same features, cheapest first, that rows support."""
        features = frozenset(self.forest.owner[vertices[0][vertices[0] > 0]].tolist())
        best = self.found[features].cost if features in self.found else np.inf
        cost = self.forest.cost[vertices].sum(axis=1)
        for some in np.array_split(np.flatnonzero(cost < best), max(1, len(cost) // _AT_ONCE)):
            known = some[self._occur(vertices[some])]
            if len(known):
                point = vertices[known[0]][vertices[known[0]] > 0]
                self.found[features] = Point(features, tuple(point.tolist()), float(cost[known[0]]))
                return

    def _occur(self, vertices: IntArray) -> BoolArray:
        if self.neighbours is None:
            return np.ones(len(vertices), dtype=bool)
        return self.neighbours.have(self.forest.place(self.row, vertices))
