"""The search for the cheapest moves: branch and bound over boxes, of which the cheapest are halved first.

There is a box for every set of at most k features. Its lower bound never falls when it is halved, and the middle of
every half is tried. So at any time, the best point that was found and the lowest bound of a box that is left enclose
the smallest cost.
"""

from collections.abc import Sequence
from itertools import combinations
from math import inf

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.decisions.recourse.bounds import Space
from nae.decisions.recourse.starts import combined
from nae.decisions.recourse.tries import Point, Tries

__all__ = ["Search"]

_AT_ONCE = 256  # boxes that are halved in one step
_CLOSE = 0.01  # a gap of this share of the cost is closed


class Search:
    """Boxes, and the points that were tried."""

    def __init__(self, space: Space, tries: Tries, *, k: int, budget: int) -> None:
        """Take one box for every set of at most ``k`` features."""
        self.space, self.tries, self.budget, self.n_boxes = space, tries, budget, 0
        self.nodes = _root_boxes(space.forest.roots, k)  # (box, change)
        self.bounds: Array = np.zeros(len(self.nodes))  # of the cost, (box,)
        tries.singles()
        combined(tries, self.nodes)
        self._rate(np.arange(len(self.nodes)), inf)

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
        """Return the boxes to be halved next."""
        is_open = self.space.forest.open[self.nodes].max(axis=1, initial=0.0) > 0
        some = np.flatnonzero((bounds < cost * (1 - _CLOSE)) & is_open)
        n = max(1, min(_AT_ONCE, (self.budget - self.n_boxes) // 2))
        return some[np.argsort(bounds[some], kind="stable")[:n]]

    def _changes_all(self, sets: Sequence[frozenset[int]]) -> BoolArray:
        """Return which boxes change all features of a set."""
        feature = np.where(self.nodes > 0, self.space.forest.feature[self.nodes], -1)
        found = np.zeros(len(self.nodes), dtype=bool)
        for some in sets:
            found |= np.logical_and.reduce([(feature == i).any(axis=1) for i in some])
        return found

    def _halve(self, at: IntArray, cost: float) -> None:
        forest, parents, rows = self.space.forest, self.nodes[at], np.arange(len(at))
        which = forest.open[parents].argmax(axis=1)
        halves = np.concatenate([parents, parents])
        halves[np.arange(2 * len(at)), np.tile(which, 2)] = forest.children[parents[rows, which]].T.reshape(-1)
        left = np.delete(np.arange(len(self.nodes)), at)
        bounds = np.tile(self.bounds[at], 2)  # what holds for a box holds for its halves
        self.nodes = np.concatenate([self.nodes[left], halves])
        self.bounds = np.concatenate([self.bounds[left], bounds])
        self._rate(np.arange(len(left), len(self.nodes)), cost)

    def _rate(self, at: IntArray, cost: float) -> None:
        """Bound and try some boxes; forget those in which no point reaches the goal."""
        self.n_boxes += len(at)
        guess = cost if cost < inf else float(self.space.forest.most_cost.max())
        self.bounds[at] = np.maximum(self.bounds[at], self.space.bound(self.nodes[at], guess))
        self.tries.boxes(self.nodes[at[self.bounds[at] < cost]])
        keep = np.isfinite(self.bounds) & ~self._is_point()
        self.nodes, self.bounds = self.nodes[keep], self.bounds[keep]

    def _is_point(self) -> BoolArray:
        """Return which boxes are a single point. It was tried, so nothing is left to know about it."""
        forest = self.space.forest
        return np.asarray((forest.first[self.nodes] == forest.last[self.nodes]).all(axis=1))


def _root_boxes(roots: IntArray, k: int) -> IntArray:
    """Return a box for every set of at most ``k`` features, (box, change)."""
    k = min(k, len(roots))
    sets = [some for size in range(1, k + 1) for some in combinations(roots.tolist(), size)]
    return np.array([(*some, *[0] * (k - len(some))) for some in sets], dtype=np.int64).reshape(len(sets), k)
