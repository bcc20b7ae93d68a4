"""The training loop: shuffled batches, one optimiser, the best epoch kept."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nae.errors import TrainingError
from nae.network.network import Network, Routed
from nae.training.config import TrainingConfig
from nae.training.data import TrainingRows
from nae.training.dial import Dial
from nae.training.history import Epoch, History
from nae.training.losses import Loss
from nae.training.penalties import output_penalty, variation_penalty, weighted_mean
from nae.training.progress import progress_bar

__all__ = ["Callback", "train"]

Callback = Callable[..., Any]
_TOLERANCE = 0.02  # a model within this of the dial's target counts as having reached it
_EVALUATION_ROWS = 8192


def train(
    network: Network,
    rows: TrainingRows,
    validation: TrainingRows | None,
    loss: Loss,
    config: TrainingConfig,
    *,
    generator: torch.Generator,
    callbacks: Sequence[Callback] = (),
    is_verbose: bool = False,
) -> History:
    """Train ``network`` in place and leave it at its best epoch; return what happened."""
    run = _Run(network, loss, config, n_rows=len(rows))
    started = time.monotonic()
    with progress_bar(config.max_epochs, is_shown=is_verbose) as show:
        for number in range(1, config.max_epochs + 1):
            mean_loss = run.train_epoch(rows, generator)
            epoch = Epoch(
                epoch=number,
                loss=mean_loss,
                validation=run.evaluate(validation) if validation is not None else None,
                additivity=run.additivity,
                seconds=time.monotonic() - started,
            )
            run.record(epoch)
            show(epoch)
            run.history.stopped = _reason_to_stop(run, epoch, callbacks)
            if run.history.stopped:
                break
    run.restore_best()
    run.history.stopped = run.history.stopped or "ran all epochs"
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
        if answer is True or answer == "stop":
            return f"{getattr(callback, '__name__', 'a callback')} asked to stop"
    if config.time_limit is not None and epoch.seconds >= config.time_limit:
        return f"time limit of {config.time_limit:g} s"
    waited = epoch.epoch - run.history.best_epoch
    if config.patience is not None and epoch.validation is not None and waited >= config.patience:
        return f"no better validation loss for {waited} epochs"
    return ""


@dataclass
class _Best:
    value: float
    state: dict[str, Tensor]


class _Run:
    """One run: optimiser, schedule, dial and the best state so far."""

    def __init__(self, network: Network, loss: Loss, config: TrainingConfig, *, n_rows: int) -> None:
        self.network, self.loss, self.config = network, loss, config
        self.n_batches = max(1, round(n_rows / config.batch_size))
        self.batch_size = n_rows // self.n_batches
        parameter = network.intercept
        # One fused kernel per step instead of one per parameter.
        self.optimiser = torch.optim.AdamW(
            network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay, fused=True
        )
        n_steps, warmup = config.max_epochs * self.n_batches, config.warmup_steps
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimiser,
            lambda step: 0.5 * (1 + math.cos(math.pi * min(step / n_steps, 1))) * min(1.0, (step + 1) / warmup),
        )
        self.dial = (
            None
            if config.additivity is None or network.config.n_experts == 1
            else Dial(config.additivity, device=parameter.device, dtype=parameter.dtype)
        )
        self.history = History()
        self._best: _Best | None = None

    @property
    def additivity(self) -> float | None:
        return None if self.dial is None else float(self.dial.running)

    def train_epoch(self, rows: TrainingRows, generator: torch.Generator) -> float:
        """Take one pass over the rows and return the mean loss."""
        self.network.train()
        total = torch.zeros((), device=rows.weight.device, dtype=rows.weight.dtype)
        for batch in self._batches(rows, generator):
            routed = self.network(batch.cells)
            value, objective = self._objective(routed, batch)
            self.optimiser.zero_grad(set_to_none=True)
            objective.backward()
            self.optimiser.step()
            self.schedule.step()
            total += value
        mean = float(total) / self.n_batches
        if not math.isfinite(mean):
            raise TrainingError(
                f"Training diverged: the loss became {mean} in epoch {len(self.history) + 1}. "
                "Lower learning_rate, or look for extreme values in the target, the weights or the offset."
            )
        return mean

    def _batches(self, rows: TrainingRows, generator: torch.Generator) -> Iterator[TrainingRows]:
        if self.n_batches == 1:
            yield rows
            return
        # The few rows that do not fill a batch are others in every epoch.
        order = torch.randperm(len(rows), generator=generator)
        for part in order[: self.n_batches * self.batch_size].view(self.n_batches, -1):
            yield rows.take(part.to(rows.weight.device))

    def _objective(self, routed: Routed, batch: TrainingRows) -> tuple[Tensor, Tensor]:
        """Return the mean loss (detached) and what is minimised: members' objectives are added, never mixed."""
        config = self.config
        score = routed.score if batch.base is None else routed.score + batch.base.unsqueeze(-1)
        objective = weighted_mean(self.loss.per_row(score, batch.target), batch.weight)  # (M,)
        value = objective.detach().mean()
        if network_has_experts(self.network) and config.variation_penalty:
            objective = objective + config.variation_penalty * variation_penalty(routed, batch.weight)
        if config.output_penalty:
            objective = objective + config.output_penalty * output_penalty(routed, batch.weight)
        if self.dial is not None:
            objective = objective + self.dial.penalty(routed, batch.weight)
        return value, objective.sum()

    @torch.no_grad()
    def evaluate(self, rows: TrainingRows) -> float:
        """Return the mean loss of the members' mean score."""
        self.network.eval()
        is_piecewise = self.network.config.encoder != "mlp"
        tables = self.network.evaluate_knots() if is_piecewise else None
        total = torch.zeros((), device=rows.weight.device, dtype=rows.weight.dtype)
        for part in torch.arange(len(rows), device=rows.weight.device).split(_EVALUATION_ROWS):
            batch = rows.take(part)
            if tables is None:
                routed = self.network(batch.cells)
            else:
                routed = self.network.route(*self.network.interpolate(*tables, batch.cells))
            score = routed.score.mean(dim=-1, keepdim=True)
            score = score if batch.base is None else score + batch.base.unsqueeze(-1)
            total += (self.loss.per_row(score, batch.target)[:, 0] * batch.weight).sum()
        return float(total / rows.weight.sum())

    def record(self, epoch: Epoch) -> None:
        """Add an epoch to the history and keep its state if it is the best."""
        self.history.epochs.append(epoch)
        value = epoch.validation
        is_short_of_target = self.dial is not None and (epoch.additivity or 0.0) < self.dial.target - _TOLERANCE
        if value is None or (is_short_of_target and self._best is None):
            self.history.best_epoch = epoch.epoch  # nothing to choose by, or nothing to choose from yet
        elif not is_short_of_target and (self._best is None or value < self._best.value):
            state = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
            self._best = _Best(value, state)
            self.history.best_epoch = epoch.epoch

    def restore_best(self) -> None:
        """Put the network back to its best epoch."""
        if self._best is not None:
            self.network.load_state_dict(self._best.state)
        self.network.eval()


def network_has_experts(network: Network) -> bool:
    """Return whether there is anything to route."""
    return network.config.n_experts > 1
