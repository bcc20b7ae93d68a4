"""Outcomes: what a decision can be for, and the score that rises with it.

Every outcome has a score that is linear in the outputs of the model, so contributions to it are contributions of the
model, weighted. With two classes it is the log-odds of the class. With more classes it is the mean of the log-odds of
the class against each other class. For a number it is the score, or its negative.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import Array
from nae.errors import ConfigError, did_you_mean
from nae.explanation.outputs import pick_output
from nae.tables.model import TableModel

__all__ = ["Outcome", "outcomes_of", "read_outcome"]

_SIDES = {"high": "low", "low": "high"}


@dataclass(frozen=True, eq=False)
class Outcome:
    """An outcome: its name, the score that rises with it, and the prediction that does."""

    name: str
    title: str  # of the score
    direction: Array  # (output,), what each output counts in the score
    measure: str  # what the prediction is called
    share: Array  # (output,), what each prediction of the model counts in the outcome's own
    base: float = 0.0  # what is added to these predictions

    def predicted(self, mean: Array) -> Array:
        """Return the outcome's own prediction, (row,), from those of the model, (row, output)."""
        return np.asarray(self.base + mean @ self.share)


def outcomes_of(model: TableModel) -> dict[str, dict[str, Any]]:
    """Return the arguments of :func:`read_outcome` for every outcome by its name; the first outcome is a default."""
    if len(model.classes) == 2:
        return {name: {"toward": name} for name in model.classes[::-1]}
    if model.classes:
        against = {f"not {name}": {"against": name} for name in model.classes}
        return {name: {"toward": name} for name in model.classes} | against
    if model.n_outputs == 1:
        return {side: {"toward": side} for side in _SIDES}
    return {f"{side} of {name}": {"toward": side, "output": name} for name in model.outputs for side in _SIDES}


def read_outcome(
    model: TableModel, toward: Any = None, *, against: Any = None, output: str | int | None = None
) -> Outcome:
    """Return the outcome that rises ``toward`` a class or side, and falls ``against`` it.

    A class is given by its label; a side of a number is 'high' or 'low'. Two classes at once are compared with each
    other. If neither is given, it is the class that the score speaks for, or a high prediction.
    """
    if model.classes:
        if output is not None:
            raise ConfigError(f"output names one of several targets; this model has classes. Pass toward={output!r}.")
        return _of_class(model, toward, against)
    return _of_number(model, toward, against, pick_output(model.outputs, output))


def _of_number(model: TableModel, toward: Any, against: Any, output: int) -> Outcome:
    side = _named("toward", toward, _SIDES)
    other = _named("against", against, _SIDES)
    if side is not None and side == other:
        raise ConfigError(f"toward and against must differ; both are {side!r}.")
    side = side or (_SIDES[other] if other else "high")
    sign, word = (1.0, "") if side == "high" else (-1.0, "negative ")
    of = "" if len(model.outputs) == 1 else f" of {model.outputs[output]}"
    direction = sign * np.eye(model.n_outputs)[output]
    return Outcome(f"{side}{of}", f"{word}score{of}", direction, f"prediction{of}", direction)


def _of_class(model: TableModel, toward: Any, against: Any) -> Outcome:
    one, other = _named("toward", toward, model.classes), _named("against", against, model.classes)
    if one is not None and one == other:
        raise ConfigError(f"toward and against must differ; both are {one!r}.")
    if model.n_outputs == 1:
        second = model.classes[1]
        name = one or (model.classes[model.classes.index(other) - 1] if other else second)
        sign = np.array([1.0 if name == second else -1.0])
        return Outcome(name, f"log-odds of {name}", sign, f"probability of {name}", sign, float(name != second))
    if one is None and other is None:
        n, first = len(model.classes), model.classes[0]
        raise ConfigError(f"With {n} classes, an outcome must be named. Pass one, such as toward={first!r}.")
    return _of_many(model, one, other)


def _of_many(model: TableModel, one: str | None, other: str | None) -> Outcome:
    """Return the outcome of one of more than two classes: against another class, or against each of the others."""
    unit = np.eye(model.n_outputs)
    if one is not None and other is not None:
        direction = unit[model.classes.index(one)] - unit[model.classes.index(other)]
        name, title = f"{one} rather than {other}", f"log-odds of {one} against {other}"
        return Outcome(name, title, direction, f"probability of {one} minus that of {other}", direction)
    name = one if one is not None else str(other)
    rest, own = 1.0 / (len(model.classes) - 1), unit[model.classes.index(name)]
    direction = (1.0 + rest) * own - rest
    title = f"mean log-odds of {name} against each other class"
    if one is None:
        return Outcome(
            f"not {name}", f"negative {title}", -direction, f"probability of any class but {name}", -own, 1.0
        )
    return Outcome(name, title, direction, f"probability of {name}", own)


def _named(parameter: str, value: Any, names: Any) -> str | None:
    if value is None:
        return None
    if str(value) not in names:
        hint = did_you_mean(str(value), names, is_listed=len(names) <= 10)
        raise ConfigError(f"{parameter} must be one of the model's outcomes; got {value!r}.{hint}")
    return str(value)
