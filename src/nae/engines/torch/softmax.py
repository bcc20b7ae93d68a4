"""The softmax over experts, the same to the last bit for any number of threads.

On a CPU, torch divides the rows of a softmax among its threads, and where the part of a thread ends it computes single
numbers by another exponential than whole vectors, which differs in the last bit. The operations here treat every number
alike, wherever it lies.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["log_softmax", "softmax", "softmax_into"]


def softmax(logits: Tensor) -> Tensor:
    """Return the softmax over the second axis; a logit of minus infinity counts nothing."""
    if logits.device.type != "cpu":
        return logits.softmax(dim=1)
    found: Tensor = _Softmax.apply(logits)  # type: ignore[no-untyped-call]
    return found


def log_softmax(logits: Tensor) -> Tensor:
    """Return the logarithm of the softmax over the second axis."""
    if logits.device.type != "cpu":
        return logits.log_softmax(dim=1)
    shifted = logits - logits.detach().amax(dim=1, keepdim=True)
    return shifted - shifted.exp().sum(dim=1, keepdim=True).log()


def softmax_into(out: Tensor, logits: Tensor) -> None:
    """Write the softmax over the second axis into ``out``; ``logits`` are used up."""
    logits -= logits.amax(dim=1, keepdim=True)
    logits.exp_()
    torch.div(logits, logits.sum(dim=1, keepdim=True), out=out)


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        shares = torch.empty_like(logits)
        softmax_into(shares, logits.clone())
        ctx.save_for_backward(shares)
        return shares

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> Tensor:
        (shares,) = ctx.saved_tensors
        parts = shares * slope
        return torch.addcmul(parts, shares, parts.sum(dim=1, keepdim=True), value=-1)
