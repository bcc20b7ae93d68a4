"""The cells of a batch as tensors."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

__all__ = ["RowCells"]


@dataclass(frozen=True)
class RowCells:
    """The cells of a batch. Positions count the slots of all features, each padded to the one with most slots."""

    slot: Tensor  # (B, F), integers
    fraction: Tensor  # (B, F)

    def ends(self) -> tuple[Tensor, Tensor]:
        """Return the two slots that every cell lies between, and their weights; (B, F, 2) each."""
        both = torch.stack([self.slot, self.slot + (self.fraction > 0)], dim=-1)
        return both, torch.stack([1 - self.fraction, self.fraction], dim=-1)

    @cached_property
    def ends_by_slot(self) -> tuple[Tensor, Tensor, Tensor]:
        """The ends of all cells in the order of their slots: slots, weights, and positions among ``ends()``."""
        slots, weights = self.ends()
        in_order, positions = slots.flatten().sort(stable=True)
        return in_order, weights.flatten()[positions], positions

    def take(self, rows: Tensor) -> "RowCells":
        """Return the cells of some rows."""
        return RowCells(self.slot[rows], self.fraction[rows])
