"""Interpolation from tables on slots to values on rows, with gradients.

There are two ways to the same numbers. On a CPU, a bag of two slots per cell touches only the memory that it needs. On
a GPU, the weights of the slots are written out as a matrix, and the matrix units do the rest. This way needs no atomic
operations, so runs repeat exactly, and a CUDA graph can capture it.
"""

from typing import Any

import torch
import torch.nn.functional as fn
from torch import Tensor
from torch.autograd.function import once_differentiable

from nae.engines.torch.cells import RowCells

__all__ = ["interpolate", "interpolate_sum", "sum_by_slot"]


def interpolate(table: Tensor, cells: RowCells) -> Tensor:
    """Return the table's rows at every cell: (F * S, C) -> (B, F, C)."""
    return _multiply(table, cells) if table.is_cuda else _gather(table, cells)


def interpolate_sum(tables: Tensor, cells: RowCells) -> Tensor:
    """Return the sum over the features of the rows of every member's table: (M, F * S, C) -> (M, B, C)."""
    return _multiply_and_sum(tables, cells) if tables.is_cuda else _gather_and_sum(tables, cells)


def _multiply(table: Tensor, cells: RowCells) -> Tensor:
    weights = _dense_weights(cells, len(table)).transpose(0, 1)  # (F, B, S)
    return torch.bmm(weights, table.view(len(weights), -1, table.shape[1])).transpose(0, 1)


def _multiply_and_sum(tables: Tensor, cells: RowCells) -> Tensor:
    n_members, n_slots, n_columns = tables.shape
    sums = _dense_weights(cells, n_slots).flatten(1) @ tables.permute(1, 2, 0).flatten(1)
    return sums.view(len(sums), n_columns, n_members).permute(2, 0, 1)


def _gather(table: Tensor, cells: RowCells) -> Tensor:
    bags: Tensor = _Bags.apply(table.unsqueeze(0), cells, 2)  # type: ignore[no-untyped-call]
    return bags.view(*cells.slot.shape, table.shape[1])


def _gather_and_sum(tables: Tensor, cells: RowCells) -> Tensor:
    sums: Tensor = _Bags.apply(tables, cells, 2 * cells.slot.shape[1])  # type: ignore[no-untyped-call]
    return sums


class _Bags(torch.autograd.Function):
    """Weighted sums of table rows, (M, F * S, C) -> (M, bags, C); a bag has the rows of ``n_ends`` successive ends.

    The gradient is made of bags, too: a slot's bag holds the sums that the slot was part of. The gradient that torch
    has would add them up one by one.
    """

    @staticmethod
    def forward(ctx: Any, tables: Tensor, cells: RowCells, n_ends: int) -> Tensor:
        ctx.cells, ctx.n_slots, ctx.n_ends = cells, tables.shape[1], n_ends
        slots, weights = (each.flatten() for each in cells.ends())
        starts = torch.arange(0, len(slots), n_ends)
        return _sum_bags(tables, slots, starts, weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_sums: Tensor) -> tuple[Tensor | None, ...]:
        return sum_by_slot(d_sums, ctx.cells, ctx.n_slots, n_ends=ctx.n_ends), None, None


def sum_by_slot(values: Tensor, cells: RowCells, n_slots: int, *, n_ends: int) -> Tensor:
    """Return the weighted sum of the bags that each slot is part of: (M, bags, C) -> (M, F * S, C)."""
    slots, weights, positions = cells.ends_by_slot
    bags = torch.div(positions, n_ends, rounding_mode="floor")
    return _sum_bags(values.contiguous(), bags, torch.searchsorted(slots, torch.arange(n_slots)), weights)


def _sum_bags(tables: Tensor, rows: Tensor, starts: Tensor, weights: Tensor) -> Tensor:
    """Return weighted sums of the rows of every table. A bag reaches from one of the starts to the next."""
    n_tables, n_rows, width = tables.shape
    member = torch.arange(n_tables).unsqueeze(1)
    sums = fn.embedding_bag(
        (rows + member * n_rows).flatten(),
        tables.flatten(0, 1),
        (starts + member * len(rows)).flatten(),
        per_sample_weights=weights.repeat(n_tables),
        mode="sum",
    )
    return sums.view(n_tables, len(starts), width)


def _dense_weights(cells: RowCells, n_slots: int) -> Tensor:
    """Return the weight of every slot in every row, (B, F, S). One or two slots of a feature have one."""
    n_rows, n_features = cells.slot.shape
    per_feature = n_slots // n_features
    start = torch.arange(n_features, device=cells.slot.device) * per_feature
    slots, weights = cells.ends()
    dense = torch.zeros(n_rows, n_features, per_feature, device=weights.device, dtype=weights.dtype)
    return dense.scatter_add_(2, slots - start.view(1, -1, 1), weights)
