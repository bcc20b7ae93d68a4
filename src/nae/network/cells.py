"""Cells of a batch as tensors."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

__all__ = ["RowCells"]


@dataclass(frozen=True)
class RowCells:
    """Cells of a batch, positions counted through the padded tables."""

    slot: Tensor  # (B, F), integers
    fraction: Tensor  # (B, F)

    def ends(self) -> tuple[Tensor, Tensor]:
        """Return both slots and both weights of every cell, (B, F, 2) each."""
        both = torch.stack([self.slot, self.slot + (self.fraction > 0)], dim=-1)
        return both, torch.stack([1 - self.fraction, self.fraction], dim=-1)

    @cached_property
    def ends_by_slot(self) -> tuple[Tensor, Tensor, Tensor]:
        """The slots of all ends in ascending order, their weights, and their positions among ``ends()``."""
        slots, weights = self.ends()
        in_order, positions = slots.flatten().sort(stable=True)
        return in_order, weights.flatten()[positions], positions

    def take(self, rows: Tensor) -> "RowCells":
        """Return the cells of some rows."""
        return RowCells(self.slot[rows], self.fraction[rows])
