"""Goals: what a target asks of the scores, and whether a prediction reaches it.

A goal is a list of needs. A need is met if one of its thresholds is: a combination of the scores that must be at least
a number. Needs are necessary; whether a row reaches the goal is decided by its prediction.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import Array, BoolArray
from nae.errors import ConfigError, did_you_mean
from nae.explanation.outputs import pick_output
from nae.tables.model import TableModel

__all__ = ["Goal", "Threshold", "read_goal"]


@dataclass(frozen=True, eq=False)
class Threshold:
    """The combination ``direction`` of the scores must be at least ``least``."""

    direction: Array  # (output,)
    least: float


@dataclass(frozen=True, eq=False)
class Goal:
    """A class to be chosen, or an interval for a prediction."""

    model: TableModel
    offset: Array  # (output,), added to the scores
    at: int  # the class or output
    low: float  # of the prediction; -inf for an open end
    high: float
    is_choice: bool  # whether the class must be chosen; then the ends are open

    @property
    def name(self) -> str:
        """The class, or the output."""
        return (self.model.classes or self.model.outputs)[self.at]

    @property
    def needs(self) -> tuple[tuple[Threshold, ...], ...]:
        """What the scores must fulfil."""
        found = _class_needs(self) if self.model.classes else _number_needs(self)
        moved = [[_moved(one, self.offset) for one in need] for need in found]
        return tuple(tuple(need) for need in moved if need)

    def values(self, scores: Array) -> Array:
        """Return the prediction that the goal is about, (row,), given the scores (row, output)."""
        found = self._predicted(scores)
        return np.asarray(found[:, self.at])

    def reached(self, scores: Array) -> BoolArray:
        """Return which rows reach the goal."""
        found = self._predicted(scores)
        if self.is_choice:
            return np.asarray(self.model.choose(found) == self.at)
        return np.asarray((found[:, self.at] >= self.low) & (found[:, self.at] <= self.high))

    def _predicted(self, scores: Array) -> Array:
        """Return predictions, or probabilities, (row, output or class)."""
        mean = self.model.link.inverse(scores + self.offset)
        return np.concatenate([1 - mean, mean], axis=1) if self.model.classes and mean.shape[1] == 1 else mean


def read_goal(model: TableModel, target: Any, *, output: Any = None, offset: Any = None, now: Any = None) -> Goal:
    """Return the goal of a target. ``now`` is the prediction of the row, from which a single number is reached."""
    base = np.zeros(model.n_outputs) if offset is None else model.read_offset(offset, 1)[0]
    base = np.broadcast_to(base, (model.n_outputs,))
    if model.classes and not _is_pair(target):
        label = _class_named(model, target, "target")
        if output is not None:
            raise ConfigError(f"output goes with an interval of its probability; the target is the class {target!r}.")
        return Goal(model, base, label, -math.inf, math.inf, is_choice=True)
    at = _class_named(model, output, "output") if model.classes else pick_output(model.outputs, output)
    goal = Goal(model, base, at, -math.inf, math.inf, is_choice=False)
    low, high = _ends(target) if _is_pair(target) else _crossed(target, goal, now)
    return Goal(model, base, at, low, high, is_choice=False)


def _class_named(model: TableModel, label: Any, parameter: str) -> int:
    if label is None and len(model.classes) == 2:
        return 1
    if str(label) not in model.classes:
        hint = did_you_mean(str(label), model.classes)
        raise ConfigError(
            f"{parameter} must be one of the model's classes; got {label!r}.{hint} For a probability, pass a pair, "
            "such as target=(0.6, None)."
        )
    return model.classes.index(str(label))


def _is_pair(target: Any) -> bool:
    return isinstance(target, (tuple, list, np.ndarray)) and len(target) == 2


def _ends(target: Any) -> tuple[float, float]:
    ends = [None if end is None else _number(end, target) for end in target]
    low, high = -math.inf if ends[0] is None else ends[0], math.inf if ends[1] is None else ends[1]
    if not low <= high or (low == -math.inf and high == math.inf):
        raise ConfigError(f"target must be a pair (low, high), one of which may be None; got {target!r}.")
    return low, high


def _crossed(target: Any, goal: Goal, now: Any) -> tuple[float, float]:
    """Return the interval from a number on, away from the row's prediction."""
    value = _number(target, target)
    is_below = float(goal.values(now)[0]) < value
    return (value, math.inf) if is_below else (-math.inf, value)


def _number(value: Any, target: Any) -> float:
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not is_number or math.isnan(value):
        raise ConfigError(
            f"target must be a number to reach, or a pair (low, high) where None leaves an end open; got {target!r}."
        )
    return float(value)


def _number_needs(goal: Goal) -> list[list[Threshold]]:
    unit, link = np.eye(goal.model.n_outputs)[goal.at], goal.model.link
    found = []
    for sign, end in ((1, goal.low), (-1, goal.high)):
        if math.isfinite(end):
            with np.errstate(divide="ignore", invalid="ignore"):
                score = float(np.nan_to_num(link.link(np.array(end)), nan=-math.inf, posinf=math.inf, neginf=-math.inf))
            found.append([Threshold(sign * unit, sign * score)])
    return found


def _class_needs(goal: Goal) -> list[list[Threshold]]:
    """Return what the log-odds of a class must fulfil: against each other one, or against one of them."""
    model, others = goal.model, [i for i in range(len(goal.model.classes)) if i != goal.at]
    odds = [_log_odds(model, goal.at, other) for other in others]
    if goal.is_choice:
        weights = np.log(model.class_weight) if model.class_weight else np.zeros(len(model.classes))
        pairs = zip(odds, others, strict=True)
        return [[Threshold(one, float(weights[other] - weights[goal.at]))] for one, other in pairs]
    found = [[Threshold(one, _logit(goal.low))] for one in odds] if goal.low > 0 else []
    if goal.high < 1:  # the others together have at least the rest, so one of them has its share
        rest = _logit(1 - goal.high) - math.log(len(others))
        found.append([Threshold(-one, rest) for one in odds])
    return found


def _log_odds(model: TableModel, one: int, other: int) -> Array:
    if model.n_outputs == 1:
        return np.array([1.0 if one == 1 else -1.0])
    unit = np.eye(model.n_outputs)
    return np.asarray(unit[one] - unit[other])


def _logit(probability: float) -> float:
    if probability >= 1:
        return math.inf
    return -math.inf if probability <= 0 else math.log(probability) - math.log1p(-probability)


def _moved(one: Threshold, offset: Array) -> Threshold:
    return Threshold(one.direction, one.least - float(offset @ one.direction))
