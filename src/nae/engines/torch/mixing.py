"""Experts mixed by a softmax on a CPU, a few rows at a time.

For all rows at once, the tensors of a wide table have tens of megabytes each, and a step mostly waits for memory. With
a few rows, each pass finds in the cache what the pass before left there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as fn
from torch import Tensor
from torch.autograd.function import once_differentiable

from nae.engines.torch.cells import RowCells
from nae.engines.torch.dropout import Dropped
from nae.engines.torch.interpolation import sum_by_slot
from nae.engines.torch.softmax import softmax_into

__all__ = ["mix_experts"]

_BLOCK = 2**18  # expert values in a block: one megabyte in single precision


def mix_experts(
    experts: Tensor,
    logits: Tensor,
    bias: Tensor,
    cells: RowCells,
    weight: Tensor,
    *,
    n_outputs: int,
    dropped: Dropped | None = None,
) -> tuple[Tensor, Tensor]:
    """Return contributions (B, O, F, M) and the mean routing over the weighted rows, (K, F, M).

    ``experts`` are on slots, (F * S, K * O * M); ``logits`` on rows, (M, B, K * F), their ``bias`` (M, 1, K * F) apart.
    """
    rows = _Rows(cells, weight / len(weight), n_outputs, dropped)
    mixed: tuple[Tensor, Tensor] = _Mix.apply(experts, logits, bias, rows)  # type: ignore[no-untyped-call]
    return mixed


@dataclass(frozen=True)
class _Rows:
    """The parts of a batch that have no gradient."""

    cells: RowCells
    share: Tensor  # (B,), the share of each row in the mean
    n_outputs: int
    dropped: Dropped | None

    def thin(self, routing: Tensor, part: slice) -> Tensor:
        """Return the routing of some rows, with zeros in place of what is dropped."""
        return routing if self.dropped is None else self.dropped.thin(routing, part)


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, logits: Tensor, bias: Tensor, rows: _Rows) -> tuple[Tensor, Tensor]:
        cells, share, n_outputs = rows.cells, rows.share, rows.n_outputs
        n_members, n_rows, n_logits = logits.shape
        n_features = cells.slot.shape[1]
        n_experts = n_logits // n_features
        slots, weights = cells.ends()
        offset = bias[:, 0].T.contiguous()
        experts = table.new_empty(n_rows, n_experts, n_outputs, n_features, n_members)
        routing = table.new_empty(n_rows, n_experts, n_features, n_members)
        mixed = table.new_empty(n_rows, n_outputs, n_features, n_members)
        mean = torch.zeros_like(offset)
        for part in _blocks(experts):
            ends, their_weights = slots[part].flatten(0, 1), weights[part].flatten(0, 1)
            own = fn.embedding_bag(ends, table, per_sample_weights=their_weights, mode="sum")
            experts[part] = own.view(-1, n_features, n_experts, n_outputs, n_members).permute(0, 2, 3, 1, 4)
            own_logits = torch.empty_like(routing[part])
            torch.add(logits[:, part].permute(1, 2, 0), offset, out=own_logits.flatten(1, 2))
            softmax_into(routing[part], own_logits)
            used = rows.thin(routing[part], part)
            torch.sum(experts[part] * used.unsqueeze(2), dim=1, out=mixed[part])
            mean += (share[part] @ used.flatten(1)).view_as(mean)
        ctx.save_for_backward(experts, routing)
        ctx.rows, ctx.n_slots = rows, len(table)
        return mixed, mean.view(n_experts, n_features, n_members)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_mixed: Tensor, d_mean: Tensor) -> tuple[Tensor | None, ...]:
        experts, routing = ctx.saved_tensors
        rows: _Rows = ctx.rows
        n_rows, n_experts, n_outputs, n_features, n_members = experts.shape
        d_experts = experts.new_empty(n_rows, n_features, n_experts, n_outputs, n_members)
        d_logits = experts.new_empty(n_members, n_rows, n_experts * n_features)
        d_offset = experts.new_zeros(n_experts * n_features, n_members)
        for part in _blocks(experts):
            slope = d_mixed[part].unsqueeze(1)
            used = rows.thin(routing[part], part)
            d_experts[part] = (used.unsqueeze(2) * slope).permute(0, 3, 1, 2, 4)
            d_used = torch.addcmul((experts[part] * slope).sum(dim=2), rows.share[part].view(-1, 1, 1, 1), d_mean)
            parts = used * d_used
            d_own = torch.addcmul(parts, routing[part], parts.sum(dim=1, keepdim=True), value=-1).flatten(1, 2)
            d_logits[:, part] = d_own.permute(2, 0, 1)
            d_offset += d_own.sum(dim=0)
        d_table = sum_by_slot(d_experts.view(1, n_rows * n_features, -1), rows.cells, ctx.n_slots, n_ends=2)[0]
        return d_table, d_logits, d_offset.T.unsqueeze(1), None


def _blocks(experts: Tensor) -> Iterator[slice]:
    n_rows = len(experts)
    size = max(1, _BLOCK // max(1, experts[:1].numel()))
    for first in range(0, n_rows, size):
        yield slice(first, min(first + size, n_rows))
