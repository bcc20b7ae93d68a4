"""A worker's share of the rows as a source of batches: its part of every batch of all workers."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from nae._typing import Array
from nae._words import counted
from nae.errors import DataError
from nae.training.data import RowSource, Scored, TrainingRows
from nae.training.workers import Workers

__all__ = ["SharedRows", "check_shares"]


def check_shares(counts: list[int], n_batches: int) -> None:
    """Complain where a worker, of those with so many rows each, has none in some of the batches."""
    if not all(counts):
        raise DataError(f"Every worker must have rows; they have {counts}. Use fewer workers.")
    if min(counts) < n_batches:
        raise DataError(
            f"Every worker must have a row in each of {n_batches} batches; the smallest share has "
            f"{counted(min(counts), 'row')}. Raise batch_size, or use fewer workers."
        )


class SharedRows:
    """Rows of which every worker has others. A batch is one local batch per worker, all of one size.

    That size follows from the worker with the fewest rows; the rows left over are others in every epoch, as they are
    for one process.
    """

    def __init__(self, own: RowSource, workers: Workers) -> None:
        self.own, self.workers = own, workers
        self.counts: list[int] = workers.gather(len(own))
        check_shares(self.counts, 1)

    @property
    def window(self) -> TrainingRows:
        return self.own.window

    def __len__(self) -> int:
        return sum(self.counts)

    def batches(self, n_batches: int, batch_size: int, generator: torch.Generator) -> Iterator[Tensor]:
        """Yield this worker's part of every batch; ``batch_size`` counts the rows of all workers."""
        size = self.local_size(n_batches)
        for part in self.own.batches(n_batches, size, generator):
            yield part[:size]

    def local_size(self, n_batches: int) -> int:
        """Return the rows of a batch that one worker has."""
        check_shares(self.counts, n_batches)
        return min(self.counts) // n_batches

    def held_out(self, n_members: int) -> TrainingRows | None:
        return self.own.held_out(n_members)

    def slot_weight(self, n_slots: int) -> Tensor:
        return self.own.slot_weight(n_slots)

    def whole(self) -> None:
        return None

    def scored(self, score: Callable[[TrainingRows], Array]) -> list[Scored]:
        return self.own.scored(score)
