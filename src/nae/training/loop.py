"""The training loop: shuffled batches, one optimiser, the best epoch kept."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nae.errors import TrainingError
from nae.network import Evaluation, Network, Routed
from nae.training.averaging import RunningMean
from nae.training.checkpoint import (
    Checkpoints,
    RunState,
    read_history,
    with_prefix,
    without_prefix,
)
from nae.training.config import TrainingConfig
from nae.training.data import RowSource, TrainingRows
from nae.training.dial import Dial, context_share, measured_additivity
from nae.training.history import ASKED, Epoch, History
from nae.training.losses import Loss
from nae.training.optimiser import AdamW
from nae.training.penalties import output_penalty, variation_penalty, weighted_mean
from nae.training.progress import progress_bar
from nae.training.shrinkage import keep_share
from nae.training.workers import ALONE, Workers

__all__ = ["Callback", "train"]

Callback = Callable[..., Any]
_TOLERANCE = 0.02  # a model within this of the dial's target counts as having reached it
_MEASURED = 2048  # rows that additivity is measured on, at most
_APART = 2**40  # numbers between the noise of one worker and that of the next
_GAIN = 0.02  # standard errors of the validation loss that count as progress on a small table: less is rounding
_EVALUATED = 2**22  # expert values evaluated at once: 16 MB, about what a cache holds


def train(
    network: Network,
    rows: RowSource,
    validation: TrainingRows | None,
    loss: Loss,
    config: TrainingConfig,
    *,
    generator: torch.Generator,
    callbacks: Sequence[Callback] = (),
    is_verbose: bool = False,
    workers: Workers = ALONE,
    checkpoints: Checkpoints | None = None,
) -> History:
    """Train ``network`` in place and leave it at its best epoch; return what happened.

    Where ``rows`` have folds, each member is validated on the rows it did not see, and ``validation`` is not needed.
    With several ``workers``, each calls this with the same network and its own share of every batch. With
    ``checkpoints``, training goes on from the last state and every looked-at epoch leaves one.
    """
    run = _Run(network, loss, config, rows, workers)
    run.go_on_from(checkpoints.latest() if checkpoints else None, generator)
    if network.start is not None:
        run.least_gain = _GAIN * (run.standard_error(validation) or 0.0)
    started = time.monotonic() - (run.history[-1].seconds if len(run.history) else 0.0)
    with progress_bar(config.max_epochs, is_shown=is_verbose) as show:
        for number in range(len(run.history) + 1, config.max_epochs + 1):
            mean_loss = run.train_epoch(rows, generator)
            seconds = workers.agree(time.monotonic() - started)
            is_looked_at = run.is_to_be_looked_at(number, seconds)
            with run.averaged_weights():
                epoch = Epoch(
                    epoch=number,
                    loss=mean_loss,
                    validation=run.validate(validation) if is_looked_at else None,
                    additivity=run.additivity(validation) if is_looked_at else run.running_additivity,
                    seconds=seconds,
                )
                run.record(epoch, has_validation=validation is not None or run.held_out is not None)
            show(epoch)
            run.history.stopped = workers.agree(_reason_to_stop(run, epoch, callbacks))
            if run.history.stopped:
                break
            reason = run.reason_to_cool_down(epoch)
            if reason:
                run.cool_down(reason)
            if checkpoints and is_looked_at:
                checkpoints.save(run.state(generator), epoch)
    run.restore_best()
    if network.start is not None:
        run.history.kept_share, run.history.kept_validation = keep_share(
            network, lambda: run.validate(validation), least_gain=run.least_gain
        )
    run.history.stopped = run.history.stopped or "ran all epochs"
    run.history.standard_error = run.standard_error(validation)
    run.history.penalty = None if run.dial is None else float(run.dial.log_gamma.exp())
    return run.history


def _reason_to_stop(run: "_Run", epoch: Epoch, callbacks: Sequence[Callback]) -> str:
    config = run.config
    for callback in callbacks:
        answer = callback(
            epoch=epoch.epoch,
            n_epochs=config.max_epochs,
            loss=epoch.loss,
            validation=epoch.validation,
            additivity=epoch.additivity,
            seconds=epoch.seconds,
        )
        if (isinstance(answer, (bool, np.bool_)) and answer) or answer == "stop":
            return f"{getattr(callback, '__name__', 'a callback')} {ASKED}"
    if config.time_limit is not None and epoch.seconds >= config.time_limit:
        return f"time limit of {config.time_limit:g} s"
    if run.has_cooled_down:
        return f"{run.cooling_reason}, and the step size fell to zero"
    waited = epoch.epoch - run.history.best_epoch
    if (
        config.schedule == "cosine"
        and config.patience is not None
        and epoch.validation is not None
        and waited >= config.patience
    ):
        return f"no better validation loss for {waited} epochs"
    return ""


@dataclass
class _Best:
    value: float
    state: dict[str, Tensor]


class _Run:
    """One run: optimiser, schedule, dial and the best state so far."""

    def __init__(
        self, network: Network, loss: Loss, config: TrainingConfig, rows: RowSource, workers: Workers = ALONE
    ) -> None:
        self.network, self.loss, self.config, self.workers = network, loss, config, workers
        if network.noise is not None:
            network.noise += workers.rank * _APART
        self.n_batches = max(1, round(len(rows) / config.batch_size))
        self.batch_size = len(rows) // self.n_batches
        parameter = network.intercept
        self.optimiser = AdamW(network.parameters(), weight_decay=config.weight_decay)
        self.mean = RunningMean(network.parameters(), horizon=config.averaged_steps) if config.averaged_steps else None
        can_replay = parameter.is_cuda and self.n_batches > 1 and workers.count == 1
        self.replay = _Replay(self, rows.window) if can_replay else None
        self.dial = (
            None
            if config.additivity is None or network.config.n_experts == 1
            else Dial(
                config.additivity,
                start=config.initial_penalty,
                least=config.context_penalty,
                device=parameter.device,
                dtype=parameter.dtype,
            )
        )
        self.slot_share = _slot_share(network, rows, workers)
        n_members = network.config.n_members
        self.own_fold = torch.arange(n_members, device=parameter.device) % (config.n_folds or n_members)
        self.held_out_rows = rows.held_out(n_members)
        self.held_out = _by_member(self.held_out_rows, self.own_fold.tolist())
        self.n_steps = 0
        self.cooling_from: int | None = None
        self.cooling_steps = 1
        self.cooling_reason = ""
        self.least_gain = 0.0  # by so much a validation loss must be better than the best one to take its place
        self.history = History()
        self._best: _Best | None = None

    def _rate(self, step: int) -> float:
        warm = min(1.0, (step + 1) / self.config.warmup_steps)
        if self.config.schedule == "plateau":
            if self.cooling_from is None:
                return warm
            return max(0.0, 1 - (step - self.cooling_from) / self.cooling_steps)
        n_steps = self.config.max_epochs * self.n_batches
        return warm * 0.5 * (1 + math.cos(math.pi * min(step / n_steps, 1.0)))

    def is_to_be_looked_at(self, number: int, seconds: float) -> bool:
        """Return whether an epoch is validated: every so often, every one while the step size falls, and the last."""
        config = self.config
        is_last = number == config.max_epochs or seconds >= (config.time_limit or math.inf)
        return is_last or number % config.evaluate_every == 0 or self.cooling_from is not None

    def reason_to_cool_down(self, epoch: Epoch) -> str:
        """Return why the step size is to fall from now on: no progress, or just enough epochs or time left for it."""
        config = self.config
        if config.schedule != "plateau" or self.cooling_from is not None:
            return ""
        waited = epoch.epoch - self.history.best_epoch
        has_waited = config.patience is not None and epoch.validation is not None and waited >= config.patience
        if has_waited and self.n_steps >= config.least_steps:
            return "validation stopped improving"
        share = config.cooldown / (1 + config.cooldown)
        if config.max_epochs - epoch.epoch <= share * config.max_epochs:
            return "the epochs came to an end"
        is_late = config.time_limit is not None and epoch.seconds >= (1 - share) * config.time_limit
        return "time came to an end" if is_late else ""

    def cool_down(self, reason: str) -> None:
        """Go back to the best epoch and let the step size fall to zero from there."""
        self.cooling_reason = reason
        if self._best is not None:
            self.network.load_state_dict(self._best.state)
            if self.mean is not None:
                self.mean.restart()
        n_steps = round(self.config.cooldown * self.history.best_epoch * self.n_batches)
        if self.config.time_limit is not None:  # no more steps than there is time for
            elapsed = self.history[-1].seconds
            n_steps = min(n_steps, int(self.n_steps * (self.config.time_limit - elapsed) / max(elapsed, 1e-9)))
        self.cooling_from = self.n_steps
        self.cooling_steps = max(20, n_steps)

    @property
    def has_cooled_down(self) -> bool:
        """Whether the step size has fallen to zero."""
        return self.cooling_from is not None and self.n_steps - self.cooling_from >= self.cooling_steps

    def averaged_weights(self) -> AbstractContextManager[None]:
        """Return a block in which the network has the weights that are judged and kept."""
        return nullcontext() if self.mean is None else self.mean.in_place()

    @property
    def running_additivity(self) -> float | None:
        """What the dial steers by: a mean over the last batches."""
        return None if self.dial is None else float(self.dial.running)

    @torch.no_grad()
    def additivity(self, validation: TrainingRows | None) -> float | None:
        """Return the additivity on validation rows, or on those that members hold out: batches are few rows each."""
        rows = validation if validation is not None else self.held_out_rows
        if self.dial is None or rows is None or len(rows) == 0 or self.workers.count > 1:
            return self.running_additivity
        network, config = self.network, self.network.config
        network.eval()
        per_row = config.n_experts * network.n_outputs * network.n_features * config.n_members
        stride = -(-len(rows) // max(1, min(_MEASURED, 4 * _EVALUATED // per_row)))
        some = rows.take(torch.arange(0, len(rows), stride, device=rows.weight.device))
        weight = some.weight / some.weight.mean()
        evaluation = self._evaluation(validation)
        routed = evaluation.route(some.cells, weight)
        own = evaluation.own_effect(routed, routed.mean_routing, some.cells)
        return float(measured_additivity(routed.contributions, own, weight))

    def train_epoch(self, rows: RowSource, generator: torch.Generator) -> float:
        """Take one pass over the rows and return the mean loss."""
        self.network.train()
        window = rows.window
        total = torch.zeros((), device=window.weight.device, dtype=window.weight.dtype)
        for part in rows.batches(self.n_batches, self.batch_size, generator):
            self.optimiser.set_rate(self.config.learning_rate * self._rate(self.n_steps))
            total += self.replay.step(part) if self.replay else self.step(window.take(part))
            self.n_steps += 1
            if self.mean is not None:
                self.mean.update(self.n_steps)
        mean = float(total) / self.n_batches
        if not math.isfinite(mean):
            raise TrainingError(
                f"Training diverged: the loss became {mean} in epoch {len(self.history) + 1}. "
                "Lower learning_rate, or look for extreme values in the target, the weights or the offset."
            )
        return mean

    def step(self, batch: TrainingRows) -> Tensor:
        """Take one step and return the loss before it."""
        evaluation = self.network.evaluate()
        routed = evaluation.route(batch.cells, batch.weight)
        value, objective = self._objective(routed, batch, evaluation)
        self.optimiser.forget_gradients()
        objective.backward()
        self.workers.average_gradients(self.network.parameters())
        self.optimiser.step()
        return value

    def _objective(self, routed: Routed, batch: TrainingRows, evaluation: Evaluation) -> tuple[Tensor, Tensor]:
        """Return the mean loss (detached) and what is minimised: members' objectives are added, never mixed."""
        config, workers = self.config, self.workers
        score = routed.score if batch.base is None else routed.score + batch.base.unsqueeze(-1)
        per_row = self.loss.per_row(score, batch.target)  # (B, M)
        held_out = batch.is_held_out(self.own_fold)
        if held_out is not None:
            per_row = per_row * ~held_out
        objective = weighted_mean(per_row, batch.weight, workers)  # (M,)
        value = objective.detach().mean()
        if config.variation_penalty and self.network.config.n_experts > 1:
            objective = objective + config.variation_penalty * self._variation(routed, batch, evaluation)
        if config.output_penalty:
            objective = objective + config.output_penalty * output_penalty(routed, batch.weight, workers)
        if self.network.config.n_experts > 1 and (self.dial is not None or config.context_penalty):
            mean_routing = workers.mean(routed.mean_routing)
            own = evaluation.own_effect(routed, mean_routing, batch.cells)
            if self.dial is not None:
                penalty = self.dial.penalty(routed.contributions, own, batch.weight, workers)
            else:
                penalty = config.context_penalty * context_share(routed.contributions, own, batch.weight, workers)
            objective = objective + penalty
        return value, objective.sum()

    def _variation(self, routed: Routed, batch: TrainingRows, evaluation: Evaluation) -> Tensor:
        sample = evaluation.sample_experts(routed, batch.weight, self.slot_share)
        return variation_penalty(sample.values, sample.weight, self.workers if sample.is_local else ALONE)

    def validate(self, validation: TrainingRows | None) -> float | None:
        """Return the validation loss; without rows for it, that of the rows which members hold out."""
        found = self._validation_losses(validation)
        return None if found is None else float(self._validation_mean(*found))

    def standard_error(self, validation: TrainingRows | None) -> float | None:
        """Return the standard error of the validation loss."""
        found = self._validation_losses(validation)
        if found is None:
            return None
        losses, share = found[0], found[1] / self.workers.total(found[1].sum())
        mean = self._validation_mean(*found)
        # Members that share a fold hold out the same rows, which do not count twice.
        repeats = 1.0 if validation is not None else len(self.own_fold) / len(self.own_fold.unique())
        return math.sqrt(repeats * float(self.workers.total(((losses - mean) ** 2 * share**2).sum())))

    def _validation_mean(self, losses: Tensor, weights: Tensor) -> Tensor:
        return self.workers.total((losses * weights).sum()) / self.workers.total(weights.sum())

    @torch.no_grad()
    def _validation_losses(self, validation: TrainingRows | None) -> tuple[Tensor, Tensor] | None:
        """Return loss and weight of every validation row; members that hold out rows are asked for theirs alone."""
        if validation is None and self.held_out is None:
            return None
        network, config = self.network, self.network.config
        network.eval()
        evaluation = self._evaluation(validation)
        per_row = config.n_experts * network.n_outputs * network.n_features
        losses, weights = [], []
        if validation is not None:
            for batch in _chunks(validation, _EVALUATED // (per_row * config.n_members)):
                score = evaluation.route(batch.cells).score.mean(dim=-1, keepdim=True)
                losses.append(self._losses(score, batch))
                weights.append(batch.weight)
        else:
            for member, rows in enumerate(self.held_out or ()):
                for batch in _chunks(rows, _EVALUATED // per_row):
                    losses.append(self._losses(evaluation.score_member(member, batch.cells), batch))
                    weights.append(batch.weight)
        return torch.cat(losses), torch.cat(weights)

    def _evaluation(self, validation: TrainingRows | None) -> Evaluation:
        """Return what rows are judged by.

        Validation rows may hold what no training row does: new levels, or the first missing value.
        """
        evaluation = self.network.evaluate()
        return evaluation if validation is None else evaluation.filled(self.slot_share)

    def _losses(self, score: Tensor, batch: TrainingRows) -> Tensor:
        """Return the loss of every row from one score of each, (B, O, 1)."""
        score = score if batch.base is None else score + batch.base.unsqueeze(-1)
        return self.loss.per_row(score, batch.target)[:, 0]

    def record(self, epoch: Epoch, *, has_validation: bool) -> None:
        """Add an epoch to the history and keep its state if it is the best."""
        self.history.epochs.append(epoch)
        value = epoch.validation
        is_short_of_target = self.dial is not None and (epoch.additivity or 0.0) < self.dial.target - _TOLERANCE
        if not has_validation or (is_short_of_target and self._best is None):
            self.history.best_epoch = epoch.epoch  # nothing to choose by, or nothing to choose from yet
        elif value is not None and not is_short_of_target and value < self._value_to_beat:
            state = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
            self._best = _Best(value, state)
            self.history.best_epoch = epoch.epoch

    @property
    def _value_to_beat(self) -> float:
        return math.inf if self._best is None else self._best.value - self.least_gain

    def state(self, generator: torch.Generator) -> RunState:
        """Return everything the run needs to go on after this epoch."""
        tensors = with_prefix("network", self.network.state_dict())
        tensors |= with_prefix("optimiser", self.optimiser.tensors())
        if self.mean is not None:
            tensors |= with_prefix("mean", self.mean.tensors())
        tensors["generator"] = generator.get_state()
        if self.network.noise is not None:
            tensors["noise"] = self.network.noise
        if self._best is not None:
            tensors |= with_prefix("best", self._best.state)
        if self.dial is not None:
            tensors |= with_prefix("dial", {"log_gamma": self.dial.log_gamma, "running": self.dial.running})
        values = {
            "n_steps": self.n_steps,
            "cooling_from": self.cooling_from,
            "cooling_steps": self.cooling_steps,
            "cooling_reason": self.cooling_reason,
            "best": None if self._best is None else self._best.value,
            "history": self.history.to_dict(),
        }
        return RunState(tensors, values)

    def go_on_from(self, state: RunState | None, generator: torch.Generator) -> None:
        """Take over a state; None is the beginning."""
        if state is None:
            return
        self.network.load_state_dict(without_prefix("network", state.tensors))
        self.optimiser.load(without_prefix("optimiser", state.tensors))
        generator.set_state(state.tensors["generator"].cpu())
        if self.network.noise is not None:
            self.network.noise.copy_(state.tensors["noise"] + self.workers.rank * _APART)
        if self.mean is not None:
            self.mean.load(without_prefix("mean", state.tensors))
        self.n_steps, self.cooling_from = state.values["n_steps"], state.values["cooling_from"]
        self.cooling_steps, self.cooling_reason = state.values["cooling_steps"], state.values.get("cooling_reason", "")
        self.history = read_history(state.values["history"])
        if state.values["best"] is not None:
            device = self.network.intercept.device
            best = {name: tensor.to(device) for name, tensor in without_prefix("best", state.tensors).items()}
            self._best = _Best(state.values["best"], best)
        if self.dial is not None:
            for name, tensor in without_prefix("dial", state.tensors).items():
                getattr(self.dial, name).copy_(tensor)

    def restore_best(self) -> None:
        """Put the network back to its best epoch."""
        if self._best is not None:
            self.network.load_state_dict(self._best.state)
        else:
            self.history.best_epoch = len(self.history)
            if self.mean is not None:
                self.mean.settle()
        self.network.eval()


class _Replay:
    """A step captured as a CUDA graph: at these sizes, launching kernels one by one costs more than running them."""

    _WARM_UP = 3  # eager steps before capture, as torch asks for; they count as steps

    def __init__(self, run: _Run, rows: TrainingRows) -> None:
        self.run, self.rows = run, rows
        self.batch = torch.zeros(run.batch_size, dtype=torch.int64, device=rows.weight.device)
        self.stream = torch.cuda.Stream(rows.weight.device)
        self.graph: torch.cuda.CUDAGraph | None = None
        self.value = torch.zeros((), device=rows.weight.device)
        self.n_warm = 0

    def step(self, part: Tensor) -> Tensor:
        """Take one step on the rows ``part``."""
        self.batch.copy_(part)
        if self.n_warm < self._WARM_UP:
            self.n_warm += 1
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                value = self.run.step(self.rows.take(self.batch))
            torch.cuda.current_stream().wait_stream(self.stream)
            return value
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            self.run.optimiser.forget_gradients()
            with torch.cuda.graph(self.graph):
                self.value = self.run.step(self.rows.take(self.batch))
        self.graph.replay()
        return self.value


def _by_member(rows: TrainingRows | None, own_fold: Sequence[int]) -> list[TrainingRows] | None:
    """Return the rows that each member holds out: those of its fold."""
    if rows is None or rows.fold is None:
        return None
    return [rows.take(torch.nonzero(rows.fold == fold).flatten()) for fold in own_fold]


def _chunks(rows: TrainingRows, size: int) -> Iterator[TrainingRows]:
    """Yield the rows, so many at a time; of no rows, one empty part."""
    for part in torch.arange(len(rows), device=rows.weight.device).split(max(1, size)):
        yield rows.take(part)


def _slot_share(network: Network, rows: RowSource, workers: Workers) -> Tensor:
    """Return how much of the training data lies at each padded slot, with mean one: weights of a mean over slots."""
    n_features, n_slots, _ = network.inputs.shape
    share = workers.total(rows.slot_weight(n_features * n_slots))
    return share * (len(share) / share.sum())
