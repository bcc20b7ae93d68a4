"""How weights become parameters and are applied to hidden units."""

import torch
from torch import Tensor, nn

from nae._typing import AnyArray

__all__ = ["parameter", "project"]


def parameter(array: AnyArray) -> nn.Parameter:
    """Return a parameter that begins as a copy of an array."""
    return nn.Parameter(torch.tensor(array))


def project(hidden: Tensor, weight: Tensor) -> Tensor:
    """Apply the weights of each feature and member: (M, F, N, hidden), (F, hidden, C, M) -> (M, F, N, C)."""
    each = weight.permute(3, 0, 1, 2)  # (M, F, hidden, C)
    return torch.bmm(hidden.flatten(0, 1), each.flatten(0, 1)).view(*hidden.shape[:3], -1)
