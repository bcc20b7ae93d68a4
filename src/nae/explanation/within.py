"""Read which features of a row are unknown, or known within limits only."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from nae._typing import AnyArray
from nae.encoding.columns import Columns, category_keys
from nae.encoding.frames import read_table
from nae.encoding.schema import Category, Number
from nae.errors import ConfigError, did_you_mean
from nae.ranges import Domain, among, between, whole
from nae.tables.model import TableModel

__all__ = ["read_domains", "value_within", "without"]


def read_domains(model: TableModel, unknown: Any, within: Any) -> tuple[Domain, ...]:
    """Return the domains of the features that are unknown, or known within limits."""
    open_features = [model.schema.index(name) for name in _names(unknown)]
    limits = {model.schema.index(name): limit for name, limit in _mapping(within).items()}
    twice = [i for at, i in enumerate(open_features) if i in limits or i in open_features[:at]]
    if twice:
        raise ConfigError(f"A feature can be named once; {model.feature_names[twice[0]]!r} is named twice.")
    domains = [whole(model, i) for i in open_features]
    return tuple(domains + [_limited(model, i, limit) for i, limit in limits.items()])


def without(X: Any, model: TableModel, domains: Sequence[Domain]) -> Any:
    """Return a table in which the features with a domain are missing; it need not have their columns."""
    names = {model.feature_names[domain.feature] for domain in domains}
    columns = read_table(X, only=(*model.feature_names, *names) if model.schema.has_names else None)
    if columns.names is None or not model.schema.has_names:
        return columns
    absent = [name for name in model.feature_names if name in names and name not in columns.names]
    missing: AnyArray = np.full(columns.n_rows, np.nan)
    arrays = dict(zip(columns.names, columns.arrays, strict=True)) | dict.fromkeys(names, missing)
    order = columns.names
    if absent:
        order = (*(name for name in model.feature_names if name in arrays), *(set(columns.names) - set(names)))
    order = tuple(dict.fromkeys(order))
    categorical = frozenset(order.index(columns.names[at]) for at in columns.categorical)
    return Columns(tuple(arrays[name] for name in order), order, categorical)


def value_within(kind: Number | Category, limit: Any, value: Any) -> Any:
    """Return the value within its limits that the tables do not tell from ``value``."""
    if isinstance(kind, Number):
        low, high = _interval(kind, limit)
        return min(max(value, low), high)
    slot = kind.locate(np.array([value], dtype=object))[0][0]
    keys = category_keys(np.array(_values(limit), dtype=object))
    return next(key for key in keys if _slot(kind, key) == slot)


def _limited(model: TableModel, feature: int, limit: Any) -> Domain:
    kind = model.schema.features[feature]
    if isinstance(kind, Category):
        return among(model, feature, np.array([_slot(kind, value) for value in _values(limit)]))
    low, high = _interval(kind, limit)
    return between(model, feature, low, high)


def _interval(kind: Number, limit: Any) -> tuple[float, float]:
    ends = list(limit) if isinstance(limit, (tuple, list, np.ndarray)) else [limit, limit]
    if len(ends) == 2 and all(_is_number(end) for end in ends):
        low, high = -math.inf if ends[0] is None else float(ends[0]), math.inf if ends[1] is None else float(ends[1])
        if low <= high:
            return low, high
    raise ConfigError(
        f"The limits of a number must be a pair (low, high), where None leaves an end open; got {limit!r} for "
        f"{kind.name!r}."
    )


def _slot(kind: Category, value: Any) -> int:
    key = category_keys(np.array([value], dtype=object))[0]
    slot = int(kind.locate(np.array([key], dtype=object))[0][0])
    if slot > kind.n_values:
        known = (*kind.levels, *kind.rare)
        raise ConfigError(
            f"The limits of a category must be levels that it had in training; {kind.name!r} had no {key!r}."
            f"{did_you_mean(key, known, is_listed=len(known) <= 10)}"
        )
    return slot


def _values(limit: Any) -> list[Any]:
    values = [limit] if isinstance(limit, str) or not isinstance(limit, Iterable) else list(limit)
    if not values:
        raise ConfigError("The limits of a category must be at least one level; the list is empty.")
    return values


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float, np.number, np.bool_)) and not math.isnan(value))


def _names(unknown: Any) -> list[str]:
    names = [unknown] if isinstance(unknown, str) else list(unknown) if isinstance(unknown, Iterable) else [unknown]
    if not all(isinstance(name, str) for name in names):
        raise ConfigError(f"unknown must be a list of the names of features; got {unknown!r}.")
    return names


def _mapping(within: Any) -> Mapping[str, Any]:
    if within is None:
        return {}
    if not isinstance(within, Mapping) or not all(isinstance(name, str) for name in within):
        raise ConfigError(
            f"within must be a dict by the names of features, such as {{'age': (30, 40)}}; got {within!r}."
        )
    return within
