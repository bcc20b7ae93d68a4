"""Rows as arrays, and where a training takes its batches from."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nae._typing import AnyArray, Array, IntArray
from nae.encoding import Cells

__all__ = ["VALIDATION_ROWS", "RowSource", "Scored", "TrainingRows", "own_folds"]

VALIDATION_ROWS = 50_000  # held-out rows that are judged by, at most: more of them tell nothing new


def own_folds(n_members: int, n_folds: int | None) -> IntArray:
    """Return the fold that each member holds out: in turn, or one of its own if ``n_folds`` is None."""
    return np.arange(n_members) % (n_folds or n_members)


@dataclass(frozen=True, eq=False)
class Scored:
    """Rows with the score that a model gives them; the arrays may lie on disk."""

    score: Array  # (B, O), on the scale of training, offset included
    target: AnyArray  # (B, O) numbers, or (B,) class numbers
    weight: Array  # (B,)

    def __len__(self) -> int:
        return len(self.weight)


class RowSource(Protocol):
    """Where batches come from: rows in memory, or a window that moves over more rows than memory holds."""

    @property
    def window(self) -> "TrainingRows":
        """The rows that batches point into. Its arrays stay where they are."""

    @property
    def n_moves(self) -> int:
        """How often the window has been filled with other rows."""

    def __len__(self) -> int:
        """Return the number of training rows."""

    def batches(self, n_batches: int, batch_size: int, random: np.random.Generator) -> Iterator[IntArray]:
        """Yield the batches of one epoch as positions in the window, which holds their rows until the next one."""

    def held_out(self, n_members: int) -> "TrainingRows | None":
        """Return rows that members are validated on, as many as a validation needs; None where none are held out."""

    def slot_weight(self, n_slots: int) -> Array:
        """Return how much weight lies at each padded slot."""

    def whole(self) -> "TrainingRows | None":
        """Return all training rows; None where they are not in one place."""

    def scored(self, score: "Callable[[TrainingRows], Array]") -> list[Scored]:
        """Return all the rows with their scores, in parts; ``score`` is asked once for every row."""


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows of a table and their targets; as a source of batches, all of them are the window."""

    cells: Cells
    """Positions count the slots of all features, each padded to the feature with most slots."""
    target: AnyArray  # (B, O) numbers, or (B,) class numbers
    weight: AnyArray  # (B,), mean one over the training rows
    base: AnyArray | None  # (B, O), added to the score: offset on the scale of training
    fold: IntArray | None = None  # (B,), members with this fold must not see the row; others see it

    n_moves = 0

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def window(self) -> "TrainingRows":
        return self

    def take(self, rows: AnyArray | slice) -> "TrainingRows":
        """Return some of the rows."""
        base = None if self.base is None else self.base[rows]
        fold = None if self.fold is None else self.fold[rows]
        return TrainingRows(self.cells.take(rows), self.target[rows], self.weight[rows], base, fold)

    def whole(self) -> "TrainingRows":
        return self

    def batches(self, n_batches: int, batch_size: int, random: np.random.Generator) -> Iterator[IntArray]:
        if n_batches == 1:
            yield np.arange(len(self))
            return
        # A few rows are left over; in every epoch these are other ones.
        order = random.permutation(len(self))[: n_batches * batch_size]
        yield from order.reshape(n_batches, -1)

    def held_out(self, n_members: int) -> "TrainingRows | None":
        if self.fold is None:
            return None
        found = np.flatnonzero(self.fold < n_members)
        return self.take(found[:: -(-len(found) // VALIDATION_ROWS) or 1])

    def slot_weight(self, n_slots: int) -> Array:
        weight, fraction = self.weight[:, None].astype(np.float64), self.cells.fraction
        lower = np.bincount(self.cells.slot.ravel(), ((1 - fraction) * weight).ravel(), minlength=n_slots)
        upper = np.bincount(self.cells.upper.ravel(), (fraction * weight).ravel(), minlength=n_slots)
        return np.asarray(lower + upper, dtype=np.float64)

    def scored(self, score: "Callable[[TrainingRows], Array]") -> list[Scored]:
        return [Scored(score(self), self.target, self.weight)]
