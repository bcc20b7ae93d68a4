"""Runs of vertices: the largest of values within each, and lines that are halved."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from nae._typing import AnyArray, Array, IntArray

__all__ = ["Lines", "Runs"]


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of vertices, from a first to a last one."""

    vertices: IntArray  # of all runs, one after another
    starts: IntArray  # where each run begins among them

    @classmethod
    def of(cls, first: IntArray, last: IntArray) -> Self:
        """Return the runs from ``first`` to ``last``."""
        sizes = last - first + 1
        ends = np.cumsum(sizes)
        within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - sizes, sizes)
        return cls(np.repeat(first, sizes) + within, ends - sizes)

    def largest(self, values: Array, *, axis: int = 0) -> Array:
        """Return the largest of values at all vertices within each run."""
        return np.asarray(np.maximum.reduceat(values.take(self.vertices, axis=axis), self.starts, axis=axis))

    def least(self, values: Array, *, axis: int = 0) -> Array:
        """Return the least of values at all vertices within each run."""
        return np.asarray(np.minimum.reduceat(values.take(self.vertices, axis=axis), self.starts, axis=axis))


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines between two vertices that are halved.

    Each gets four new vertices: one end, its middle twice, and the other end. So both halves are runs of their own.
    """

    first: IntArray
    last: IntArray

    def __len__(self) -> int:
        return len(self.first)

    def at(self, values: AnyArray, *, axis: int = 0) -> AnyArray:
        """Return values at the new vertices, given those at all vertices before; they are linear in between."""
        one, other = values.take(self.first, axis=axis), values.take(self.last, axis=axis)
        middle = (one + other) / 2
        found = np.stack([one, middle, middle, other], axis=axis + 1)
        return found.reshape(*values.shape[:axis], -1, *values.shape[axis + 1 :])
