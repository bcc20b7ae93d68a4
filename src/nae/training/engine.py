"""Engines: who takes the steps. The loop decides when a training ends and what it keeps; an engine holds the weights.

A further engine is a file with a class and a line of :data:`ENGINES`. It trains the weights of the network that it is
given, which the finished model is made of, and need not use torch for its steps.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import torch
from torch import Tensor

from nae.network import Network
from nae.training.averaging import RunningMean
from nae.training.best import Snapshot
from nae.training.checkpoint import RunState, with_prefix, without_prefix
from nae.training.config import TrainingConfig
from nae.training.data import RowSource, TrainingRows, own_folds
from nae.training.dial import Dial
from nae.training.judging import Verdict, make_judge
from nae.training.losses import Loss
from nae.training.native_engine import NativeEngine
from nae.training.native_inputs import why_not
from nae.training.objective import Objective
from nae.training.optimiser import AdamW
from nae.training.replay import Replay
from nae.training.slots import mean_slot_weight
from nae.training.workers import ALONE, Workers

__all__ = ["ENGINES", "Engine", "TorchEngine", "choose_engine"]

_LOG = logging.getLogger("nae")

_APART = 2**40  # numbers between the noise of one worker and that of the next


class Engine(Protocol):
    """What the loop asks of whoever takes the steps."""

    n_batches: int
    """Steps in an epoch."""
    n_steps: int
    """Steps taken so far."""
    is_judged: bool
    """Whether there are rows to judge by."""

    @property
    def dial(self) -> Dial | None:
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

    def finish(self, snapshot: Snapshot | None) -> None:
        """Leave the network with the weights of a snapshot, or with those that would be kept now; no step follows."""

    def state(self) -> RunState:
        """Return everything that is needed to go on."""

    def load(self, state: RunState) -> None:
        """Go on from a state."""


class TorchEngine:
    """Steps by torch's automatic gradients; on a GPU they are captured once and replayed."""

    def __init__(
        self,
        network: Network,
        rows: RowSource,
        validation: TrainingRows | None,
        loss: Loss,
        config: TrainingConfig,
        *,
        generator: torch.Generator,
        workers: Workers = ALONE,
    ) -> None:
        self.network, self.rows, self.loss, self.workers = network, rows, loss, workers
        self.config, self.generator = config, generator
        if network.noise is not None:
            network.noise += workers.rank * _APART
        self.n_batches = max(1, round(len(rows) / config.batch_size))
        self.batch_size = len(rows) // self.n_batches
        self.n_steps = 0
        self.optimiser = AdamW(network.parameters(), weight_decay=config.weight_decay)
        self.mean = RunningMean(network.parameters(), horizon=config.averaged_steps) if config.averaged_steps else None
        device = network.intercept.device
        own_fold = own_folds(network.config.n_members, config.n_folds).to(device)
        slot_weight = mean_slot_weight(network, rows, workers)
        self.objective = Objective(network, loss, config, own_fold=own_fold, slot_weight=slot_weight, workers=workers)
        self.judged_by = make_judge(rows, validation, own_fold=own_fold, slot_weight=slot_weight)
        self.is_judged = self.judged_by.has_rows
        can_replay = device.type == "cuda" and self.n_batches > 1 and workers.count == 1
        prepare = self.optimiser.forget_gradients
        self.replay = (
            Replay(self.step, rows.window, batch_size=self.batch_size, prepare=prepare) if can_replay else None
        )

    @property
    def dial(self) -> Dial | None:
        return self.objective.dial

    def train_epoch(self, rate: Callable[[int], float]) -> float:
        self.network.train()
        window = self.rows.window
        total = torch.zeros((), device=window.weight.device, dtype=window.weight.dtype)
        for part in self.rows.batches(self.n_batches, self.batch_size, self.generator):
            self.optimiser.set_rate(rate(self.n_steps))
            total += self.replay.step(part) if self.replay else self.step(window.take(part))
            self.n_steps += 1
            if self.mean is not None:
                self.mean.update(self.n_steps)
        return float(total) / self.n_batches

    def step(self, batch: TrainingRows) -> Tensor:
        """Take one step and return the loss before it."""
        value, objective = self.objective(batch)
        self.optimiser.forget_gradients()
        objective.backward()
        self.workers.average_gradients(self.network.parameters())
        self.optimiser.step()
        return value

    def judge(self) -> Verdict | None:
        with self._kept_weights():
            return self.judged_by.judge(self.network, self.loss, self.workers)

    def additivity(self) -> float | None:
        """Return the additivity on the rows that are judged by, if there are any: batches are few rows each."""
        if self.dial is None:
            return None
        if self.workers.count > 1:
            return float(self.dial.running)
        with self._kept_weights():
            found = self.judged_by.additivity(self.network)
        return float(self.dial.running) if found is None else found

    def snapshot(self) -> Snapshot:
        with self._kept_weights():
            return {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}

    def restore(self, snapshot: Snapshot) -> None:
        self.network.load_state_dict(dict(snapshot))
        if self.mean is not None:
            self.mean.restart()

    def finish(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            self.network.load_state_dict(dict(snapshot))
        elif self.mean is not None:
            self.mean.settle()
        self.mean = None
        self.network.eval()

    def state(self) -> RunState:
        tensors = with_prefix("network", self.network.state_dict())
        tensors |= with_prefix("optimiser", self.optimiser.tensors())
        tensors["generator"] = self.generator.get_state()
        if self.mean is not None:
            tensors |= with_prefix("mean", self.mean.tensors())
        if self.network.noise is not None:
            tensors["noise"] = self.network.noise
        if self.dial is not None:
            tensors |= with_prefix("dial", self.dial.tensors())
        return RunState(tensors, {"n_steps": self.n_steps})

    def load(self, state: RunState) -> None:
        self.network.load_state_dict(without_prefix("network", state.tensors))
        self.optimiser.load(without_prefix("optimiser", state.tensors))
        self.generator.set_state(state.tensors["generator"].cpu())
        if self.mean is not None:
            self.mean.load(without_prefix("mean", state.tensors))
        if self.network.noise is not None:
            self.network.noise.copy_(state.tensors["noise"] + self.workers.rank * _APART)
        if self.dial is not None:
            self.dial.load(without_prefix("dial", state.tensors))
        self.n_steps = state.values["n_steps"]

    def _kept_weights(self) -> AbstractContextManager[None]:
        """Return a block in which the network has the weights that are judged and kept."""
        return nullcontext() if self.mean is None else self.mean.in_place()


ENGINES: dict[str, Callable[..., Engine]] = {"torch": TorchEngine, "native": NativeEngine}


def choose_engine(name: str, network: Network, loss: Loss, workers: Workers = ALONE) -> Callable[..., Engine]:
    """Return the engine called ``name``; of 'auto', the native core if it can train the network, and torch if not."""
    if name in ENGINES:
        return ENGINES[name]
    missing = why_not(network, loss, workers)
    chosen = "torch" if missing else "native"
    _LOG.info("steps by the engine %s: %s", chosen, missing or "the native core is built and knows this network")
    return ENGINES[chosen]
