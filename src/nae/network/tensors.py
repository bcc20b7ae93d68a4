"""How weights are drawn, applied to hidden units, and brought to numpy."""

import numpy as np
import torch
from torch import Tensor, nn

from nae._typing import Array

__all__ = ["project", "to_numpy", "uniform"]


def uniform(*shape: int, bound: float, generator: torch.Generator) -> nn.Parameter:
    """Return a parameter drawn uniformly from [-bound, bound]."""
    return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound, generator=generator))


def project(hidden: Tensor, weight: Tensor) -> Tensor:
    """Apply the weights of each feature and member: (M, F, N, hidden), (F, hidden, C, M) -> (M, F, N, C)."""
    each = weight.permute(3, 0, 1, 2)  # (M, F, hidden, C)
    return torch.bmm(hidden.flatten(0, 1), each.flatten(0, 1)).view(*hidden.shape[:3], -1)


def to_numpy(tensor: Tensor) -> Array:
    """Return a tensor as an array of double precision."""
    return tensor.detach().to("cpu", torch.float64).numpy().astype(np.float64)
