"""Rows as tensors, and where a training takes its batches from."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from nae._typing import AnyArray, Array
from nae.network.cells import RowCells

__all__ = ["VALIDATION_ROWS", "RowSource", "Scored", "TrainingRows", "own_folds"]

VALIDATION_ROWS = 50_000  # held-out rows that are judged by, at most: more of them tell nothing new


def own_folds(n_members: int, n_folds: int | None) -> Tensor:
    """Return the fold that each member holds out: in turn, or one of its own if ``n_folds`` is None."""
    return torch.arange(n_members) % (n_folds or n_members)


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
        """The rows that batches point into. Its tensors stay where they are: a captured step reads them again."""

    def __len__(self) -> int:
        """Return the number of training rows."""

    def batches(self, n_batches: int, batch_size: int, generator: torch.Generator) -> Iterator[Tensor]:
        """Yield the batches of one epoch as positions in the window, which holds their rows until the next one."""

    def held_out(self, n_members: int) -> "TrainingRows | None":
        """Return rows that members are validated on, as many as a validation needs; None where none are held out."""

    def slot_weight(self, n_slots: int) -> Tensor:
        """Return how much weight lies at each padded slot."""

    def whole(self) -> "TrainingRows | None":
        """Return all training rows; None where they are not in one place."""

    def scored(self, score: "Callable[[TrainingRows], Array]") -> list[Scored]:
        """Return all the rows with their scores, in parts; ``score`` is asked once for every row."""


@dataclass(frozen=True)
class TrainingRows:
    """Rows of a table and their targets; as a source of batches, all of them are the window."""

    cells: RowCells
    target: Tensor  # (B, O) numbers, or (B,) class numbers
    weight: Tensor  # (B,), mean one over the training rows
    base: Tensor | None  # (B, O), added to the score: offset on the scale of training
    fold: Tensor | None = None  # (B,), members with this fold must not see the row; others see it

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def window(self) -> "TrainingRows":
        return self

    def take(self, rows: Tensor) -> "TrainingRows":
        """Return some of the rows."""
        base = None if self.base is None else self.base[rows]
        fold = None if self.fold is None else self.fold[rows]
        return TrainingRows(self.cells.take(rows), self.target[rows], self.weight[rows], base, fold)

    def to(self, device: torch.device) -> "TrainingRows":
        """Return the same rows on a device."""
        base = None if self.base is None else self.base.to(device)
        fold = None if self.fold is None else self.fold.to(device)
        cells = RowCells(self.cells.slot.to(device), self.cells.fraction.to(device))
        return TrainingRows(cells, self.target.to(device), self.weight.to(device), base, fold)

    def whole(self) -> "TrainingRows":
        return self

    def shifted(self, score: Tensor) -> Tensor:
        """Return scores (B, O, M) of these rows with what is added to them."""
        return score if self.base is None else score + self.base.unsqueeze(-1)

    def is_held_out(self, own_fold: Tensor) -> Tensor | None:
        """Return which member holds out which row, (B, M), from the fold of every member."""
        return None if self.fold is None else self.fold.unsqueeze(-1) == own_fold

    def batches(self, n_batches: int, batch_size: int, generator: torch.Generator) -> Iterator[Tensor]:
        if n_batches == 1:
            yield torch.arange(len(self), device=self.weight.device)
            return
        # A few rows are left over; in every epoch these are other ones.
        order = torch.randperm(len(self), generator=generator)[: n_batches * batch_size]
        yield from order.view(n_batches, -1).to(self.weight.device)

    def held_out(self, n_members: int) -> "TrainingRows | None":
        if self.fold is None:
            return None
        found = torch.nonzero(self.fold < n_members).flatten()
        return self.take(found[:: -(-len(found) // VALIDATION_ROWS)])

    def slot_weight(self, n_slots: int) -> Tensor:
        slots, weights = self.cells.ends()
        total = torch.zeros(n_slots, device=self.weight.device, dtype=self.weight.dtype)
        return total.index_add_(0, slots.flatten(), (weights * self.weight.view(-1, 1, 1)).flatten())

    def scored(self, score: "Callable[[TrainingRows], Array]") -> list[Scored]:
        return [Scored(score(self), self.target.cpu().numpy(), self.weight.cpu().numpy())]
