"""Branch and bound over many rows at once: the boxes with the highest bounds are halved until the budget is spent."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from nae._typing import Array, IntArray
from nae.ranges.bounds import bound
from nae.ranges.problem import Problem

__all__ = ["Boxes"]

_AT_ONCE = 256  # boxes that are halved in one step where there are few rows


@dataclass(frozen=True, eq=False)
class Boxes:
    """The boxes of every row; they are halved in place.

    Together the boxes of a row cover its domains. So no input has a score above the highest bound.
    """

    problem: Problem
    bounds: Array  # (B, box), upper bounds of the score; -inf where there is no box yet
    nodes: IntArray  # (B, box, domain)
    n_boxes: IntArray  # (B,)

    @classmethod
    def of(cls, problem: Problem, budget: int) -> Self:
        """Return one box per row, with room for as many as the budget."""
        rows = np.arange(problem.n_rows)
        nodes = np.zeros((len(rows), budget, len(problem.lines)), dtype=np.int64)
        room = np.full((len(rows), budget - 1), -np.inf)
        bounds = np.column_stack([bound(problem, rows, nodes[:, 0]), room])
        return cls(problem, bounds, nodes, np.ones(len(rows), dtype=np.int64))

    @property
    def highest(self) -> Array:
        """The highest bound of every row, (B,)."""
        return np.asarray(self.bounds.max(axis=1))

    def best_vertices(self, n: int) -> IntArray:
        """Return the middle vertices of the first row's boxes with the highest bounds, (box, domain)."""
        at = np.argsort(-self.bounds[0, : self.n_boxes[0]], kind="stable")[:n]
        nodes = zip((line.domain for line in self.problem.lines), self.nodes[0, at].T, strict=True)
        return np.stack([(domain.first + domain.last)[some] // 2 for domain, some in nodes], axis=1)

    def halve(self, floor: float = -np.inf) -> Self:
        """Halve the boxes with the highest bounds until halves are not better, or the budget is spent.

        Boxes whose bounds are not above the floor remain as they are.
        """
        while self._halve_best(floor):
            pass
        return self

    def _halve_best(self, floor: float) -> int:
        """Halve the best boxes of every row; return how many."""
        rows, at, which = self._best(floor)
        if len(rows):
            parents = self.nodes[rows, at]
            halves = np.concatenate([self._children(parents, which, side) for side in (0, 1)])
            found = bound(self.problem, np.tile(rows, 2), halves)
            found = np.minimum(found, np.tile(self.bounds[rows, at], 2))  # what holds for a box holds for its halves
            both, places = np.tile(rows, 2), np.concatenate([at, self._free(rows)])
            self.bounds[both, places], self.nodes[both, places] = found, halves
            np.add.at(self.n_boxes, rows, 1)
        return len(rows)

    def _best(self, floor: float) -> tuple[IntArray, IntArray, IntArray]:
        """Return the boxes to be halved: row, place and domain of each.

        Without room for more boxes, or if halves of a row's best box are not better, the row has none.
        """
        n_rows, n_used = len(self.n_boxes), int(self.n_boxes.max(initial=1))
        n_each = min(n_used, max(1, _AT_ONCE // max(n_rows, 1)))
        bounds = self.bounds[:, :n_used]
        order = bounds.argmax(axis=1)[:, None] if n_each == 1 else np.argsort(-bounds, axis=1)[:, :n_each]
        has_room = self.n_boxes[:, None] + np.arange(n_each) < self.bounds.shape[1]
        rows, rank = np.nonzero(has_room & (np.take_along_axis(bounds, order, axis=1) > floor))
        at = order[rows, rank]
        is_open = np.stack([line.open[self.nodes[rows, at, d]] for d, line in enumerate(self.problem.lines)], axis=1)
        helps = is_open.max(axis=1) > 0
        helps &= ~np.isin(rows, rows[(rank == 0) & ~helps])
        return rows[helps], at[helps], is_open[helps].argmax(axis=1)

    def _children(self, parents: IntArray, which: IntArray, side: int) -> IntArray:
        """Return one half of every box, (n, domain); ``which`` domain is halved."""
        nodes = parents.copy()
        for d, line in enumerate(self.problem.lines):
            nodes[which == d, d] = line.domain.children[parents[which == d, d], side]
        return nodes

    def _free(self, rows: IntArray) -> IntArray:
        """Return a free place for every box; rows ascend."""
        _, starts, counts = np.unique(rows, return_index=True, return_counts=True)
        return self.n_boxes[rows] + np.arange(len(rows)) - np.repeat(starts, counts)
