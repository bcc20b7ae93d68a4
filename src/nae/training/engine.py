"""What the loop asks of whoever takes the steps.

The loop decides when a training ends and what it keeps; an engine holds the weights. Engines are in
:mod:`nae.engines`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nae.network import Network
from nae.training.best import Snapshot
from nae.training.checkpoint import RunState
from nae.training.config import TrainingConfig
from nae.training.data import RowSource, TrainingRows
from nae.training.dial import DialState
from nae.training.judging import Verdict
from nae.training.losses import Loss
from nae.training.workers import ALONE, Workers

__all__ = ["Engine", "Job"]


@dataclass(frozen=True, eq=False)
class Job:
    """What an engine is to train, and on which rows."""

    network: Network
    rows: RowSource
    validation: TrainingRows | None
    """Rows to judge by. If None, each member is judged by the fold that it holds out of ``rows``, if there are any."""
    loss: Loss
    config: TrainingConfig
    random: np.random.Generator
    workers: Workers = ALONE
    n_threads: int | None = None
    """If None, the engine decides."""

    @property
    def n_batches(self) -> int:
        """Steps in an epoch."""
        return max(1, round(len(self.rows) / self.config.batch_size))

    @property
    def batch_size(self) -> int:
        """Rows of a step; a few rows are left over in every epoch."""
        return len(self.rows) // self.n_batches


class Engine(Protocol):
    """What the loop asks of whoever takes the steps."""

    n_batches: int
    """Steps in an epoch."""
    n_steps: int
    """Steps taken so far."""
    is_judged: bool
    """Whether there are rows to judge by."""

    @property
    def network(self) -> Network:
        """The network with the weights that would be kept now."""

    @property
    def dial(self) -> DialState | None:
        """What steers the additivity; None where none is asked for."""

    def train_epoch(self, rate: Callable[[int], float]) -> float:
        """Take one pass over the rows and return the mean loss; ``rate`` gives the step size of a step."""

    def judge(self) -> Verdict | None:
        """Judge the weights that would be kept now; None where there are no rows to judge by."""

    def additivity(self) -> float | None:
        """Return the additivity of the weights that would be kept now, if one is asked for."""

    def snapshot(self) -> Snapshot:
        """Return a copy of the weights that would be kept now."""

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from the weights of a snapshot."""

    def state(self) -> RunState:
        """Return everything that is needed to go on."""

    def load(self, state: RunState) -> None:
        """Go on from a state."""

    def close(self) -> None:
        """Give back what the engine holds besides memory; no step follows."""
