"""Summaries of columns in bounded memory: exact counts of few distinct values, or a sketch of many.

The sketches are those of Apache DataSketches. They can be merged: the merged sketch of two tables equals the sketch of
their concatenation.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from nae._optional import require
from nae._typing import AnyArray, Array

__all__ = ["EXACT", "LevelSketch", "ValueSketch"]

EXACT = 1 << 16  # up to this many distinct values are counted exactly
_KLL_SIZE = 4096  # gives a rank error of 0.07 %
_LEVEL_SIZE = 16  # logarithm of the size of the frequent-items map: gives an error of 0.005 % of the rows
_PIECE = 1 << 20  # number of values added to a sketch at once
_WEIGHT_STEPS = 1024  # the frequent-items sketch counts integers; a weight of one counts as this many


class ValueSketch:
    """The distribution of a number: distinct values and their weights, or the quantiles of a KLL sketch.

    The sketch has no weights, so ``unit`` is the weight that counts as one row.
    """

    def __init__(self, *, exact: int = EXACT, unit: float = 1.0, seed: int = 0) -> None:
        self.exact, self.unit = exact, unit
        self.values: Array = np.empty(0)
        self.weights: Array = np.empty(0)
        self.kll: Any = None
        self._random = np.random.default_rng(seed)

    @property
    def is_exact(self) -> bool:
        """Whether every distinct value is known with its weight."""
        return self.kll is None

    @property
    def rank_error(self) -> float:
        """The rank error that the sketch states, as a share of the rows."""
        return 0.0 if self.kll is None else float(self.kll.normalized_rank_error(False))

    def update(self, values: Array, weights: Array | None = None) -> None:
        """Add values. None of them may be missing."""
        if self.kll is not None:
            self._feed(values, weights)
            return
        distinct, counts = _count(values, weights)
        self._add(distinct, counts)

    def merge(self, other: "ValueSketch") -> None:
        """Add what another sketch saw."""
        if other.kll is None:
            if self.kll is None:
                self._add(other.values, other.weights)
            else:
                self._feed(other.values, other.weights)
            return
        if self.kll is None:
            self._begin_sketch()
        self.kll.merge(other.kll)

    def distribution(self) -> tuple[Array, Array]:
        """Return values in ascending order, and their weights. The minimum and the maximum are always included."""
        if self.kll is None:
            return self.values, self.weights
        found = np.array([*self.kll, (self.kll.get_min_value(), 0), (self.kll.get_max_value(), 0)])
        values, weights = _combine(found[:, 0], found[:, 1])
        return values, weights * self.unit

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "kll": None if self.kll is None else self.kll.serialize()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.kll is not None:
            self.kll = require("datasketches", extra="scale").kll_doubles_sketch.deserialize(state["kll"])

    def _add(self, values: Array, weights: Array) -> None:
        self.values, self.weights = _combine(
            np.concatenate([self.values, values]), np.concatenate([self.weights, weights])
        )
        if len(self.values) > self.exact:
            self._begin_sketch()

    def _begin_sketch(self) -> None:
        self.kll = require("datasketches", extra="scale").kll_doubles_sketch(_KLL_SIZE)
        values, weights = self.values, self.weights
        self.values, self.weights = np.empty(0), np.empty(0)
        self._feed(values, weights)

    def _feed(self, values: Array, weights: Array | None) -> None:
        if weights is None:
            self.kll.update(np.ascontiguousarray(values, dtype=np.float64))
            return
        # A weight of 2.3 units becomes two copies, and a third one with probability 0.3.
        copies = np.floor(weights / self.unit + self._random.random(len(weights))).astype(np.int64)
        ends = np.cumsum(copies)
        for first in range(0, int(ends[-1]) if len(ends) else 0, _PIECE):
            at = np.searchsorted(ends, np.arange(first, min(first + _PIECE, int(ends[-1]))), side="right")
            self.kll.update(np.ascontiguousarray(values[at]))


class LevelSketch:
    """The levels of a category and their weights: all levels if there are few, otherwise the frequent ones."""

    def __init__(self, *, exact: int = EXACT) -> None:
        self.exact = exact
        self.level_counts: dict[str, float] = {}
        self.sketch: Any = None

    @property
    def is_exact(self) -> bool:
        """Whether every level is known with its weight."""
        return self.sketch is None

    def update(self, keys: AnyArray, weights: Array | None = None) -> None:
        """Add levels. None is a missing value and is not counted."""
        encoded = pa.array(keys, type=pa.large_string(), from_pandas=True).dictionary_encode()
        codes = encoded.indices
        present = np.asarray(codes.is_valid())
        numbers = np.asarray(codes.drop_null())
        counts = np.bincount(
            numbers, weights=None if weights is None else weights[present], minlength=len(encoded.dictionary)
        )
        self._add(encoded.dictionary.to_pylist(), counts.tolist())

    def merge(self, other: "LevelSketch") -> None:
        """Add what another sketch saw."""
        if other.sketch is None:
            self._add(list(other.level_counts), list(other.level_counts.values()))
            return
        if self.sketch is None:
            self._begin_sketch()
        self.sketch.merge(other.sketch)

    def counts(self) -> dict[str, float]:
        """Return the known levels and their weights. If a sketch estimates the weights, they are upper bounds."""
        if self.sketch is None:
            return self.level_counts
        kinds = require("datasketches", extra="scale").frequent_items_error_type
        found = self.sketch.get_frequent_items(kinds.NO_FALSE_NEGATIVES)
        return {level: upper / _WEIGHT_STEPS for level, _, _, upper in found}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "sketch": None if self.sketch is None else self.sketch.serialize()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.sketch is not None:
            self.sketch = require("datasketches", extra="scale").frequent_strings_sketch.deserialize(state["sketch"])

    def _add(self, levels: list[str], counts: list[float]) -> None:
        if self.sketch is not None:
            for level, count in zip(levels, counts, strict=True):
                self.sketch.update(level, max(1, round(count * _WEIGHT_STEPS)))
            return
        for level, count in zip(levels, counts, strict=True):
            self.level_counts[level] = self.level_counts.get(level, 0.0) + count
        if len(self.level_counts) > self.exact:
            self._begin_sketch()

    def _begin_sketch(self) -> None:
        self.sketch = require("datasketches", extra="scale").frequent_strings_sketch(_LEVEL_SIZE)
        counts, self.level_counts = self.level_counts, {}
        self._add(list(counts), list(counts.values()))


def _count(values: Array, weights: Array | None) -> tuple[Array, Array]:
    """Return the distinct values and the weight of each. Hashing is faster than sorting if many are equal."""
    encoded = pa.array(values).dictionary_encode()
    counts = np.bincount(np.asarray(encoded.indices), weights=weights, minlength=len(encoded.dictionary))
    return np.asarray(encoded.dictionary), counts.astype(np.float64)


def _combine(values: Array, weights: Array) -> tuple[Array, Array]:
    """Return distinct values in ascending order and the sum of the weights of each."""
    distinct, inverse = np.unique(values, return_inverse=True)
    return distinct, np.bincount(inverse, weights=weights, minlength=len(distinct)).astype(np.float64)
