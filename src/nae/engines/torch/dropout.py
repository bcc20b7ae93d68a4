"""Which expert weights a step drops: the same ones on every device."""

from dataclasses import dataclass

import torch
from torch import Tensor

from nae.engines.torch.noise import random_bytes
from nae.training.dropout import CHANCES, count_kept

__all__ = ["Dropped", "drop"]


@dataclass(frozen=True)
class Dropped:
    """The weights that a step keeps. They are scaled up by a factor, so that the mean stays what it was."""

    kept: Tensor  # (B, K, F, M), boolean
    factor: float

    def thin(self, routing: Tensor, rows: slice = slice(None)) -> Tensor:
        """Return the weights of some rows, with zeros in place of those that are dropped."""
        return routing * self.kept[rows].to(routing.dtype).mul_(self.factor)


def drop(shape: torch.Size, share: float, counter: Tensor) -> Dropped | None:
    """Draw which weights are dropped: ``share`` of them, rounded to a 256th. Return None if that is none of them."""
    n_kept = count_kept(share)
    if n_kept == CHANCES:
        return None
    return Dropped((random_bytes(shape.numel(), counter) < n_kept).view(shape), CHANCES / n_kept)
