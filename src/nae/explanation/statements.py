"""Statements about a model, read from the arguments of ``certify`` or from what a file promises."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from nae._words import counted
from nae.encoding.schema import Category, Number
from nae.errors import ConfigError, FormatError
from nae.explanation.inputs import shown_value
from nae.tables.model import TableModel

__all__ = ["Statement", "read_promises", "read_statements"]

_PROMISES = ("monotone", "max_effect", "isolated", "unchanged", "curved", "ordered")
_MONOTONE = "A monotone statement"
_CURVATURES = {"convex": 1, "concave": -1}
_DIRECTIONS = {"increasing": 1, "+": 1, 1: 1, "decreasing": -1, "-": -1, -1: -1}


class Statement(NamedTuple):
    """A statement about one feature, or about an output and the one after it."""

    kind: str
    position: int  # of the feature, or of the lower output
    sign: int = 0  # of a direction or a curvature
    limit: float = 0.0

    @property
    def way(self) -> str:
        """The direction or the curvature in words; empty for other kinds."""
        words = {"monotone": ("increasing", "decreasing"), "curved": ("convex", "concave")}.get(self.kind, ("", ""))
        return words[self.sign < 0]

    def claim(self, model: TableModel, score: str) -> str:
        """Return the statement in words; ``score`` is how a sentence calls the score."""
        feature = model.schema.features[self.position]
        name = feature.name
        if self.kind == "curved" and isinstance(feature, Number):
            first, last = (shown_value(float(knot)) for knot in feature.knots[[0, -1]])
            shape = "convex" if self.sign > 0 else "concave"
            return f"Between {first} and {last}, the {score} is a {shape} function of {name}."
        claims = {
            "monotone": f"A higher {name} never {'lowers' if self.sign > 0 else 'raises'} the {score}.",
            "max effect": f"{name} alone moves the {score} by at most {self.limit:g}.",
            "isolated": f"{name} changes the effect of no other feature.",
            "unchanged": f"No other feature changes the effect of {name}.",
        }
        return claims[self.kind]


def read_statements(
    model: TableModel,
    *,
    monotone: Mapping[str, str | int] | None = None,
    max_effect: Mapping[str, float] | None = None,
    isolated: Iterable[str] | str = (),
    unchanged: Iterable[str] | str = (),
    curved: Mapping[str, str] | None = None,
    ordered: bool = False,
) -> list[Statement]:
    """Return the statements that the arguments of ``certify`` make. One that makes no sense is an error."""
    return [
        *(_monotone(model, name, way) for name, way in _mapping(monotone, "monotone", "increasing").items()),
        *(_max_effect(model, name, limit) for name, limit in _mapping(max_effect, "max_effect", 0.05).items()),
        *(Statement("isolated", model.schema.index(name)) for name in _names(isolated, "isolated")),
        *(Statement("unchanged", model.schema.index(name)) for name in _names(unchanged, "unchanged")),
        *(_curved(model, name, shape) for name, shape in _mapping(curved, "curved", "convex").items()),
        *(Statement("ordered", lower) for lower in _neighbours(model, is_asked=ordered)),
    ]


def read_promises(model: TableModel) -> dict[str, Any]:
    """Return what the fit of a model was made to keep, as arguments of ``certify``; nothing if it made no promise."""
    promises = dict(model.training.constraints or {})
    unknown = sorted(set(promises) - {*_PROMISES, "output"})
    if unknown:
        raise FormatError(
            f"A promise must be one of {', '.join(_PROMISES)}; the file promises {unknown[0]!r}. "
            "pip install -U neural-additive-experts"
        )
    return promises


def _monotone(model: TableModel, name: str, way: Any) -> Statement:
    at = model.schema.index(name)
    if not isinstance(way, (str, int, np.integer)) or isinstance(way, bool) or way not in _DIRECTIONS:
        raise ConfigError(f"A direction must be 'increasing' (+) or 'decreasing' (-); got {way!r} for {name!r}.")
    _check_number(model, at, _MONOTONE)
    return Statement("monotone", at, sign=_DIRECTIONS[way])


def _curved(model: TableModel, name: str, shape: Any) -> Statement:
    at = model.schema.index(name)
    if not isinstance(shape, str) or shape not in _CURVATURES:
        raise ConfigError(f"A curvature must be 'convex' or 'concave'; got {shape!r} for {name!r}.")
    _check_number(model, at, "A curved statement")
    return Statement("curved", at, sign=_CURVATURES[shape])


def _check_number(model: TableModel, at: int, what: str) -> None:
    feature = model.schema.features[at]
    if isinstance(feature, Category) and not (feature.is_ordered and what == _MONOTONE):
        raise ConfigError(
            f"{what} needs a feature with an order; {feature.name!r} is a category of "
            f"{counted(len(feature.levels), 'level')}. Use max_effect or isolated for it."
        )


def _neighbours(model: TableModel, *, is_asked: Any) -> range:
    """Return the outputs that another one follows."""
    if not isinstance(is_asked, bool):
        raise ConfigError(f"ordered must be True or False; got {is_asked!r}.")
    if is_asked and (model.classes or model.n_outputs == 1):
        has = f"{len(model.classes)} classes" if model.classes else "one output"
        raise ConfigError(f"ordered needs outputs with an order, such as several quantiles; this model has {has}.")
    return range(model.n_outputs - 1 if is_asked else 0)


def _max_effect(model: TableModel, name: str, limit: Any) -> Statement:
    at = model.schema.index(name)
    is_number = isinstance(limit, (int, float, np.number)) and not isinstance(limit, bool)
    if not is_number or not 0 <= limit < math.inf:
        raise ConfigError(f"A max effect must be a number of at least 0, in units of the score; got {limit!r}.")
    return Statement("max effect", at, limit=float(limit))


def _mapping(given: Any, parameter: str, example: object) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ConfigError(
            f"{parameter} must be a dict by the names of features, such as {{'income': {example!r}}}; got {given!r}."
        )
    return given


def _names(given: Any, parameter: str) -> list[str]:
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(name, str) for name in names):
        raise ConfigError(f"{parameter} must be a list of the names of features; got {given!r}.")
    return names
