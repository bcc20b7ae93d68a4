"""Domains: the values that a feature may have, as vertices between which every table is linear, and a tree over them.

Vertices are knots, levels, the ends of an interval, *missing* and *unseen*. Two neighbours are joined if the values
between them belong to the domain, too. A node of the tree is a run of vertices; its halves are its children.
"""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.encoding.cells import Cells
from nae.encoding.schema import Number
from nae.tables.model import TableModel

__all__ = ["Domain", "among", "between", "halves_of", "whole"]

_MOST_PARTS = 64  # a line between two vertices is cut into at most so many
_HOME = 64  # vertices


@dataclass(frozen=True, eq=False)
class Domain:
    """The values that one feature may have. Node 0 of the tree holds all of them; children stand after parents."""

    feature: int
    slot: IntArray  # (V,)
    fraction: Array  # (V,), of the way to the next slot
    joined: BoolArray  # (V - 1,), whether the values between a vertex and the next one belong to the domain
    most_nodes: int = 2**30  # of the tree; nodes without children may then have many vertices

    def __len__(self) -> int:
        return len(self.slot)

    @cached_property
    def _tree(self) -> IntArray:
        """First vertex, last vertex, left child and right child of every node, (4, N); -1 for no child."""
        return np.array(_halved(self.joined, self.most_nodes), dtype=np.int64).T

    @property
    def first(self) -> IntArray:
        """The first vertex of every node, (N,)."""
        return np.asarray(self._tree[0])

    @property
    def last(self) -> IntArray:
        """The last vertex of every node, (N,)."""
        return np.asarray(self._tree[1])

    @property
    def children(self) -> IntArray:
        """Both children of every node, (N, 2); -1 for none."""
        return self._tree[2:].T

    @cached_property
    def home(self) -> IntArray:
        """For every node the first one above it that has at most 64 vertices, or itself, (N,)."""
        home = np.arange(len(self.first))
        size = (self.last - self.first).tolist()
        for node, both in enumerate(self.children.tolist()):
            if both[0] >= 0 and size[home[node]] < _HOME:
                home[both] = home[node]
        return home

    def read(self, table: Array) -> Array:
        """Return a table (slot, ...) at all vertices, (V, ...)."""
        share = self.fraction.reshape(-1, *[1] * (table.ndim - 1))
        return np.asarray(table[self.slot] * (1 - share) + table[self.slot + (self.fraction > 0)] * share)

    def place(self, cells: Cells, vertex: IntArray) -> Cells:
        """Return the same rows with the feature at the given vertex of each row."""
        slot, fraction = cells.slot.copy(), cells.fraction.copy()
        slot[:, self.feature], fraction[:, self.feature] = self.slot[vertex], self.fraction[vertex]
        return Cells(slot, fraction)

    def largest(self, values: Array) -> Array:
        """Return the maximum of values (V, ...) within every node, (N, ...)."""
        leaves, *levels = self._levels
        out = np.empty((len(self.first), *values.shape[1:]), dtype=values.dtype)
        out[leaves] = values[self.first[leaves]]
        for step in range(1, int((self.last - self.first)[leaves].max()) + 1):
            out[leaves] = np.maximum(out[leaves], values[np.minimum(self.first + step, self.last)[leaves]])
        for nodes in levels:
            left, right = self.children[nodes].T
            out[nodes] = np.maximum(out[left], out[right])
        return out

    @cached_property
    def _levels(self) -> list[IntArray]:
        """The nodes without children, then those whose children stand in the lists before."""
        height = np.zeros(len(self.first), dtype=np.int64)
        for node, (left, right) in reversed(list(enumerate(self.children.tolist()))):
            if left >= 0:
                height[node] = 1 + max(height[left], height[right])
        return [np.flatnonzero(height == level) for level in range(int(height.max()) + 1)]

    def refined(self, moves: Array, *, step: float, most: int) -> "Domain":
        """Return the same domain with further vertices on its lines, and a tree of limited size.

        Parameters
        ----------
        moves
            How far something moves from every vertex to the next one, (V - 1,).
        step
            About how far it may move from one vertex of the result to the next one.
        most
            The tree has at most so many nodes, and the domain gets no further vertices beyond so many.
        """
        n_parts = self._parts(moves, step)
        while n_parts.max(initial=1) > 1 and n_parts.sum() >= most:
            step *= 2
            n_parts = self._parts(moves, step)
        start = np.repeat(np.arange(len(self) - 1), n_parts)
        part = np.arange(len(start)) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts)
        place = self.slot + self.fraction
        place = np.append(place[start] + part / n_parts[start] * np.diff(place)[start], place[-1])
        slot = np.floor(place).astype(np.int64)
        return Domain(self.feature, slot, place - slot, np.repeat(self.joined, n_parts), max(most, 1))

    def _parts(self, moves: Array, step: float) -> IntArray:
        """Return into how many parts every line is cut, (V - 1,)."""
        return np.where(self.joined, np.clip(np.ceil(moves / step), 1, _MOST_PARTS), 1).astype(np.int64)


def whole(model: TableModel, feature: int) -> Domain:
    """Return every value that a feature can have, *missing* and *unseen* included. A number is never unseen."""
    own, kind = model.schema.slots(feature), model.schema.features[feature]
    slots = np.arange(own.start, own.stop)
    if not isinstance(kind, Number):
        return _levels(model, feature, slots)
    if kind.is_empty:
        return _domain(feature, slots[-2:], np.zeros(2))
    return _domain(feature, slots[:-1], np.zeros(len(slots) - 1), n_joined=kind.n_values)


def between(model: TableModel, feature: int, low: float, high: float) -> Domain:
    """Return the numbers of a feature from ``low`` to ``high``; they are never missing."""
    kind, start = model.schema.features[feature], int(model.schema.offsets[feature])
    if not isinstance(kind, Number):
        raise TypeError(f"{kind.name!r} is not a number.")
    ends = np.clip([low, high], kind.knots[0], kind.knots[-1])
    inside = kind.knots[(kind.knots > ends[0]) & (kind.knots < ends[1])]
    slot, fraction = kind.locate(np.unique([ends[0], *inside, ends[1]]))
    is_whole = fraction >= 1  # the fraction was rounded up to the next knot
    return _domain(feature, slot + is_whole + start, np.where(is_whole, 0.0, fraction), n_joined=len(slot))


def among(model: TableModel, feature: int, slots: IntArray) -> Domain:
    """Return some of the slots of a feature, counted within it."""
    return _levels(model, feature, np.unique(slots) + int(model.schema.offsets[feature]))


def _levels(model: TableModel, feature: int, slots: IntArray) -> Domain:
    """Return slots in the order of their mean expert, so that the slots of a node are alike."""
    mean = model.experts[slots].mean(axis=(1, 2, 3))
    return _domain(feature, slots[np.argsort(mean, kind="stable")], np.zeros(len(slots)))


def _domain(feature: int, slot: IntArray, fraction: Array, *, n_joined: int = 0) -> Domain:
    """Return the domain of some vertices, the first ``n_joined`` of which stand on a line."""
    return Domain(feature, slot.astype(np.int64), fraction, np.arange(1, len(slot)) < n_joined)


def _halved(joined: BoolArray, most: int) -> list[tuple[int, int, int, int]]:
    """Return first, last, left and right of every node."""
    runs, children, gaps = [(0, len(joined))], [], np.flatnonzero(~joined)
    for run in runs:  # grows on the way
        halves = halves_of(*run, gaps) if len(runs) + 2 <= most else []
        children.append((len(runs), len(runs) + 1) if halves else (-1, -1))
        runs += halves
    return [(*run, *both) for run, both in zip(runs, children, strict=True)]


def halves_of(first: int, last: int, gaps: IntArray) -> list[tuple[int, int]]:
    """Return both halves of a run of vertices, or nothing for a vertex or a line between two; halves of a line meet.

    ``gaps`` are the vertices that are not joined with the next one.
    """
    middle = (first + last) // 2
    own = gaps[bisect_left(gaps, first) : bisect_left(gaps, last)] if len(gaps) else gaps
    if len(own):
        gap = int(own[np.abs(own - middle).argmin()])
        return [(first, gap), (gap + 1, last)]
    return [(first, middle), (middle, last)] if last - first > 1 else []
