"""Steps by torch's automatic gradients, on a processor or a GPU."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext

import numpy as np
import torch
from torch import Tensor

from nae._typing import AnyArray
from nae.engines.torch.averaging import RunningMean
from nae.engines.torch.judging import make_judge
from nae.engines.torch.losses import loss_per_row
from nae.engines.torch.network import TorchNetwork
from nae.engines.torch.objective import Objective
from nae.engines.torch.optimiser import AdamW
from nae.engines.torch.replay import Replay
from nae.engines.torch.rows import TensorRows, TensorWindow
from nae.network import Network
from nae.training import Job
from nae.training.best import Snapshot
from nae.training.checkpoint import RunState, with_prefix, without_prefix
from nae.training.data import own_folds
from nae.training.dial import DialState
from nae.training.judging import Verdict
from nae.training.slots import mean_slot_weight

__all__ = ["TorchEngine"]

_APART = 2**40  # numbers between the noise of one worker and that of the next


class TorchEngine:
    """Steps by torch's automatic gradients; on a GPU they are captured once and replayed."""

    def __init__(self, job: Job, *, device: str = "cpu") -> None:
        network, rows, config, workers = job.network, job.rows, job.config, job.workers
        self.config, self.random, self.workers, self.given = config, job.random, workers, network
        place = torch.device(device)
        # Not drawn from the generator: every engine has the same batches.
        stack = _seeded(network.noise, rank=workers.rank, n_threads=job.n_threads, device=place)
        with stack:  # what fails leaves torch as it was, too
            self.module = TorchNetwork(network).to(place)
            if self.module.noise is not None:
                self.module.noise += workers.rank * _APART
            self.n_batches, self.batch_size = job.n_batches, job.batch_size
            self.n_steps = 0
            self.optimiser = AdamW(self.module.parameters(), weight_decay=config.weight_decay)
            horizon = config.averaged_steps
            self.mean = RunningMean(self.module.parameters(), horizon=horizon) if horizon else None
            own_fold = torch.as_tensor(own_folds(network.config.n_members, config.n_folds), device=place)
            weight = mean_slot_weight(network, rows, workers).astype(network.dtype)
            slot_weight = torch.as_tensor(weight, device=place)
            self.objective = Objective(
                self.module, job.loss, config, own_fold=own_fold, slot_weight=slot_weight, workers=workers
            )
            self.judged_by = make_judge(rows, job.validation, own_fold=own_fold, slot_weight=slot_weight)
            self.is_judged = self.judged_by.has_rows
            self.window = TensorWindow(rows, place)
            self.loss_per_row = loss_per_row(job.loss)
            can_replay = place.type == "cuda" and self.n_batches > 1 and workers.count == 1
            prepare = self.optimiser.forget_gradients
            self.replay = (
                Replay(self.step, self.window.rows, batch_size=self.batch_size, prepare=prepare) if can_replay else None
            )
            self._manners = stack.pop_all()

    @property
    def network(self) -> Network:
        return self.given.with_arrays(self.snapshot())

    @property
    def dial(self) -> DialState | None:
        return None if self.objective.dial is None else self.objective.dial.read()

    def train_epoch(self, rate: Callable[[int], float]) -> float:
        self.module.train()
        window = self.window.rows
        total = torch.zeros((), device=window.weight.device, dtype=window.weight.dtype)
        for part in self.window.batches(self.n_batches, self.batch_size, self.random):
            self.optimiser.set_rate(rate(self.n_steps))
            total += self.replay.step(part) if self.replay else self.step(window.take(part))
            self.n_steps += 1
            if self.mean is not None:
                self.mean.update(self.n_steps)
        return float(total) / self.n_batches

    def step(self, batch: TensorRows) -> Tensor:
        """Take one step and return the loss before it."""
        value, objective = self.objective(batch)
        self.optimiser.forget_gradients()
        objective.backward()
        self.workers.average_gradients(self.module.parameters())
        self.optimiser.step()
        return value

    def judge(self) -> Verdict | None:
        with self._kept_weights():
            return self.judged_by.judge(self.module, self.loss_per_row, self.workers)

    def additivity(self) -> float | None:
        """Return the additivity on the rows that are judged by, if there are any: batches are few rows each."""
        dial = self.dial
        if dial is None:
            return None
        if self.workers.count > 1:
            return dial.running
        with self._kept_weights():
            found = self.judged_by.additivity(self.module)
        return dial.running if found is None else found

    def snapshot(self) -> Snapshot:
        with self._kept_weights():
            return self.module.arrays()

    def restore(self, snapshot: Snapshot) -> None:
        self._load(snapshot)
        if self.mean is not None:
            self.mean.restart()

    def state(self) -> RunState:
        arrays = with_prefix("network", self.module.arrays())
        arrays |= with_prefix("optimiser", _arrays(self.optimiser.tensors()))
        if self.mean is not None:
            arrays |= with_prefix("mean", _arrays(self.mean.tensors()))
        if self.module.noise is not None:
            arrays["noise"] = np.array(self.module.noise.cpu().numpy())  # a copy: steps move the counter on
        if (dial := self.dial) is not None:
            arrays |= with_prefix("dial", dial.arrays())
        return RunState(arrays, {"n_steps": self.n_steps, "random": self.random.bit_generator.state})

    def load(self, state: RunState) -> None:
        self._load(without_prefix("network", state.arrays))
        self.optimiser.load(_tensors(without_prefix("optimiser", state.arrays)))
        self.random.bit_generator.state = state.values["random"]
        if self.mean is not None:
            self.mean.load(_tensors(without_prefix("mean", state.arrays)))
        if self.module.noise is not None:
            self.module.noise.copy_(torch.tensor(state.arrays["noise"]) + self.workers.rank * _APART)
        if (dial := self.objective.dial) is not None:
            dial.state.load(without_prefix("dial", state.arrays))
            dial.write()
        self.n_steps = state.values["n_steps"]

    def close(self) -> None:
        self._manners.close()

    def _load(self, arrays: Mapping[str, AnyArray]) -> None:
        self.module.load_state_dict(_tensors(arrays))

    def _kept_weights(self) -> AbstractContextManager[None]:
        """Return a block in which the network has the weights that are judged and kept."""
        return nullcontext() if self.mean is None else self.mean.in_place()


def _seeded(seed: int, *, rank: int, n_threads: int | None, device: torch.device) -> ExitStack:
    """Seed torch and set its threads until the stack is closed, which leaves both as they were.

    Workers draw together from the generator of the training. torch's own random numbers are noise, and differ from
    worker to worker.
    """
    stack = ExitStack()
    gpus = [device.index or 0] if device.type == "cuda" else []
    stack.enter_context(torch.random.fork_rng(devices=gpus))
    torch.manual_seed((seed + rank * 0x9E3779B1) % 2**32)  # a CPU ignores the upper bits of longer seeds
    if n_threads is not None:
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(n_threads)
    return stack


def _arrays(tensors: Mapping[str, Tensor]) -> dict[str, AnyArray]:
    return {name: np.array(tensor.detach().cpu().numpy()) for name, tensor in tensors.items()}


def _tensors(arrays: Mapping[str, AnyArray]) -> dict[str, Tensor]:
    return {name: torch.tensor(array) for name, array in arrays.items()}
