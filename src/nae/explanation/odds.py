"""Ranges of probabilities, from those of the log-odds of every class against every other one."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from nae._typing import Array
from nae.tables.model import TableModel

__all__ = ["LogOdds", "log_odds", "outward"]

_ULPS = 8 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class LogOdds:
    """The least and the largest log-odds of a class against another one, (row, class, other class) each."""

    lower: Array
    upper: Array

    def narrowed(self, difference: Callable[[Array], tuple[Array, Array]]) -> "LogOdds":
        """Return the log-odds with bounds of their own for every pair; ``difference`` returns those of a direction."""
        lower, upper, unit = self.lower.copy(), self.upper.copy(), np.eye(self.lower.shape[1])
        for a, b in combinations(range(len(unit)), 2):
            low, high = difference(unit[a] - unit[b])
            lower[:, a, b] = np.maximum(lower[:, a, b], low)
            upper[:, a, b] = np.minimum(upper[:, a, b], high)
            lower[:, b, a], upper[:, b, a] = -upper[:, a, b], -lower[:, a, b]
        return LogOdds(lower, upper)

    @property
    def probabilities(self) -> tuple[Array, Array]:
        """The least and the largest probability of every class, (row, class) each."""
        found = []
        for sign, odds in ((-1, self.lower), (1, self.upper)):
            with np.errstate(over="ignore"):
                against = np.exp(-odds).sum(axis=2)  # a class against itself is 1
            found.append(np.clip(1 / against + sign * _ULPS, 0.0, 1.0))
        return found[0], found[1]

    def certain(self, model: TableModel) -> tuple[str | None, ...]:
        """Return the class that is chosen whatever the log-odds are, or None, of every row."""
        weights = np.log(model.class_weight) if model.class_weight else np.zeros(len(model.classes))
        wins = (self.lower + weights[:, None] - weights > _ULPS) | np.eye(len(weights), dtype=bool)
        n_beaten = np.asarray(wins.sum(axis=2))
        found = np.where(n_beaten.max(axis=1, initial=0) == len(weights), n_beaten.argmax(axis=1), -1)
        return tuple(model.classes[at] if at >= 0 else None for at in found.tolist())


def log_odds(model: TableModel, lower: Array, upper: Array) -> LogOdds:
    """Return what the bounds of the scores (row, output) say about log-odds."""
    if model.n_outputs == 1:  # two classes: the score speaks for the second one, against a score of 0
        lower, upper = (np.concatenate([np.zeros_like(end), end], axis=1) for end in (lower, upper))
    low, high = (one[:, :, None] - other[:, None] for one, other in ((lower, upper), (upper, lower)))
    itself = np.eye(lower.shape[1], dtype=bool)
    return LogOdds(np.where(itself, 0.0, low), np.where(itself, 0.0, high))


def outward(values: Array, sign: int) -> Array:
    """Return values moved by some digits in the last place, upwards or downwards."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(values), values + sign * _ULPS * np.abs(values), values)
