"""Workers: one process that trains alone, or several with the same network and different rows of each batch.

All that a step averages over its rows, with its gradients, is averaged over the workers, too. Several workers therefore
take the step that one process would take on all rows, provided that local batches are of one size.
"""

from collections.abc import Iterable
from typing import Any, Protocol

from nae._typing import Array

__all__ = ["ALONE", "Alone", "Workers"]


class Workers(Protocol):
    """The processes that share a training."""

    @property
    def count(self) -> int:
        """How many processes there are."""

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""

    def total(self, values: Any) -> Array:
        """Return the sum of numbers or arrays over the workers, in double precision."""

    def agree(self, value: Any) -> Any:
        """Return the first worker's value, a number or a text."""

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all workers by rank: numbers, texts, arrays, or dicts of these."""

    def mean(self, values: Any) -> Any:
        """Return the mean of tensors over the workers; it passes gradients on."""

    def average_gradients(self, parameters: Iterable[Any]) -> None:
        """Replace the gradient of every tensor by its mean over the workers."""


class Alone:
    """A process that trains alone."""

    count = 1
    rank = 0

    def total(self, values: Any) -> Any:
        return values

    def agree(self, value: Any) -> Any:
        return value

    def gather(self, value: Any) -> list[Any]:
        return [value]

    def mean(self, values: Any) -> Any:
        return values

    def average_gradients(self, parameters: Iterable[Any]) -> None:
        """Leave the gradients as they are."""


ALONE = Alone()
