"""The engine that lets the native core take the steps, and judge them."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from nae._typing import AnyArray, IntArray
from nae.errors import ConfigError
from nae.native import BLOCKS, Core, Table, Values
from nae.native import Tensor as Part
from nae.network import Network
from nae.training.averaging import share_of_step
from nae.training.best import Snapshot
from nae.training.checkpoint import RunState, with_prefix, without_prefix
from nae.training.config import TrainingConfig
from nae.training.data import RowSource, TrainingRows, own_folds
from nae.training.dial import Dial, make_dial
from nae.training.judging import Verdict, measured_rows
from nae.training.losses import Loss
from nae.training.native_inputs import find_slots, make_inputs, make_shape, make_table, why_not
from nae.training.slots import mean_slot_weight
from nae.training.workers import ALONE, Workers

__all__ = ["NativeEngine"]

_PIECE_SECONDS = 0.25  # that the core works before Python looks for an interrupt
_PARTS = {
    "expert_weight": Part.EXPERT_WEIGHT,
    "expert_bias": Part.EXPERT_BIAS,
    "intercept": Part.INTERCEPT,
    "gate.weight": Part.GATE_WEIGHT,
    "gate.bias": Part.GATE_BIAS,
    "gate.mix": Part.MIX,
    "gate.mix_bias": Part.MIX_BIAS,
}
_BLOCK_PARTS = ("weight", "bias", "scale", "shift")
_MOMENTS = {"exp_avg": Values.FIRST_MOMENTS, "exp_avg_sq": Values.SECOND_MOMENTS}
_FIRST_WEIGHTS = "trunk.blocks.0.weight"


class NativeEngine:
    """Steps by the native core, which holds the weights; the network receives them when they are asked for."""

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
        instructions: str = "best",
    ) -> None:
        if missing := why_not(network, loss, workers):
            raise ConfigError(f"engine='native' cannot train this: {missing}. Use engine='auto'.")
        self.network, self.rows, self.config, self.generator, self.workers = network, rows, config, generator, workers
        self.n_batches = max(1, round(len(rows) / config.batch_size))
        self.batch_size = len(rows) // self.n_batches
        self.n_steps = 0
        self.dial: Dial | None = make_dial(network, config)
        self.noise = 0 if network.noise is None else int(network.noise)
        n_members = network.config.n_members
        own_fold = own_folds(n_members, config.n_folds)
        weight = mean_slot_weight(network, rows, workers).numpy()
        self.slots = find_slots(network.inputs.numpy(), weight)
        shape = make_shape(network, loss, config, self.dial, batch_size=self.batch_size)
        self.core = Core(replace(shape, instructions=instructions), make_inputs(network, self.slots, weight, own_fold))
        self.parameters = _Parameters(network, self.core, config)
        self.parameters.take(network.state_dict())
        self.judged_by = _NativeJudge(self, rows, validation, own_fold)
        self.is_judged = self.judged_by.rows is not None
        whole = rows.whole()
        self._table = None if whole is None else make_table(whole, self.slots)
        self._is_finished = False
        self._step_seconds = _PIECE_SECONDS  # one step at first
        self._put_dial()

    def train_epoch(self, rate: Callable[[int], float]) -> float:
        losses = [self._train(table, order, rate) for table, order in self._pieces()]
        return float(np.concatenate(losses).mean())

    def judge(self) -> Verdict | None:
        if self._is_finished:  # what is judged is the network, which others may have changed
            self.parameters.take(self.network.state_dict())
        return self.judged_by.judge()

    def additivity(self) -> float | None:
        if self.dial is None:
            return None
        found = self.judged_by.additivity()
        return float(self.dial.running) if found is None else found

    def snapshot(self) -> Snapshot:
        others = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
        return others | self.parameters.kept()

    def restore(self, snapshot: Snapshot) -> None:
        self.parameters.take(snapshot)

    def finish(self, snapshot: Snapshot | None) -> None:
        self.network.load_state_dict(dict(self.snapshot() if snapshot is None else snapshot))
        self.network.eval()
        self._is_finished = True

    def state(self) -> RunState:
        network = dict(self.network.state_dict()) | self.parameters.values(Values.WEIGHTS)
        tensors = with_prefix("network", network) | with_prefix("optimiser", self.parameters.moments(self.n_steps))
        tensors["generator"] = self.generator.get_state()
        if self.config.averaged_steps:
            tensors |= with_prefix("mean", self.parameters.by_position(Values.MEANS))
        if self.network.noise is not None:
            tensors["noise"] = torch.tensor(self.noise)
        if self.dial is not None:
            tensors |= with_prefix("dial", self.dial.tensors())
        return RunState(tensors, {"n_steps": self.n_steps})

    def load(self, state: RunState) -> None:
        self.parameters.take(without_prefix("network", state.tensors))
        self.parameters.take_moments(without_prefix("optimiser", state.tensors))
        self.generator.set_state(state.tensors["generator"].cpu())
        if self.config.averaged_steps:
            self.parameters.take_means(without_prefix("mean", state.tensors))
        if self.network.noise is not None:
            self.noise = int(state.tensors["noise"])
        if self.dial is not None:
            self.dial.load(without_prefix("dial", state.tensors))
            self._put_dial()
        self.n_steps = state.values["n_steps"]

    def _pieces(self) -> Iterator[tuple[Table, IntArray]]:
        """Yield rows with batches of them, (step, B), until an epoch is over."""
        batches = self.rows.batches(self.n_batches, self.batch_size, self.generator)
        if self._table is not None:
            yield self._table, np.stack([part.numpy() for part in batches])
            return
        here = np.arange(self.batch_size)[None]
        for part in batches:  # the window holds these rows until the next batch
            yield make_table(self.rows.window.take(part), self.slots), here

    def _train(self, table: Table, order: IntArray, rate: Callable[[int], float]) -> AnyArray:
        """Take the steps, so many at a time that an interrupt does not wait; return the losses, (step, M)."""
        losses, at = [], 0
        while at < len(order):
            piece = order[at : at + max(1, int(_PIECE_SECONDS / self._step_seconds))]
            rates = [rate(self.n_steps + i) for i in range(len(piece))]
            started = time.monotonic()
            losses.append(self.core.train(table, piece, first_step=self.n_steps, rates=rates, noise=self.noise))
            self._step_seconds = max((time.monotonic() - started) / len(piece), 1e-6)
            self.parameters.let_idle(rates, self.n_steps)
            self.n_steps += len(piece)
            self.noise += len(piece) * self.core.noise_per_step
            at += len(piece)
        if self.dial is not None:
            log_gamma, running = self.core.dial
            self.dial.log_gamma.fill_(log_gamma)
            self.dial.running.fill_(running)
        return np.concatenate(losses)

    def _put_dial(self) -> None:
        if self.dial is not None:
            self.core.dial = float(self.dial.log_gamma), float(self.dial.running)


class _Parameters:
    """The parameters of a network by name, as the core holds them.

    The core leaves out inputs that a feature does not use. Nothing but decay moves their weights, which no score
    depends on: all of them fall by the same factor.
    """

    def __init__(self, network: Network, core: Core, config: TrainingConfig) -> None:
        self.core, self.config = core, config
        self.shapes = {name: each.shape for name, each in network.named_parameters()}
        self.is_trained = {name: network.config.n_experts > 1 or not name.startswith("gate.") for name in self.shapes}
        self.dtype = network.intercept.dtype
        self._given: dict[str, Tensor] = {}
        self._idle = self._idle_mean = 1.0

    def take(self, tensors: Mapping[str, Tensor]) -> None:
        """Take weights over, and begin the running mean at them."""
        self._given = {name: tensors[name].detach().clone() for name in self.shapes}
        self._idle = self._idle_mean = 1.0
        for name, tensor in self._given.items():
            self._set(Values.WEIGHTS, name, tensor)
        self.core.restart_mean()

    def take_means(self, tensors: Mapping[str, Tensor]) -> None:
        """Take running means over, by position."""
        for at, name in enumerate(self.shapes):
            self._set(Values.MEANS, name, tensors[str(at)])

    def take_moments(self, tensors: Mapping[str, Tensor]) -> None:
        """Take what the optimiser knows over; what is missing stays as it is."""
        names = list(self.shapes)
        for key, tensor in tensors.items():
            at, kind = key.split("/")
            if kind in _MOMENTS:
                self._set(_MOMENTS[kind], names[int(at)], tensor)

    def values(self, kind: Values) -> dict[str, Tensor]:
        """Return numbers of all parameters by name."""
        return {name: self._get(kind, name) for name in self.shapes}

    def by_position(self, kind: Values) -> dict[str, Tensor]:
        """Return numbers of all parameters by position."""
        return {str(at): tensor for at, tensor in enumerate(self.values(kind).values())}

    def kept(self) -> dict[str, Tensor]:
        """Return the weights that are judged and kept."""
        return self.values(Values.MEANS if self.config.averaged_steps else Values.WEIGHTS)

    def moments(self, n_steps: int) -> dict[str, Tensor]:
        """Return what the optimiser knows, by position and name."""
        found = {}
        for at, name in enumerate(self.shapes):
            found[f"{at}/step"] = torch.tensor(float(n_steps if self.is_trained[name] else 0))
            found |= {f"{at}/{moment}": self._get(kind, name) for moment, kind in _MOMENTS.items()}
        return found

    def let_idle(self, rates: Sequence[float], n_steps: int) -> None:
        """Let the weights that no score depends on decay with the others."""
        for step, rate in enumerate(rates, n_steps + 1):
            self._idle *= 1 - rate * self.config.weight_decay
            if self.config.averaged_steps:
                share = share_of_step(step, self.config.averaged_steps)
                self._idle_mean += share * (self._idle - self._idle_mean)

    def _set(self, kind: Values, name: str, tensor: Tensor) -> None:
        self.core.set(kind, _part(name), tensor.to(self.dtype).numpy())

    def _get(self, kind: Values, name: str) -> Tensor:
        found = torch.zeros(self.shapes[name], dtype=self.dtype)
        if kind in (Values.WEIGHTS, Values.MEANS):
            factor = self._idle if kind == Values.WEIGHTS else self._idle_mean
            found = self._given[name] * factor if name == _FIRST_WEIGHTS else self._given[name].clone()
        self.core.get(kind, _part(name), found.numpy())
        return found


def _part(name: str) -> int:
    """Return the core's number of a parameter."""
    if name in _PARTS:
        return _PARTS[name]
    _, _, block, kind = name.split(".")
    return BLOCKS + 4 * int(block) + _BLOCK_PARTS.index(kind)


class _NativeJudge:
    """Rows to judge by, scored by the core: given ones by all members' mean, held-out ones by who holds them out."""

    def __init__(self, engine: NativeEngine, rows: RowSource, given: TrainingRows | None, own_fold: Tensor) -> None:
        self.engine, self.is_given = engine, given is not None
        n_members = len(own_fold)
        self.rows = rows.held_out(n_members) if given is None else given
        if self.rows is None:
            return
        self.table = make_table(self.rows, engine.slots)
        everything = np.arange(len(self.rows))
        if self.rows.fold is None or self.is_given:
            self.of_member = [everything] * n_members
        else:
            fold = self.rows.fold.numpy()
            self.of_member = [np.flatnonzero(fold == own) for own in own_fold.tolist()]
        self.repeats = 1.0 if self.is_given else n_members / len(own_fold.unique())

    def judge(self) -> Verdict | None:
        """Return what the kept weights lose; None where there are no rows."""
        if self.rows is None:
            return None
        core = self.engine.core
        scores = core.score(self.table, self.of_member, is_filled=self.is_given)
        if self.is_given:
            which, found = self.of_member[0], np.mean(scores, axis=0)
        else:
            which, found = np.concatenate(self.of_member), np.concatenate(scores)
        losses = core.losses(self.table, which, found)
        weight = self.table.weight[which]
        return Verdict(torch.from_numpy(losses), torch.from_numpy(weight), self.repeats, self.engine.workers)

    def additivity(self) -> float | None:
        """Return the additivity of the kept weights on some of the rows; None where there are none."""
        if self.rows is None or len(self.rows) == 0:
            return None
        some = measured_rows(len(self.rows), self.engine.network)
        weight = self.table.weight[some]
        table = self.table.with_weight(self.table.weight / weight.mean())
        return self.engine.core.additivity(table, some, is_filled=self.is_given)
