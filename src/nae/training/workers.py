"""Workers: one process that trains alone, or several with the same network and different rows of each batch.

All that a step averages over its rows, with its gradients, is averaged over the workers, too. Several workers therefore
take the step that one process would take on all rows, provided that local batches are of one size.
"""

from collections.abc import Iterable
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["ALONE", "Alone", "Together", "Workers"]


class Workers(Protocol):
    """The processes that share a training."""

    @property
    def count(self) -> int:
        """How many processes there are."""

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""

    def mean(self, values: Tensor) -> Tensor:
        """Return the mean over the workers; it passes gradients on."""

    def total(self, values: Tensor) -> Tensor:
        """Return the sum over the workers; it has no gradient."""

    def agree(self, value: Any) -> Any:
        """Return the first worker's value, a number or a text."""

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all workers by rank: numbers, texts, arrays, or dicts of these."""

    def average_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Replace every gradient by its mean over the workers."""


class Alone:
    """A process that trains alone."""

    count = 1
    rank = 0

    def mean(self, values: Tensor) -> Tensor:
        return values

    def total(self, values: Tensor) -> Tensor:
        return values

    def agree(self, value: Any) -> Any:
        return value

    def gather(self, value: Any) -> list[Any]:
        return [value]

    def average_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Leave the gradients as they are."""


ALONE = Alone()


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

    def mean(self, values: Tensor) -> Tensor:
        averaged: Tensor = _Mean.apply(values)  # type: ignore[no-untyped-call]
        return averaged

    def total(self, values: Tensor) -> Tensor:
        summed = values.detach().clone()
        dist.all_reduce(summed)
        return summed

    def agree(self, value: Any) -> Any:
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def gather(self, value: Any) -> list[Any]:
        found: list[Any] = [None] * self.count
        dist.all_gather_object(found, value)
        return found

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
