"""Statements about a model, read from the arguments of ``certify``."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from nae._words import counted
from nae.encoding.schema import Category
from nae.errors import ConfigError
from nae.tables.model import TableModel

__all__ = ["Statement", "read_statements"]

_DIRECTIONS = {"increasing": 1, "+": 1, 1: 1, "decreasing": -1, "-": -1, -1: -1}


class Statement(NamedTuple):
    """A statement about one feature."""

    kind: str
    feature: int
    sign: int = 0
    limit: float = 0.0


def read_statements(
    model: TableModel,
    *,
    monotone: Mapping[str, str | int] | None = None,
    max_effect: Mapping[str, float] | None = None,
    isolated: Iterable[str] | str = (),
    unchanged: Iterable[str] | str = (),
) -> list[Statement]:
    """Return the statements that the arguments of ``certify`` make. One that makes no sense is an error."""
    return [
        *(_monotone(model, name, way) for name, way in _mapping(monotone, "monotone", "increasing").items()),
        *(_max_effect(model, name, limit) for name, limit in _mapping(max_effect, "max_effect", 0.05).items()),
        *(Statement("isolated", model.schema.index(name)) for name in _names(isolated, "isolated")),
        *(Statement("unchanged", model.schema.index(name)) for name in _names(unchanged, "unchanged")),
    ]


def _monotone(model: TableModel, name: str, way: Any) -> Statement:
    at = model.schema.index(name)
    if not isinstance(way, (str, int, np.integer)) or isinstance(way, bool) or way not in _DIRECTIONS:
        raise ConfigError(f"A direction must be 'increasing' (+) or 'decreasing' (-); got {way!r} for {name!r}.")
    feature = model.schema.features[at]
    if isinstance(feature, Category):
        raise ConfigError(
            f"A monotone statement needs a feature with an order; {name!r} is a category of "
            f"{counted(len(feature.levels), 'level')}. Use max_effect or isolated for it."
        )
    return Statement("monotone", at, sign=_DIRECTIONS[way])


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
