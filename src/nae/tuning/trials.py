"""The result of a search: all trials, those that no other trial beats in both objectives, and the recommended one."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from nae.errors import TrainingError
from nae.plots import FrontierPoint, frontier
from nae.selection import most_additive

__all__ = ["Trial", "TuningResult", "code"]


@dataclass(frozen=True)
class Trial:
    """One setting and its results."""

    number: int
    params: Mapping[str, Any]
    loss: float
    """Validation loss, as a mean over the seeds. Lower is better."""
    standard_error: float
    """Standard error of the loss, from the rows it was measured on."""
    additivity: float
    """Weighted additivity, as a mean over the seeds. Models with a higher one are easier to read."""
    seconds: float
    """Duration of the fits with all seeds."""
    deviation: float = 0.0
    """Standard deviation of the loss between seeds; zero for a single seed."""

    def to_dict(self) -> dict[str, Any]:
        """Return the trial as JSON values."""
        return asdict(replace(self, params=dict(self.params)))


@dataclass(frozen=True)
class TuningResult:
    """The finished trials of a study."""

    estimator: str
    """Name of the estimator's class."""
    trials: tuple[Trial, ...]
    n_failed: int = 0
    """Number of trials whose training diverged."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the estimator that did not vary, without the number of members and the seed."""

    def __post_init__(self) -> None:
        if not self.trials and not self.n_failed:
            raise TrainingError("No trial of the study finished in time. Raise time_limit, or lower max_epochs.")
        if not self.trials:
            raise TrainingError(
                f"No trial of the study finished; the training of {self.n_failed} diverged. "
                "Lower learning_rate in the space, or look for extreme values in the target."
            )

    @property
    def best(self) -> Trial:
        """The trial with the smallest loss."""
        return min(self.trials, key=lambda trial: trial.loss)

    @property
    def chosen(self) -> Trial:
        """The most additive trial within one standard error of the best."""
        return self.trials[
            most_additive(
                [trial.loss for trial in self.trials],
                [trial.standard_error for trial in self.trials],
                [trial.additivity for trial in self.trials],
            )
        ]

    @property
    def front(self) -> tuple[Trial, ...]:
        """The trials that no other beats in loss and additivity both, the most flexible first."""
        kept: list[Trial] = []
        for trial in sorted(self.trials, key=lambda one: (one.loss, -one.additivity)):
            if not kept or trial.additivity > kept[-1].additivity:
                kept.append(trial)
        return tuple(kept)

    def code(self, trial: Trial | None = None) -> str:
        """Return a line of Python that creates the estimator with a trial's settings."""
        return code(self.estimator, (trial or self.chosen).params, self.given)

    def plot(self, *, ax: Any = None, backend: str = "matplotlib", title: str = "What additivity costs") -> Any:
        """Draw all trials: a line connects the front, and a ring marks the chosen trial."""
        front, chosen = self.front, self.chosen
        points = [
            FrontierPoint(
                additivity=trial.additivity,
                score=trial.loss,
                label=f"trial {trial.number}" if trial is chosen else "",
                is_chosen=trial is chosen,
                is_beaten=trial not in front,
                series="beaten by none",
            )
            for trial in self.trials
        ]
        return frontier(
            points,
            score_label="validation loss",
            additivity_label="weighted additivity",
            title=title,
            ax=ax,
            backend=backend,
        )


def code(estimator: str, params: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> str:
    """Return a call as Python text. Values of None are left out, and given values are written exactly."""
    exact = [f"{name}={value!r}" for name, value in (given or {}).items() if name not in params]
    found = [f"{name}={_literal(value)}" for name, value in params.items() if value is not None]
    return f"{estimator}({', '.join((*exact, *found))})"


def _literal(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else repr(value)
