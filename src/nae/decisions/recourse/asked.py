"""What is asked about the moves of a row: which features stay, in which direction others move, and their costs."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nae.encoding.columns import category_keys
from nae.encoding.schema import Category
from nae.errors import ConfigError, did_you_mean
from nae.tables.model import TableModel

__all__ = ["Asked", "read_asked"]


@dataclass(frozen=True, eq=False)
class Asked:
    """The moves that a user allows. Features are positions."""

    fixed: frozenset[int]
    direction: Mapping[int, int]  # 1 for values that may only rise, -1 for those that may only fall
    may_miss: frozenset[int]  # features that may become missing
    weight: tuple[float, ...]  # of every feature
    levels: Mapping[int, Mapping[int, float]] = field(default_factory=dict)  # the costs of levels, by slot
    per_change: float = 0.0  # what every change costs besides
    support: float = 0.01


def read_asked(
    model: TableModel,
    *,
    fixed: Any = (),
    increasing: Any = (),
    decreasing: Any = (),
    may_miss: Any = (),
    costs: Mapping[str, Any] | None = None,
    per_change: Any = 0.0,
    support: Any = 0.01,
    unnamed: Iterable[str] = (),
) -> Asked:
    """Return what is asked. What makes no sense is an error."""
    rising, falling = _positions(model, increasing, "increasing"), _positions(model, decreasing, "decreasing")
    both = [i for i in rising if i in falling]
    stays = _positions(model, fixed, "fixed")
    if both:
        raise ConfigError(
            f"A feature rises or falls; {model.feature_names[both[0]]!r} is in increasing and in decreasing. "
            "Put it into fixed if it must stay."
        )
    for i in (*rising, *falling):
        _check_order(model, i)
    weight, levels = _costs(model, costs)
    return Asked(
        fixed=frozenset([*stays, *map(model.schema.index, unnamed)]),
        direction=dict.fromkeys(rising, 1) | dict.fromkeys(falling, -1),
        may_miss=frozenset(_positions(model, may_miss, "may_miss")),
        weight=weight,
        levels=levels,
        per_change=_share(per_change, "per_change", "a cost", 1e6),
        support=_share(support, "support", "a share of the training rows", 0.5),
    )


def _positions(model: TableModel, names: Any, parameter: str) -> list[int]:
    words = [names] if isinstance(names, str) else list(names) if isinstance(names, Iterable) else [names]
    if not all(isinstance(word, str) for word in words):
        raise ConfigError(f"{parameter} must be a list of the names of features; got {names!r}.")
    return [model.schema.index(word) for word in words]


def _check_order(model: TableModel, i: int) -> None:
    kind = model.schema.features[i]
    if isinstance(kind, Category) and not kind.is_ordered:
        raise ConfigError(
            f"Only a feature with an order rises or falls; {kind.name!r} is a category. Put it into fixed, or give "
            "its levels costs."
        )


def _costs(model: TableModel, costs: Any) -> tuple[tuple[float, ...], dict[int, dict[int, float]]]:
    """Return the weight of every feature, and the costs of levels."""
    if costs is not None and not isinstance(costs, Mapping):
        raise ConfigError(f"costs must be a dict by the names of features, such as {{'savings': 2.0}}; got {costs!r}.")
    weight, levels = np.ones(model.n_features), {}
    for name, cost in (costs or {}).items():
        i = model.schema.index(name)
        if isinstance(cost, Mapping):
            levels[i] = {_level(model, i, level): _cost(name, price) for level, price in cost.items()}
        else:
            weight[i] = _cost(name, cost)
    return tuple(weight.tolist()), levels


def _level(model: TableModel, i: int, level: Any) -> int:
    kind = model.schema.features[i]
    if not isinstance(kind, Category):
        raise ConfigError(f"Only levels have costs of their own; {kind.name!r} is a {kind.kind}. Give it one weight.")
    key = category_keys(np.array([level], dtype=object))
    slot = int(kind.locate(key)[0][0])
    if slot > kind.n_values:
        raise ConfigError(
            f"costs must name levels; {kind.name!r} has no {level!r}.{did_you_mean(str(level), kind.levels)}"
        )
    return slot


def _cost(name: str, cost: Any) -> float:
    is_number = isinstance(cost, (int, float, np.number)) and not isinstance(cost, bool)
    if not is_number or not 0 < cost < math.inf:
        raise ConfigError(f"A cost must be a number above 0; got {cost!r} for {name!r}. Features in fixed stay.")
    return float(cost)


def _share(value: Any, parameter: str, what: str, below: float) -> float:
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not is_number or not 0 <= value < below:
        raise ConfigError(f"{parameter} must be {what} in [0, {below:g}); got {value!r}.")
    return float(value)
