"""The search for the cheapest moves: branch and bound over boxes.

Together the boxes hold all changes of at most k features. The lower bound of a box never falls when it is halved, and
the middle of every half is tried. So at any time, the best point that was found and the lowest bound of a box that is
left enclose the smallest cost.
"""

from collections.abc import Sequence
from math import inf

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.decisions.recourse.bounds import Space
from nae.decisions.recourse.boxes import Boxes
from nae.decisions.recourse.tries import Point, Tries

__all__ = ["Search"]

_AT_ONCE = 256  # boxes that are halved in one step
_CLOSE = 0.02  # a gap of this share of the cost is closed


class Search:
    """Boxes with their bounds, and the points that were tried."""

    def __init__(self, space: Space, tries: Tries, *, k: int, budget: int) -> None:
        self.space, self.tries, self.budget, self.n_boxes = space, tries, budget, 0
        self.boxes = Boxes.of(space.rests.order, k)
        self.bounds: Array = np.zeros(len(self.boxes))  # of the cost, (box,)
        self._rate(np.arange(len(self.boxes)), inf)

    def cheapest(self, besides: Sequence[frozenset[int]] = ()) -> tuple[Point | None, float]:
        """Return the cheapest point, and a lower bound of the cost of all points.

        Points that change all features of a set in ``besides`` do not count.
        """
        while True:
            best = self.tries.best(besides)
            cost = inf if best is None else best.cost
            bounds = np.where(self._changes_all(besides), inf, self.bounds)
            lowest, at = float(bounds.min(initial=inf)), self._next(bounds, cost)
            if lowest >= cost * (1 - _CLOSE) or self.n_boxes >= self.budget or not len(at):
                return best, min(lowest, cost)
            self._halve(at, cost)

    def lowest(self, besides: Sequence[frozenset[int]] = ()) -> float:
        """Return a lower bound of the cost of all points but those that change all features of a set."""
        best = self.tries.best(besides)
        cost = inf if best is None else best.cost
        return min(cost, float(np.where(self._changes_all(besides), inf, self.bounds).min(initial=inf)))

    def _next(self, bounds: Array, cost: float) -> IntArray:
        """Return the boxes to be halved next: some with the lowest bounds, others with the fewest changes."""
        is_open = self.space.forest.open[self.boxes.nodes].max(axis=1, initial=0.0) > 0
        some = np.flatnonzero((bounds < cost * (1 - _CLOSE)) & (is_open | (self.boxes.rest > 0)))
        n = max(1, min(_AT_ONCE, (self.budget - self.n_boxes) // 2))
        lowest = some[np.argsort(bounds[some], kind="stable")[: n // 2 + n % 2]]
        n_changes = (self.boxes.nodes[some] > 0).sum(axis=1) + self.boxes.nodes.shape[1] * self.boxes.rest[some]
        fewest = some[np.lexsort((bounds[some], n_changes))][:n]
        return np.concatenate([lowest, np.setdiff1d(fewest, lowest, assume_unique=True)[: n // 2]])

    def _changes_all(self, sets: Sequence[frozenset[int]]) -> BoolArray:
        """Return which boxes change all features of a set."""
        feature = np.where(self.boxes.nodes > 0, self.space.forest.feature[self.boxes.nodes], -1)
        found = np.zeros(len(self.boxes), dtype=bool)
        for some in sets:
            found |= np.logical_and.reduce([(feature == i).any(axis=1) for i in some])
        return found

    def _halve(self, at: IntArray, cost: float) -> None:
        """Replace boxes by their halves."""
        is_decided = self.boxes.rest[at] == 0
        whole, open_ones = at[is_decided], at[~is_decided]
        self.space.halve(self._widest(whole))
        halves = self.boxes.take(whole).halves(self.space.forest)
        new = halves.and_also(self.boxes.take(open_ones).decided(self.space.rests.order))
        left = np.delete(np.arange(len(self.boxes)), at)
        # What holds for a box holds for its halves.
        self.bounds = np.concatenate([self.bounds[part] for part in (left, whole, whole, open_ones, open_ones)])
        self.boxes = self.boxes.take(left).and_also(new)
        self._rate(np.arange(len(left), len(self.boxes)), cost)

    def _widest(self, at: IntArray) -> IntArray:
        nodes = self.boxes.nodes[at]
        return np.asarray(nodes[np.arange(len(at)), self.space.forest.open[nodes].argmax(axis=1)])

    def _rate(self, at: IntArray, cost: float) -> None:
        """Bound and try some boxes; forget those in which no point reaches the goal."""
        self.n_boxes += len(at)
        guess = cost if cost < inf else float(self.space.forest.most_cost.max())
        self.bounds[at] = np.maximum(self.bounds[at], self.space.bound(self.boxes.take(at), guess))
        self.tries.boxes(self.boxes.nodes[at[self.bounds[at] < cost]])
        keep = np.flatnonzero(np.isfinite(self.bounds) & ~self.boxes.points(self.space.forest))
        self.boxes, self.bounds = self.boxes.take(keep), self.bounds[keep]
