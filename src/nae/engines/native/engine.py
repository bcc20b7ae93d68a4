"""The engine that lets the native core take the steps, and judge them."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nae._processes import count_threads
from nae._typing import AnyArray, IntArray
from nae.engines.native.inputs import find_slots, make_inputs, make_shape, make_table, why_not
from nae.errors import ConfigError
from nae.native import BLOCKS, Core, Table, Values
from nae.native import Tensor as Part
from nae.network import START, Network
from nae.training import Job
from nae.training.averaging import share_of_step
from nae.training.best import Snapshot
from nae.training.checkpoint import RunState, with_prefix, without_prefix
from nae.training.config import TrainingConfig
from nae.training.data import own_folds
from nae.training.dial import DialState, make_dial
from nae.training.judging import Verdict, measured_rows
from nae.training.slots import mean_slot_weight

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

    def __init__(self, job: Job, *, instructions: str = "best") -> None:
        network, rows, config, loss = job.network, job.rows, job.config, job.loss
        if missing := why_not(network.config, loss, job.workers):
            raise ConfigError(f"engine='native' cannot train this: {missing}. Use engine='auto'.")
        self.given, self.rows, self.config, self.random = network, rows, config, job.random
        self.n_batches, self.batch_size = job.n_batches, job.batch_size
        self.n_steps = 0
        self.dial: DialState | None = make_dial(network.config, config)
        self.noise = network.noise
        own_fold = own_folds(network.config.n_members, config.n_folds)
        weight = mean_slot_weight(network, rows, job.workers)
        self.slots = find_slots(network.inputs, weight)
        n_threads = job.n_threads or count_threads()
        shape = make_shape(job, self.dial, batch_size=self.batch_size, n_threads=n_threads)
        self.core = Core(
            replace(shape, instructions=instructions), make_inputs(network, loss, self.slots, weight, own_fold)
        )
        self.parameters = _Parameters(network, self.core, config)
        self.parameters.take(network.arrays)
        self.judged_by = _NativeJudge(self, job, own_fold)
        self.is_judged = self.judged_by.rows is not None
        whole = rows.whole()
        self._table = None if whole is None else make_table(whole, self.slots)
        self._step_seconds = _PIECE_SECONDS  # one step at first
        self._put_dial()

    @property
    def network(self) -> Network:
        return self.given.with_arrays(self.snapshot())

    def train_epoch(self, rate: Callable[[int], float]) -> float:
        losses = [self._train(table, order, rate) for table, order in self._pieces()]
        return float(np.concatenate(losses).mean(dtype=np.float64))

    def judge(self) -> Verdict | None:
        return self.judged_by.judge()

    def additivity(self) -> float | None:
        if self.dial is None:
            return None
        found = self.judged_by.additivity()
        return self.dial.running if found is None else found

    def snapshot(self) -> Snapshot:
        return {**self.given.arrays, **self.parameters.kept()}

    def restore(self, snapshot: Snapshot) -> None:
        self.parameters.take(snapshot)

    def state(self) -> RunState:
        network = {**self.given.arrays, **self.parameters.values(Values.WEIGHTS)}
        arrays = with_prefix("network", network) | with_prefix("optimiser", self.parameters.moments(self.n_steps))
        if self.config.averaged_steps:
            arrays |= with_prefix("mean", self.parameters.by_position(Values.MEANS))
        if self.given.is_noisy:
            arrays["noise"] = np.array(self.noise)
        if self.dial is not None:
            arrays |= with_prefix("dial", self.dial.arrays())
        return RunState(arrays, {"n_steps": self.n_steps, "random": self.random.bit_generator.state})

    def load(self, state: RunState) -> None:
        self.parameters.take(without_prefix("network", state.arrays))
        self.parameters.take_moments(without_prefix("optimiser", state.arrays))
        self.random.bit_generator.state = state.values["random"]
        if self.config.averaged_steps:
            self.parameters.take_means(without_prefix("mean", state.arrays))
        if self.given.is_noisy:
            self.noise = int(state.arrays["noise"])
        if self.dial is not None:
            self.dial.load(without_prefix("dial", state.arrays))
            self._put_dial()
        self.n_steps = state.values["n_steps"]

    def close(self) -> None:
        """Nothing is held besides memory."""

    def _pieces(self) -> Iterator[tuple[Table, IntArray]]:
        """Yield rows with batches of them, (step, B), until an epoch is over."""
        batches = self.rows.batches(self.n_batches, self.batch_size, self.random)
        if self._table is not None:
            yield self._table, np.stack(list(batches))
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
            self.dial.log_gamma, self.dial.running = self.core.dial
        return np.concatenate(losses)

    def _put_dial(self) -> None:
        if self.dial is not None:
            self.core.dial = self.dial.log_gamma, self.dial.running


class _Parameters:
    """The parameters of a network by name, as the core holds them.

    The core leaves out inputs that a feature does not use. Nothing but decay moves their weights, which no score
    depends on: all of them fall by the same factor.
    """

    def __init__(self, network: Network, core: Core, config: TrainingConfig) -> None:
        self.core, self.config = core, config
        self.shapes = {name: array.shape for name, array in network.arrays.items() if name != START}
        self.is_trained = {name: network.config.n_experts > 1 or not name.startswith("gate.") for name in self.shapes}
        self.dtype = network.dtype
        self._given: dict[str, AnyArray] = {}
        self._idle = self._idle_mean = 1.0

    def take(self, arrays: Mapping[str, AnyArray]) -> None:
        """Take weights over, and begin the running mean at them."""
        self._given = {name: np.array(arrays[name]) for name in self.shapes}
        self._idle = self._idle_mean = 1.0
        for name, array in self._given.items():
            self._set(Values.WEIGHTS, name, array)
        self.core.restart_mean()

    def take_means(self, arrays: Mapping[str, AnyArray]) -> None:
        """Take running means over, by position."""
        for at, name in enumerate(self.shapes):
            self._set(Values.MEANS, name, arrays[str(at)])

    def take_moments(self, arrays: Mapping[str, AnyArray]) -> None:
        """Take what the optimiser knows over; what is missing stays as it is."""
        names = list(self.shapes)
        for key, array in arrays.items():
            at, kind = key.split("/")
            if kind in _MOMENTS:
                self._set(_MOMENTS[kind], names[int(at)], array)

    def values(self, kind: Values) -> dict[str, AnyArray]:
        """Return numbers of all parameters by name."""
        return {name: self._get(kind, name) for name in self.shapes}

    def by_position(self, kind: Values) -> dict[str, AnyArray]:
        """Return numbers of all parameters by position."""
        return {str(at): array for at, array in enumerate(self.values(kind).values())}

    def kept(self) -> dict[str, AnyArray]:
        """Return the weights that are judged and kept."""
        return self.values(Values.MEANS if self.config.averaged_steps else Values.WEIGHTS)

    def moments(self, n_steps: int) -> dict[str, AnyArray]:
        """Return what the optimiser knows, by position and name."""
        found = {}
        for at, name in enumerate(self.shapes):
            found[f"{at}/step"] = np.array(n_steps if self.is_trained[name] else 0, dtype=np.float32)
            found |= {f"{at}/{moment}": self._get(kind, name) for moment, kind in _MOMENTS.items()}
        return found

    def let_idle(self, rates: Sequence[float], n_steps: int) -> None:
        """Let the weights that no score depends on decay with the others."""
        for step, rate in enumerate(rates, n_steps + 1):
            self._idle *= 1 - rate * self.config.weight_decay
            if self.config.averaged_steps:
                share = share_of_step(step, self.config.averaged_steps)
                self._idle_mean += share * (self._idle - self._idle_mean)

    def _set(self, kind: Values, name: str, array: AnyArray) -> None:
        self.core.set(kind, _part(name), np.asarray(array, dtype=self.dtype))

    def _get(self, kind: Values, name: str) -> AnyArray:
        found = np.zeros(self.shapes[name], dtype=self.dtype)
        if kind in (Values.WEIGHTS, Values.MEANS):
            factor = self._idle if kind == Values.WEIGHTS else self._idle_mean
            found = self._given[name] * self.dtype.type(factor if name == _FIRST_WEIGHTS else 1)
        self.core.get(kind, _part(name), found)
        return found


def _part(name: str) -> int:
    """Return the core's number of a parameter."""
    if name in _PARTS:
        return _PARTS[name]
    _, _, block, kind = name.split(".")
    return BLOCKS + 4 * int(block) + _BLOCK_PARTS.index(kind)


class _NativeJudge:
    """Rows to judge by, scored by the core: given ones by all members' mean, held-out ones by who holds them out."""

    def __init__(self, engine: NativeEngine, job: Job, own_fold: IntArray) -> None:
        self.engine, self.workers, self.is_given = engine, job.workers, job.validation is not None
        n_members = len(own_fold)
        self.rows = job.validation if self.is_given else job.rows.held_out(n_members)
        if self.rows is None:
            return
        self.table = make_table(self.rows, engine.slots)
        everything = np.arange(len(self.rows))
        if self.rows.fold is None or self.is_given:
            self.of_member = [everything] * n_members
        else:
            self.of_member = [np.flatnonzero(self.rows.fold == own) for own in own_fold]
        self.repeats = 1.0 if self.is_given else n_members / len(np.unique(own_fold))

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
        return Verdict(losses, self.table.weight[which], self.repeats, self.workers)

    def additivity(self) -> float | None:
        """Return the additivity of the kept weights on some of the rows; None where there are none."""
        if self.rows is None or len(self.rows) == 0:
            return None
        some = measured_rows(len(self.rows), self.engine.given)
        weight = self.table.weight[some]
        table = self.table.with_weight(self.table.weight / weight.mean())
        return self.engine.core.additivity(table, some, is_filled=self.is_given)
