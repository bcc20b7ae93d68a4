"""What padded tables hold at slots that no row trains: the mean of those that rows do train.

Rows for validation may hold what no training row does; they are judged by these tables.
"""

import torch
from torch import Tensor

__all__ = ["fill_padded"]


def fill_padded(table: Tensor, slot_weight: Tensor, has_no_input: Tensor) -> Tensor:
    """Return padded tables (..., F * S, width) whose untrained slots hold the mean of their feature.

    ``slot_weight`` (F, S) is how much of the training rows lies at each slot. A slot is untrained if no row lies there
    and it ``has_no_input`` (F, S); the network gives the others a value of their own.
    """
    share = slot_weight / slot_weight.sum(dim=1, keepdim=True)
    is_untrained = (slot_weight == 0) & has_no_input
    own = table.unflatten(-2, slot_weight.shape)
    mean = (share.unsqueeze(-1) * own).sum(dim=-2, keepdim=True)
    return torch.where(is_untrained.unsqueeze(-1), mean, own).flatten(-3, -2)
