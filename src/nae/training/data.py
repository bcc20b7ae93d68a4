"""Rows as tensors: cells, target, weight and offset."""

from dataclasses import dataclass

import torch
from torch import Tensor

from nae.network.cells import RowCells

__all__ = ["TrainingRows"]


@dataclass(frozen=True)
class TrainingRows:
    """Rows of a table and their targets."""

    cells: RowCells
    target: Tensor  # (B, O) numbers, or (B,) class numbers
    weight: Tensor  # (B,), mean one over the training rows
    base: Tensor | None  # (B, O), added to the score: offset on the scale of training
    fold: Tensor | None = None  # (B,), the member that must not see the row; others see it

    def __len__(self) -> int:
        return len(self.weight)

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

    def is_held_out(self, n_members: int) -> Tensor | None:
        """Return which member holds out which row, (B, M)."""
        if self.fold is None:
            return None
        return self.fold.unsqueeze(-1) == torch.arange(n_members, device=self.fold.device)
