"""Schedules: how large a step is, and when a training has gone on for long enough.

A schedule keeps its own state, and puts it into a checkpoint as JSON values.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nae.training.config import TrainingConfig
from nae.training.history import Epoch

__all__ = ["SCHEDULES", "Cosine", "Plateau", "Progress", "Schedule"]

_LEAST_FALL = 20  # steps over which the step size of a plateau falls, at least


@dataclass(frozen=True)
class Progress:
    """Where a training stands after an epoch."""

    epoch: Epoch
    best_epoch: int
    n_steps: int

    @property
    def n_waited(self) -> int:
        """The epochs since the best one."""
        return self.epoch.epoch - self.best_epoch

    def has_waited(self, patience: int | None) -> bool:
        """Return whether the last ``patience`` epochs brought nothing better; None waits forever."""
        return patience is not None and self.epoch.validation is not None and self.n_waited >= patience


class Schedule(ABC):
    """How the step size follows from the steps and from what validation says."""

    def __init__(self, config: TrainingConfig, n_batches: int) -> None:
        self.config, self.n_batches = config, n_batches

    @abstractmethod
    def rate(self, step: int) -> float:
        """Return the step size, as a share of the largest one."""

    @abstractmethod
    def reason_to_stop(self, progress: Progress) -> str:
        """Return why the training ends here; an empty text lets it go on."""

    @property
    def is_falling(self) -> bool:
        """Whether the step size is on its last way down, so that every epoch is worth a look."""
        return False

    def turns_back(self, progress: Progress) -> bool:
        """Return whether the training is to go on from its best epoch, and change the step size for that."""
        return False

    @abstractmethod
    def values(self) -> dict[str, Any]:
        """Return the state as JSON values."""

    @abstractmethod
    def load(self, values: Mapping[str, Any]) -> None:
        """Take a state over."""

    def _warm_up(self, step: int) -> float:
        return min(1.0, (step + 1) / self.config.warmup_steps)


class Cosine(Schedule):
    """The step size falls to zero over all epochs, along a cosine; patience ends a training early."""

    def rate(self, step: int) -> float:
        n_steps = self.config.max_epochs * self.n_batches
        return self._warm_up(step) * 0.5 * (1 + math.cos(math.pi * min(step / n_steps, 1.0)))

    def reason_to_stop(self, progress: Progress) -> str:
        has_waited = progress.has_waited(self.config.patience)
        return f"no better validation loss for {progress.n_waited} epochs" if has_waited else ""

    def values(self) -> dict[str, Any]:
        return {}  # everything follows from the number of the step

    def load(self, values: Mapping[str, Any]) -> None:
        """Leave everything as it is."""


class Plateau(Schedule):
    """The step size stays until validation stops improving; from the best epoch on, it falls to zero along a line."""

    def __init__(self, config: TrainingConfig, n_batches: int) -> None:
        super().__init__(config, n_batches)
        self.fall_from: int | None = None
        self.n_fall_steps = 1
        self.reason = ""

    @property
    def is_falling(self) -> bool:
        return self.fall_from is not None

    def rate(self, step: int) -> float:
        if self.fall_from is None:
            return self._warm_up(step)
        return max(0.0, 1 - (step - self.fall_from) / self.n_fall_steps)

    def reason_to_stop(self, progress: Progress) -> str:
        if self.fall_from is None or progress.n_steps - self.fall_from < self.n_fall_steps:
            return ""
        return f"{self.reason}, and the step size fell to zero"

    def turns_back(self, progress: Progress) -> bool:
        """Let the step size fall if there is no more progress, or just enough epochs or time left for the fall."""
        if self.fall_from is not None:
            return False
        self.reason = self._reason_to_fall(progress)
        if not self.reason:
            return False
        limit, elapsed = self.config.time_limit, progress.epoch.seconds
        n_steps = round(self.config.cooldown * progress.best_epoch * self.n_batches)
        if limit is not None:  # no more steps than there is time for
            n_steps = min(n_steps, int(progress.n_steps * (limit - elapsed) / max(elapsed, 1e-9)))
        self.fall_from, self.n_fall_steps = progress.n_steps, max(_LEAST_FALL, n_steps)
        return True

    def _reason_to_fall(self, progress: Progress) -> str:
        config, epoch = self.config, progress.epoch
        if progress.has_waited(config.patience) and progress.n_steps >= config.least_steps:
            return "validation stopped improving"
        share = config.cooldown / (1 + config.cooldown)
        if config.max_epochs - epoch.epoch <= share * config.max_epochs:
            return "the epochs came to an end"
        is_late = config.time_limit is not None and epoch.seconds >= (1 - share) * config.time_limit
        return "time came to an end" if is_late else ""

    def values(self) -> dict[str, Any]:
        return {"cooling_from": self.fall_from, "cooling_steps": self.n_fall_steps, "cooling_reason": self.reason}

    def load(self, values: Mapping[str, Any]) -> None:
        self.fall_from, self.n_fall_steps = values["cooling_from"], values["cooling_steps"]
        self.reason = values.get("cooling_reason", "")


SCHEDULES: dict[str, type[Schedule]] = {"cosine": Cosine, "plateau": Plateau}
