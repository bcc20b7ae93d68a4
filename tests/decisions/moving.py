"""Brute force for recourse: all combinations of values on a grid, with costs that are computed on their own."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from nae._typing import Array
from nae.decisions import Recourse
from nae.encoding import Category, Columns, Number, Schema
from nae.tables import TableModel

__all__ = ["assert_holds", "assert_predicted", "grid_of", "tables_on_grid", "ways_on_grid"]

Row = Mapping[str, Any]
Grid = Mapping[str, Sequence[tuple[Any, float]]]


def grid_of(schema: Schema, row: Row, parts: int) -> dict[str, list[tuple[Any, float]]]:
    """Return values and costs by feature: every level, all knots and ``parts`` - 1 points between two."""
    found: dict[str, list[tuple[Any, float]]] = {}
    for kind in schema.features:
        own = row[kind.name]
        if isinstance(kind, Category):
            found[kind.name] = [(level, 1.0) for level in kind.levels if level != own]
            continue
        places = np.arange((len(kind.knots) - 1) * parts + 1) / parts
        places = places[places % 1 == 0] if kind.is_boolean or kind.integral else places
        values = np.interp(places, np.arange(len(kind.knots)), kind.knots)
        is_missing = own is None
        found[kind.name] = [
            (value, 1.0 if is_missing else abs(rank(kind, value) - rank(kind, own)))
            for value in values.tolist()
            if is_missing or value != own
        ]
    return found


def rank(kind: Number, value: float) -> float:
    """Return the rank of a value if every knot has the same share of the rows."""
    n = len(kind.knots)
    return float(np.interp(value, kind.knots, (np.arange(n) + 0.5) / n))


def ways_on_grid(model: TableModel, row: Row, grid: Grid, k: int) -> tuple[Array, Array, list[tuple[str, ...]]]:
    """Return scores (n, output), costs and names of the changed features of all combinations of up to ``k`` changes."""
    scores = model.decision_function(tables_on_grid(row, grid, k))
    costs: list[float] = []
    names: list[tuple[str, ...]] = []
    for some, option in _options(grid, k):
        costs.append(sum(cost for _, cost in option))
        names.append(some)
    return scores.reshape(len(names), -1), np.array(costs), names


def tables_on_grid(row: Row, grid: Grid, k: int) -> Columns:
    """Return a table of all combinations of up to ``k`` changes of a row."""
    rows = [dict(row) | {name: value for name, (value, _) in zip(*one, strict=True)} for one in _options(grid, k)]
    return Columns(tuple(as_array([one[name] for one in rows]) for name in row), tuple(row))


def _options(grid: Grid, k: int) -> Iterator[tuple[tuple[str, ...], tuple[tuple[Any, float], ...]]]:
    for size in range(1, k + 1):
        for some in combinations(grid, size):
            for option in product(*(grid[name] for name in some)):
                yield some, option


def as_array(values: list[Any]) -> Any:
    is_text = any(isinstance(value, str) for value in values)
    return np.array(values, dtype=object if is_text or None in values else np.float64)


def assert_predicted(model: TableModel, row: Row, found: Recourse) -> None:
    """Check that every way was predicted with exactly the values that it reports."""
    for way in found.ways:
        changed = dict(row) | {one.feature: one.new for one in way.changes}
        table = {name: [value] for name, value in changed.items()}
        predicted = model.predict_proba(table)[0] if model.classes else np.ravel(model.predict(table))
        assert way.prediction in predicted.tolist()
        assert way.score in np.ravel(model.decision_function(table)).tolist()
        assert way.cost == sum(one.cost for one in way.changes)
        assert len({one.feature for one in way.changes}) == len(way.changes) <= found.k


def assert_holds(found: Recourse, is_reached: Array, costs: Array, names: list[tuple[str, ...]]) -> None:
    """Check that no combination on a grid is cheaper than what is proven; there is no tolerance but rounding."""
    listed: list[set[str]] = []
    for bound, features in [*((way.bound, way.features) for way in found.ways), (found.bound, ())]:
        allowed = [not any(one <= set(some) for one in listed) for some in names]
        cheapest = costs[is_reached & np.array(allowed, dtype=bool)].min(initial=np.inf)
        assert cheapest >= bound - 1e-9
        listed.append(set(features))
