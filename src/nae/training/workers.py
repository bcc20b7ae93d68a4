"""Who trains: one process alone, or several that hold different rows of each batch and the same network.

Whatever a step averages over its rows is averaged over the workers too, with gradients, so that several workers take
the step one process would take on all of the rows. Local batches must be of one size for that.
"""

from collections.abc import Iterable
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["ALONE", "Alone", "Together", "Workers"]


class Workers(Protocol):
    """What a training asks of the processes that share it."""

    @property
    def count(self) -> int:
        """How many there are."""

    @property
    def rank(self) -> int:
        """Which of them this is, from 0."""

    def mean(self, values: Tensor) -> Tensor:
        """Return the mean over the workers; gradients flow through it."""

    def total(self, values: Tensor) -> Tensor:
        """Return the sum over the workers, without gradients."""

    def agree(self, value: Any) -> Any:
        """Return what the first worker says: a number or a text."""

    def gather(self, value: Any) -> list[Any]:
        """Return what every worker says, in the order of their ranks: numbers, texts, arrays and dicts of these."""

    def average_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Replace every gradient by its mean over the workers."""


class Alone:
    """One process: nothing to agree on."""

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
        """Leave them as they are."""


ALONE = Alone()


class Together:
    """The processes of torch's default group, which has to exist.

    Every worker computes the same objective from means over all workers. Its gradient is the mean of the workers'
    gradients once those means pass gradients back as means, too: a mean inside a mean (the routing in the dial)
    reaches rows of all workers.
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
        # One message instead of one per parameter; a network here is a few megabytes at most.
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
