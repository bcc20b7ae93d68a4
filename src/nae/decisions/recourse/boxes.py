"""Boxes: for some features a node of the values that they change to, and how many further changes are left open."""

from dataclasses import dataclass
from itertools import combinations
from typing import Self

import numpy as np

from nae._typing import AnyArray, BoolArray, IntArray
from nae.decisions.recourse.forest import Forest

__all__ = ["Boxes"]

_MOST_SETS = 4000  # of features that have a box of their own from the start


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes, side by side."""

    nodes: IntArray  # (n, change), 0 for none
    rest: IntArray  # (n,), how many further features may change
    start: IntArray  # (n,), the place in the order of the features behind which they stand

    @classmethod
    def of(cls, order: IntArray, k: int) -> Self:
        """Return boxes for all sets of at most ``k`` features, given by their roots; many sets share one box."""
        k = min(k, len(order))
        sets = [some for size in range(1, k + 1) for some in combinations(order.tolist(), size)]
        if len(sets) > _MOST_SETS:
            return cls(np.zeros((1, k), dtype=np.int64), np.array([k]), np.array([0]))
        nodes = np.array([(*some, *[0] * (k - len(some))) for some in sets], dtype=np.int64)
        nothing = np.zeros(len(sets), dtype=np.int64)
        return cls(nodes.reshape(len(sets), k), nothing, nothing)

    def __len__(self) -> int:
        return len(self.nodes)

    def take(self, at: AnyArray) -> "Boxes":
        """Return some of the boxes."""
        return Boxes(self.nodes[at], self.rest[at], self.start[at])

    def and_also(self, other: "Boxes") -> "Boxes":
        """Return these boxes and others."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("nodes", "rest", "start"))
        return Boxes(*(np.concatenate(pair) for pair in pairs))

    def halves(self, forest: Forest) -> "Boxes":
        """Return the halves of each box at its widest node, first one of each; no further change is open."""
        rows = np.arange(len(self))
        which = forest.open[self.nodes].argmax(axis=1)
        nodes = np.concatenate([self.nodes, self.nodes])
        nodes[np.arange(len(nodes)), np.tile(which, 2)] = forest.children[self.nodes[rows, which]].T.reshape(-1)
        return Boxes(nodes, np.tile(self.rest, 2), np.tile(self.start, 2))

    def decided(self, order: IntArray) -> "Boxes":
        """Return each box once with the next feature in the order, and once without; a further change is open."""
        rows, n_features = np.arange(len(self)), len(order)
        nodes = self.nodes.copy()
        nodes[rows, nodes.shape[1] - self.rest] = order[self.start]
        start = self.start + 1
        is_last = start == n_features
        return Boxes(
            np.concatenate([nodes, self.nodes]),
            np.concatenate([np.where(is_last, 0, self.rest - 1), np.where(is_last, 0, self.rest)]),
            np.tile(start, 2),
        )

    def points(self, forest: Forest) -> BoolArray:
        """Return which boxes are a single combination of values."""
        is_single = (forest.first[self.nodes] == forest.last[self.nodes]).all(axis=1)
        return np.asarray(is_single & (self.rest == 0))
