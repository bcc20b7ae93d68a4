"""What is decided about a row, as requirements of its scores: each combination of outputs must reach a number."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import Array, BoolArray
from nae.decisions.outcomes import Outcome, read_outcome
from nae.errors import ConfigError
from nae.tables.model import TableModel

__all__ = ["Decision", "Requirement", "decide"]


@dataclass(frozen=True, eq=False)
class Requirement:
    """A score must be above a number, or at least that number."""

    direction: Array  # (output,)
    limit: float
    is_strict: bool = True

    def holds(self, scores: Array) -> BoolArray:
        """Return whether scores (row, output) meet the requirement, (row,)."""
        found = scores @ self.direction
        return np.asarray(found > self.limit if self.is_strict else found >= self.limit)


@dataclass(frozen=True, eq=False)
class Decision:
    """What is decided, in words, and what the scores must meet for it."""

    words: str
    requirements: tuple[Requirement, ...]

    def holds(self, scores: Array) -> BoolArray:
        """Return whether scores (row, output) lead to the decision, (row,)."""
        return np.asarray(np.logical_and.reduce([one.holds(scores) for one in self.requirements]))


def decide(
    model: TableModel, score: Array, *, threshold: Any, toward: Any, against: Any, output: str | int | None
) -> Decision:
    """Return what is decided about a row with a score, (output,), including the offset."""
    if threshold is None:
        if not model.classes:
            raise ConfigError("A decision about a number needs a threshold, such as threshold=100_000; none is given.")
        if toward is not None or against is not None:
            raise ConfigError("toward and against name the class whose probability has a threshold; none is given.")
        return _of_class(model, score)
    outcome = read_outcome(model, toward, against=against, output=output)
    limit = _limit(model, outcome, threshold)
    is_above = float(score @ outcome.direction) >= limit
    word = "at least" if is_above else "below"
    words = f"the {outcome.measure} is {word} {float(threshold):g}"
    sign = 1.0 if is_above else -1.0
    return Decision(words, (Requirement(sign * outcome.direction, sign * limit, is_strict=not is_above),))


def _of_class(model: TableModel, score: Array) -> Decision:
    """Return the requirements of the class that is chosen: log-odds against each other class."""
    weights = np.log(model.class_weight) if model.class_weight else np.zeros(len(model.classes))
    chosen = int(model.choose(_probabilities(model, score))[0])
    others = [j for j in range(len(model.classes)) if j != chosen]
    unit = np.eye(len(model.classes)) if model.n_outputs > 1 else np.array([[0.0], [1.0]])
    return Decision(
        f"the class is {model.classes[chosen]}",
        tuple(Requirement(unit[chosen] - unit[j], float(weights[j] - weights[chosen]), chosen > j) for j in others),
    )


def _probabilities(model: TableModel, score: Array) -> Array:
    mean = model.link.inverse(score[None])
    return np.concatenate([1 - mean, mean], axis=1) if model.n_outputs == 1 else mean


def _limit(model: TableModel, outcome: Outcome, threshold: Any) -> float:
    """Return the score of the outcome at the threshold of its prediction."""
    if not isinstance(threshold, (int, float, np.integer, np.floating)) or isinstance(threshold, bool):
        raise ConfigError(f"threshold must be a number; got {threshold!r}.")
    if len(model.classes) > 2:
        raise ConfigError(
            f"A threshold of a probability needs two classes; this model has {len(model.classes)}. Leave it out: the "
            "class that is chosen is the decision."
        )
    if (model.classes and not 0 < threshold < 1) or (model.link.name == "log" and threshold <= 0):
        raise ConfigError(f"threshold must be a possible prediction of the model; got {threshold:g}.")
    if model.classes:
        return float(np.log(threshold) - np.log1p(-threshold))
    return float(outcome.share.sum() * model.link.link(np.array([float(threshold)]))[0])
