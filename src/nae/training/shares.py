"""The source of batches of a worker that shares a training: it gives the worker's part of every batch."""

from collections.abc import Callable, Iterator

import numpy as np

from nae._typing import Array, IntArray
from nae._words import counted
from nae.errors import DataError
from nae.training.data import RowSource, Scored, TrainingRows
from nae.training.workers import Workers

__all__ = ["SharedRows", "check_shares"]


def check_shares(counts: list[int], n_batches: int) -> None:
    """Raise an error if ``counts``, the rows of every worker, leave a worker without rows in some batch."""
    if not all(counts):
        raise DataError(f"Every worker must have rows; they have {counts}. Use fewer workers.")
    if min(counts) < n_batches:
        raise DataError(
            f"Every worker must have a row in each of {n_batches} batches; the smallest share has "
            f"{counted(min(counts), 'row')}. Raise batch_size, or use fewer workers."
        )


class SharedRows:
    """Rows that are divided among workers. A batch consists of a local batch per worker, all of one size.

    The worker with the fewest rows decides this size. Rows are left over; in every epoch these are other ones, as they
    are for a single process.
    """

    def __init__(self, own: RowSource, workers: Workers) -> None:
        self.own, self.workers = own, workers
        self.counts: list[int] = workers.gather(len(own))
        check_shares(self.counts, 1)

    @property
    def window(self) -> TrainingRows:
        return self.own.window

    @property
    def n_moves(self) -> int:
        return self.own.n_moves

    def __len__(self) -> int:
        return sum(self.counts)

    def batches(self, n_batches: int, batch_size: int, random: np.random.Generator) -> Iterator[IntArray]:
        """Yield this worker's part of every batch; ``batch_size`` counts the rows of all workers."""
        size = self.local_size(n_batches)
        for part in self.own.batches(n_batches, size, random):
            yield part[:size]

    def local_size(self, n_batches: int) -> int:
        """Return how many rows of a batch one worker has."""
        check_shares(self.counts, n_batches)
        return min(self.counts) // n_batches

    def held_out(self, n_members: int) -> TrainingRows | None:
        return self.own.held_out(n_members)

    def slot_weight(self, n_slots: int) -> Array:
        return self.own.slot_weight(n_slots)

    def whole(self) -> None:
        return None

    def scored(self, score: Callable[[TrainingRows], Array]) -> list[Scored]:
        return self.own.scored(score)
