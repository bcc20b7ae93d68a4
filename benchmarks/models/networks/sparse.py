"""Sparse shares: the 1.5-entmax of Peters et al. (2019), for many options and for two.

The package ``entmax`` has it as well; these few lines avoid the dependency.
"""

from typing import Any

import torch
from torch import Tensor

__all__ = ["entmax", "entmoid"]


def entmax(logits: Tensor) -> Tensor:
    """Return shares over the last axis that sum to 1. Small logits have a share of exactly 0."""
    shares: Tensor = _Entmax.apply(logits)  # type: ignore[no-untyped-call]
    return shares


def entmoid(logits: Tensor) -> Tensor:
    """Return the share of the first of two choices with logits ``logits`` and 0: exactly 0 below -2 and 1 above 2."""
    half = (logits / 2).clamp(-1, 1)
    return ((half + (2 - half.square()).sqrt()) / 2).square()


class _Entmax(torch.autograd.Function):
    """Shares are (logits / 2 - threshold)² above the threshold at which they sum to 1."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        halves = (logits - logits.amax(dim=-1, keepdim=True)) / 2
        ordered = halves.sort(dim=-1, descending=True).values
        count = torch.arange(1, logits.shape[-1] + 1, device=logits.device, dtype=logits.dtype)
        # For the largest k logits alone, the threshold solves a quadratic in their mean and their spread.
        mean = ordered.cumsum(dim=-1) / count
        spread = ordered.square().cumsum(dim=-1) - count * mean.square()
        thresholds = mean - ((1 - spread) / count).clamp(min=0).sqrt()
        n_chosen = (thresholds <= ordered).sum(dim=-1, keepdim=True)
        shares = (halves - thresholds.gather(-1, n_chosen - 1)).clamp(min=0).square()
        ctx.save_for_backward(shares)
        return shares

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (shares,) = ctx.saved_tensors
        root = shares.sqrt()
        weighted = gradient * root
        found: Tensor = weighted - root * weighted.sum(dim=-1, keepdim=True) / root.sum(dim=-1, keepdim=True)
        return found
