"""The largest value of a function on nodes: runs of vertices, between which the function is convex or linear."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from nae._typing import Array, BoolArray, IntArray

__all__ = ["Nodes", "has", "homes", "peak"]


class Nodes(Protocol):
    """Nodes as runs of vertices."""

    @property
    def first(self) -> IntArray:
        """The first vertex of every node, (N,)."""

    @property
    def last(self) -> IntArray:
        """The last vertex of every node, (N,)."""

    @property
    def home(self) -> IntArray:
        """For every node one that it is a part of, (N,)."""

    @property
    def joined(self) -> BoolArray:
        """Whether the values between a vertex and the next one count, (V - 1,)."""


def peak(one: Array, other: Array, has: tuple[BoolArray, BoolArray]) -> Array:
    """Return the largest minimum, at some vertices and lines, of two functions that are convex between vertices."""
    vertex, line = has
    best = np.where(vertex, np.minimum(one, other), -np.inf).max(axis=-1)
    ends = (np.maximum(part[..., 1:], part[..., :-1]) for part in (one, other))
    return np.asarray(np.maximum(best, np.where(line, np.minimum(*ends), -np.inf).max(axis=-1, initial=-np.inf)))


def has(nodes: Nodes, some: IntArray, start: int, stop: int) -> tuple[BoolArray, BoolArray]:
    """Return which of the vertices from ``start`` to ``stop``, and which lines between two, some nodes have."""
    at = np.arange(start, stop)
    vertex = (at >= nodes.first[some, None]) & (at <= nodes.last[some, None])
    return vertex, vertex[:, 1:] & vertex[:, :-1] & nodes.joined[start : stop - 1]


def homes(nodes: Nodes, every: IntArray, some: IntArray) -> Iterator[tuple[int, int, IntArray]]:
    """Yield runs of vertices, and which of ``some`` of the nodes lie within each."""
    home = nodes.home[every[some]]
    order = np.argsort(home, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(home[order])) + 1):
        if len(part):
            node = home[part[0]]
            yield int(nodes.first[node]), int(nodes.last[node]) + 1, some[part]
