"""The training loop: epochs, looks at the validation rows, the best epoch kept, checkpoints."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nae.errors import TrainingError
from nae.training.best import Best
from nae.training.checkpoint import Checkpoints, RunState, with_prefix, without_prefix
from nae.training.config import TrainingConfig
from nae.training.engine import Engine
from nae.training.history import ASKED, Epoch, History
from nae.training.progress import progress_bar
from nae.training.schedule import SCHEDULES, Progress
from nae.training.shrinkage import keep_share
from nae.training.workers import ALONE, Workers

__all__ = ["Callback", "train"]

Callback = Callable[..., Any]
_GAIN = 0.02  # standard errors of the validation loss that count as progress on a small table: less is rounding


def train(
    engine: Engine,
    config: TrainingConfig,
    *,
    callbacks: Sequence[Callback] = (),
    is_verbose: bool = False,
    workers: Workers = ALONE,
    checkpoints: Checkpoints | None = None,
) -> History:
    """Let an engine train, and leave it at its best epoch; return what happened.

    If there are several ``workers``, each calls this with the same network and its own share of every batch. If there
    are ``checkpoints``, training goes on from the last state, and every epoch that is looked at leaves one.
    """
    run = _Run(engine, config)
    has_start = engine.network.start is not None
    if has_start:  # measured at the start, also where the training goes on from later
        run.best.least_gain = _GAIN * (run.standard_error() or 0.0)
    run.go_on_from(checkpoints.latest() if checkpoints else None)
    started = time.monotonic() - (run.history[-1].seconds if len(run.history) else 0.0)
    with progress_bar(config.max_epochs, is_shown=is_verbose) as show:
        for number in range(len(run.history) + 1, config.max_epochs + 1):
            mean_loss = run.train_epoch(number)
            seconds = workers.agree(time.monotonic() - started)
            is_looked_at = run.is_to_be_looked_at(number, seconds)
            epoch = run.look(number, mean_loss, seconds) if is_looked_at else run.pass_by(number, mean_loss, seconds)
            show(epoch)
            run.history.stopped = workers.agree(run.reason_to_stop(epoch, callbacks))
            if run.history.stopped:
                break
            run.turn_back_if_due(epoch)
            if checkpoints and is_looked_at:
                checkpoints.save(run.state(), epoch)
    run.finish()
    if has_start:
        kept = keep_share(engine, run.validate, least_gain=run.best.least_gain)
        run.history.kept_share, run.history.kept_validation = kept
    run.history.stopped = run.history.stopped or "ran all epochs"
    run.history.standard_error = run.standard_error()
    run.history.penalty = None if engine.dial is None else engine.dial.strength
    return run.history


class _Run:
    """One run: an engine, a schedule, the best epoch so far, and what happened."""

    def __init__(self, engine: Engine, config: TrainingConfig) -> None:
        self.engine, self.config = engine, config
        self.schedule = SCHEDULES[config.schedule](config, engine.n_batches)
        target = None if engine.dial is None else engine.dial.target
        self.best = Best(target=target, is_judged=engine.is_judged)
        self.history = History()

    def train_epoch(self, number: int) -> float:
        """Take one pass over the rows and return the mean loss."""
        mean = self.engine.train_epoch(lambda step: self.config.learning_rate * self.schedule.rate(step))
        if not math.isfinite(mean):
            raise TrainingError(
                f"Training diverged: the loss became {mean} in epoch {number}. "
                "Lower learning_rate, or look for extreme values in the target, the weights or the offset."
            )
        return mean

    def is_to_be_looked_at(self, number: int, seconds: float) -> bool:
        """Return whether an epoch is validated: every so often, every one while the step size falls, and the last."""
        config = self.config
        is_last = number == config.max_epochs or seconds >= (config.time_limit or math.inf)
        return is_last or number % config.evaluate_every == 0 or self.schedule.is_falling

    def look(self, number: int, loss: float, seconds: float) -> Epoch:
        """Validate an epoch and record it."""
        return self._record(Epoch(number, loss, self.validate(), self.engine.additivity(), seconds))

    def pass_by(self, number: int, loss: float, seconds: float) -> Epoch:
        """Record an epoch that nobody looked at; its additivity is a mean over the last batches."""
        additivity = None if self.engine.dial is None else self.engine.dial.running
        return self._record(Epoch(number, loss, None, additivity, seconds))

    def _record(self, epoch: Epoch) -> Epoch:
        self.history.epochs.append(epoch)
        if self.best.offer(epoch, self.engine.snapshot):
            self.history.best_epoch = epoch.epoch
        return epoch

    def validate(self) -> float | None:
        """Return the validation loss."""
        verdict = self.engine.judge()
        return None if verdict is None else verdict.loss

    def standard_error(self) -> float | None:
        """Return the standard error of the validation loss."""
        verdict = self.engine.judge()
        return None if verdict is None else verdict.standard_error

    def reason_to_stop(self, epoch: Epoch, callbacks: Sequence[Callback]) -> str:
        """Return why the training ends with an epoch; an empty text lets it go on."""
        limit = self.config.time_limit
        if reason := _callback_that_stops(callbacks, epoch, self.config.max_epochs):
            return reason
        if limit is not None and epoch.seconds >= limit:
            return f"time limit of {limit:g} s"
        return self.schedule.reason_to_stop(self._progress(epoch))

    def turn_back_if_due(self, epoch: Epoch) -> None:
        """Go back to the best epoch if the schedule says so."""
        if self.schedule.turns_back(self._progress(epoch)) and self.best.snapshot is not None:
            self.engine.restore(self.best.snapshot)

    def _progress(self, epoch: Epoch) -> Progress:
        return Progress(epoch, self.history.best_epoch, self.engine.n_steps)

    def finish(self) -> None:
        """Leave the engine at its best epoch."""
        if self.best.snapshot is None:
            self.history.best_epoch = len(self.history)
        else:
            self.engine.restore(self.best.snapshot)

    def state(self) -> RunState:
        """Return everything the run needs to go on after this epoch."""
        state = self.engine.state()
        values = {"best": self.best.value, "history": self.history.to_dict()}
        arrays = with_prefix("best", self.best.snapshot or {})
        return RunState({**state.arrays, **arrays}, {**state.values, **self.schedule.values(), **values})

    def go_on_from(self, state: RunState | None) -> None:
        """Take over a state; None is the beginning."""
        if state is None:
            return
        self.engine.load(state)
        self.schedule.load(state.values)
        self.history = History.from_dict(state.values["history"])
        if state.values["best"] is not None:
            self.best.value, self.best.snapshot = state.values["best"], without_prefix("best", state.arrays)


def _callback_that_stops(callbacks: Sequence[Callback], epoch: Epoch, n_epochs: int) -> str:
    """Tell the callbacks about an epoch until one asks to stop, and return that it did."""
    for callback in callbacks:
        answer = callback(
            epoch=epoch.epoch,
            n_epochs=n_epochs,
            loss=epoch.loss,
            validation=epoch.validation,
            additivity=epoch.additivity,
            seconds=epoch.seconds,
        )
        if (isinstance(answer, (bool, np.bool_)) and answer) or answer == "stop":
            return f"{getattr(callback, '__name__', 'a callback')} {ASKED}"
    return ""
