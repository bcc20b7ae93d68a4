"""Rows and Task: the rows as checked numpy arrays, and the task to learn from them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

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
        """Return the same rows with the fold of each row."""
        return replace(self, fold=fold)

    def repeated(self) -> "Rows":
        """Return each row as often as its weight says, if all weights are whole. Otherwise return the same rows."""
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
    """What to learn: the loss, the scale of the score, and the names of outputs and classes."""

    loss: Loss
    scale: Scale
    outputs: tuple[str, ...]
    classes: tuple[str, ...] = ()
    """The names of the classes; empty for a regression."""
    labels: AnyArray | None = None
    """The classes as ``y`` has them."""
    class_weight: Array | None = None  # (class,), factors of the rows' weights in training
    positive: str = ""
    """The class that the score of a two-class model speaks for. Training itself always learns the second class."""
    calibrate: bool | Literal["auto"] = False
    """Whether the score is calibrated on the rows that members hold out."""
    begin: Array | None = None
    """Where the score of training begins, (output,). If None, at zero."""

    @property
    def n_targets(self) -> int:
        """The number of columns of the target: one for classes, and for several quantiles of one number."""
        return 1 if self.classes or self.loss.levels else len(self.outputs)

    @property
    def is_mirrored(self) -> bool:
        """Whether this is the first class, so that offsets and the score change their sign."""
        return len(self.classes) == 2 and self.positive == self.classes[0]

    def read_offset(self, offset: Any, n_rows: int) -> Array | None:
        """Return the offset of ``n_rows`` rows, with one column per output, or one for several quantiles."""
        is_per_class = len(self.classes) > 2
        n_columns = len(self.outputs) if is_per_class else self.n_targets
        return read_offset(offset, n_rows, n_columns, is_per_class=is_per_class, is_mirrored=self.is_mirrored)

    @property
    def summary(self) -> TrainingSummary:
        """The entries about the loss in the model's training summary."""
        option: dict[str, Any] = {} if self.loss.option is None else dict([self.loss.option])
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
        """The loss for measuring the quality."""
        return Criterion.of(self.summary)
