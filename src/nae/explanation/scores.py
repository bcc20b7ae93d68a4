"""The scores that a statement can be about: an output, the log-odds of a class, or those of a class against another."""

from typing import NamedTuple

import numpy as np

from nae._typing import Array
from nae.errors import ConfigError, did_you_mean
from nae.tables.model import TableModel

__all__ = ["ScoreOf", "pairs_of", "scores_of"]


class ScoreOf(NamedTuple):
    """A score that statements are about: its name, how a sentence calls it, and what each output counts in it."""

    name: str
    title: str
    direction: Array


def scores_of(model: TableModel, name: str | None, *, is_score: bool) -> list[ScoreOf]:
    """Return the scores that the statements are about."""
    names, unit = model.outputs, np.eye(model.n_outputs)
    if name is not None and str(name) not in names:
        other = f" Take for_class({name!r}) instead." if str(name) in model.classes else ""
        raise ConfigError(f"No output is called {name!r}.{other or did_you_mean(str(name), names)}")
    chosen = range(len(names)) if name is None else [names.index(str(name))]
    if len(model.classes) > 2 and is_score:
        if name is None:
            raise ConfigError(
                "Monotone, max-effect and curved statements need one score; this model has "
                f"{len(model.classes)} classes. Name one, and its log-odds against each other class are certified: "
                f"output={names[0]!r}."
            )
        return [_against(model, chosen[0], j) for j in range(len(names)) if j != chosen[0]]
    if len(model.classes) == 2:
        return [ScoreOf(names[0], f"log-odds of {names[0]}", unit[0])]
    is_plain = len(names) == 1
    return [ScoreOf(names[i], "score" if is_plain else f"score of {names[i]}", unit[i]) for i in chosen]


def pairs_of(model: TableModel) -> list[ScoreOf]:
    """Return the log-odds of any two classes."""
    return [_against(model, i, j) for i in range(model.n_outputs) for j in range(i + 1, model.n_outputs)]


def _against(model: TableModel, one: int, other: int) -> ScoreOf:
    unit, label = np.eye(model.n_outputs), f"{model.outputs[one]} against {model.outputs[other]}"
    return ScoreOf(label, f"log-odds of {label}", unit[one] - unit[other])
