"""Branch and bound over many rows at once: boxes that leave most open are halved until the budget is spent."""

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

    Together the boxes of a row cover its domains. So the lowest lower and the highest upper bound hold for every input.
    """

    problem: Problem
    lower: Array  # (B, box), of the score; inf where there is no box yet
    upper: Array  # (B, box); -inf where there is no box yet
    nodes: IntArray  # (B, box, domain)
    n_boxes: IntArray  # (B,)
    top: Array  # (B,), the highest lower bound of any box: the largest score is not below
    bottom: Array  # (B,), the lowest upper bound of any box

    @classmethod
    def of(cls, problem: Problem, budget: int) -> Self:
        """Return one box per row, with room for as many as the budget."""
        rows, n_domains = np.arange(problem.n_rows), len(problem.lines)
        nodes = np.zeros((len(rows), budget, n_domains), dtype=np.int64)
        lower, upper = bound(problem, rows, nodes[:, 0])
        room = np.full((len(rows), budget - 1), np.inf)
        return cls(
            problem=problem,
            lower=np.column_stack([lower, room]),
            upper=np.column_stack([upper, -room]),
            nodes=nodes,
            n_boxes=np.ones(len(rows), dtype=np.int64),
            top=lower,
            bottom=upper,
        )

    @property
    def ends(self) -> tuple[Array, Array]:
        """The bounds of every row's score, (B,) each."""
        return self.lower.min(axis=1), self.upper.max(axis=1)

    def reach(self, low: float, high: float) -> None:
        """Take note that some inputs of every row have these scores."""
        np.minimum(self.bottom, low, out=self.bottom)
        np.maximum(self.top, high, out=self.top)

    def best_vertices(self, sign: int, n: int) -> IntArray:
        """Return the middle vertices of the first row's boxes with the highest (``sign`` 1) or lowest bounds."""
        height = self.upper[0] if sign > 0 else -self.lower[0]
        at = np.argsort(-height[: self.n_boxes[0]], kind="stable")[:n]
        domains = [line.domain for line in self.problem.lines]
        nodes = zip(domains, self.nodes[0, at].T, strict=True)
        return np.stack([(domain.first + domain.last)[some] // 2 for domain, some in nodes], axis=1)

    def halve(self, tolerance: float) -> Self:
        """Halve boxes until no bound can improve by more than the tolerance, or until the budget is spent."""
        while self._halve_best(1, tolerance) + self._halve_best(-1, tolerance):
            pass
        return self

    def _halve_best(self, sign: int, tolerance: float) -> int:
        """Halve the boxes with the highest upper bounds (``sign`` 1) or the lowest lower bounds; return how many."""
        rows, at, which = self._best(sign, tolerance)
        if len(rows):
            parents = self.nodes[rows, at]
            halves = [self._children(parents, which, side) for side in (0, 1)]
            places = [at, self._free(rows)]
            self._put(np.tile(rows, 2), np.tile(at, 2), np.concatenate(places), np.concatenate(halves))
            np.add.at(self.n_boxes, rows, 1)
        return len(rows)

    def _best(self, sign: int, tolerance: float) -> tuple[IntArray, IntArray, IntArray]:
        """Return the boxes to be halved: row, place and domain of each."""
        n_rows, n_used = len(self.n_boxes), int(self.n_boxes.max(initial=1))
        n_each = min(n_used, max(1, _AT_ONCE // max(n_rows, 1)))
        height, floor = (self.upper, self.top) if sign > 0 else (-self.lower, -self.bottom)
        height = height[:, :n_used]
        order = height.argmax(axis=1)[:, None] if n_each == 1 else np.argsort(-height, axis=1)[:, :n_each]
        has_room = self.n_boxes[:, None] + np.arange(n_each) < self.lower.shape[1]
        helps = has_room & (np.take_along_axis(height, order, axis=1) > floor[:, None] + tolerance)
        rows, rank = np.nonzero(helps)
        at = order[rows, rank]
        is_open = np.stack([line.open[self.nodes[rows, at, d]] for d, line in enumerate(self.problem.lines)], axis=1)
        can = is_open.max(axis=1) >= 0
        return rows[can], at[can], is_open[can].argmax(axis=1)

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

    def _put(self, rows: IntArray, parents: IntArray, places: IntArray, nodes: IntArray) -> None:
        """Bound boxes, and store them at their places. What holds for a box holds for its halves."""
        lower, upper = bound(self.problem, rows, nodes)
        lower, upper = np.maximum(lower, self.lower[rows, parents]), np.minimum(upper, self.upper[rows, parents])
        self.lower[rows, places], self.upper[rows, places], self.nodes[rows, places] = lower, upper, nodes
        np.maximum.at(self.top, rows, lower)
        np.minimum.at(self.bottom, rows, upper)
