"""From tables on slots to values on rows, and back with gradients.

Two ways to the same numbers. On a CPU a bag of two slots per cell touches only what it needs. On a GPU the weights of
the slots are written out as a matrix and the product left to its matrix units: no atomics, so runs repeat exactly, and
nothing that a graph could not capture.
"""

import torch
import torch.nn.functional as fn
from torch import Tensor

from nae.network.cells import RowCells

__all__ = ["interpolate", "interpolate_sum"]


def interpolate(table: Tensor, cells: RowCells) -> Tensor:
    """Return the table's rows at every cell: (F * S, C) -> (B, F, C)."""
    n_rows, n_features = cells.slot.shape
    if table.is_cuda:
        weights = _dense_weights(cells, len(table)).transpose(0, 1)  # (F, B, S)
        return torch.bmm(weights, table.view(n_features, -1, table.shape[1])).transpose(0, 1)
    slots, weights = cells.ends()
    bags = fn.embedding_bag(slots.view(-1, 2), table, per_sample_weights=weights.view(-1, 2), mode="sum")
    return bags.view(n_rows, n_features, -1)


def interpolate_sum(table: Tensor, cells: RowCells) -> Tensor:
    """Return the sum over the features of the table's rows: (F * S, C) -> (B, C)."""
    if table.is_cuda:
        return _dense_weights(cells, len(table)).flatten(1) @ table
    slots, weights = cells.ends()
    return fn.embedding_bag(slots.flatten(1), table, per_sample_weights=weights.flatten(1), mode="sum")


def _dense_weights(cells: RowCells, n_slots: int) -> Tensor:
    """Return the weight of every slot for every row, (B, F, S); zero but for one or two slots of a feature."""
    n_rows, n_features = cells.slot.shape
    per_feature = n_slots // n_features
    start = torch.arange(n_features, device=cells.slot.device) * per_feature
    slots, weights = cells.ends()
    dense = torch.zeros(n_rows, n_features, per_feature, device=weights.device, dtype=weights.dtype)
    return dense.scatter_add_(2, slots - start.view(1, -1, 1), weights)
