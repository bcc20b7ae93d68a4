"""Rows and Task: what is learned from which rows, read and checked, still as numpy arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nae._typing import AnyArray, Array, IntArray
from nae.encoding import Columns
from nae.encoding.beside import read_offset
from nae.encoding.columns import category_keys, numbers
from nae.encoding.fingerprint import row_digests
from nae.quality import Criterion
from nae.tables.summary import TrainingSummary
from nae.training import Loss
from nae.training.assemble import Scale

__all__ = ["Rows", "Task"]


@dataclass(frozen=True, eq=False)
class Rows:
    """A table with its target, weights and offset, as numpy arrays."""

    columns: Columns
    target: AnyArray  # (B, O) numbers or (B,) classes
    weight: Array  # (B,)
    offset: Array | None  # (B, O)
    fold: IntArray | None = None  # (B,), the fold of each row
    count: Array | None = None  # (B,), row multiplicities, if the weights include class weights

    def __len__(self) -> int:
        return len(self.weight)

    def take(self, rows: IntArray) -> "Rows":
        offset = None if self.offset is None else self.offset[rows]
        fold = None if self.fold is None else self.fold[rows]
        count = None if self.count is None else self.count[rows]
        return Rows(self.columns.take(rows), self.target[rows], self.weight[rows], offset, fold, count)

    def with_folds(self, fold: IntArray) -> "Rows":
        """Return the same rows with a fold each."""
        return replace(self, fold=fold)

    def repeated(self) -> "Rows":
        """Return each row as often as its weight says if all weights are whole, and the rows as they are otherwise."""
        counts = self.weight if self.count is None else self.count
        if not np.all(counts == np.rint(counts)):
            return self
        found = self.take(np.repeat(np.arange(len(self)), counts.astype(np.int64)))
        weight = found.weight if found.count is None else found.weight / found.count
        return replace(found, weight=np.ones(len(found)) if found.count is None else weight, count=None)

    def digests(self, kinds: Sequence[str], *, key: bytes) -> AnyArray:
        """Return a number per row, equal for rows with equal features, target and offset. Weights are ignored."""
        columns = [
            category_keys(array) if kind == "category" else numbers(array, "")
            for array, kind in zip(self.columns.arrays, kinds, strict=True)
        ]
        beside = [self.target] if self.offset is None else [self.target, self.offset]
        return row_digests(*columns, *(part for array in beside for part in np.atleast_2d(array.T)), key=key)

    def count_held_out(self, n_members: int) -> int:
        """Return how many rows are held out by one of the members."""
        return 0 if self.fold is None else int((self.fold < n_members).sum())


@dataclass(frozen=True, eq=False)
class Task:
    """What is predicted: loss, scale of the score, names."""

    loss: Loss
    scale: Scale
    outputs: tuple[str, ...]
    classes: tuple[str, ...] = ()
    """The names of the classes; none are for numbers."""
    labels: AnyArray | None = None
    """The classes as ``y`` has them."""
    class_weight: Array | None = None  # (class,), by which training multiplies the weights of the rows
    positive: str = ""
    """The class that the score of a two-class model speaks for. Training itself always learns the second class."""

    @property
    def is_mirrored(self) -> bool:
        """Whether that is the first class, so that offsets and the score change their sign."""
        return len(self.classes) == 2 and self.positive == self.classes[0]

    def read_offset(self, offset: Any, n_rows: int) -> Array | None:
        """Return the offset of so many rows, one column per output."""
        is_per_class = len(self.classes) > 2
        return read_offset(offset, n_rows, len(self.outputs), is_per_class=is_per_class, is_mirrored=self.is_mirrored)

    @property
    def summary(self) -> TrainingSummary:
        """What a model remembers of its loss."""
        option = {} if self.loss.option is None else {self.loss.option[0]: float(self.loss.option[1])}
        delta = option.get("huber_delta")
        return TrainingSummary(
            loss=self.loss.name,
            quantile=option.get("quantile"),
            tweedie_power=option.get("tweedie_power"),
            huber_delta=delta,
            huber_threshold=None if delta is None else tuple((delta * self.scale.unit).tolist()),
        )

    @property
    def criterion(self) -> Criterion:
        """The loss as it is measured."""
        return Criterion.of(self.summary)
