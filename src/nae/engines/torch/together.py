"""Workers that share a training by torch's messages."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from nae._typing import Array

__all__ = ["Together"]


class Together:
    """The processes of torch's default group, which must exist.

    Every worker computes the same objective from means over all workers. These means pass gradients back as means, too,
    since a mean inside a mean (the routing in the dial) reaches the rows of all workers. The gradient of the objective
    is then the mean of the workers' gradients.
    """

    @property
    def count(self) -> int:
        return dist.get_world_size()

    @property
    def rank(self) -> int:
        return dist.get_rank()

    def total(self, values: Any) -> Array:
        summed = torch.tensor(np.asarray(values, dtype=np.float64))
        dist.all_reduce(summed)
        return np.asarray(summed.numpy())

    def agree(self, value: Any) -> Any:
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def gather(self, value: Any) -> list[Any]:
        found: list[Any] = [None] * self.count
        dist.all_gather_object(found, value)
        return found

    def mean(self, values: Tensor) -> Tensor:
        averaged: Tensor = _Mean.apply(values)  # type: ignore[no-untyped-call]
        return averaged

    def average_gradients(self, parameters: Iterable[Tensor]) -> None:
        # One message is faster than one per parameter, and a network has a few megabytes at most.
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        flat /= self.count
        parts = flat.split([gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return _averaged(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return _averaged(gradients[0])


def _averaged(values: Tensor) -> Tensor:
    summed = values.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(summed)
    return summed / dist.get_world_size()
