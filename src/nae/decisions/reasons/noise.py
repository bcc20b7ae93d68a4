"""Noise: numbers that may be off by some amount, and what this does to the contributions of a row."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding.cells import Cells
from nae.encoding.columns import Columns, numbers
from nae.encoding.schema import Number
from nae.errors import ConfigError, did_you_mean
from nae.ranges import Span
from nae.tables.model import TableModel

__all__ = ["divided", "moved_rows", "read_tolerance", "spans_of"]


_MOST_BOXES = 8  # into which the values within the tolerance are divided


def read_tolerance(model: TableModel, given: Mapping[str, Any] | None) -> Array:
    """Return by how much every feature may be off, (feature,); 0 for those that are exact."""
    amounts = np.zeros(model.n_features)
    for name, amount in (given or {}).items():
        if name not in model.feature_names:
            raise ConfigError(f"No feature is called {name!r}.{did_you_mean(str(name), model.feature_names)}")
        at = model.feature_names.index(name)
        kind = model.schema.features[at]
        if not isinstance(kind, Number) or kind.is_boolean:
            raise ConfigError(f"A tolerance is an amount by which a number may be off; {name!r} is a {kind.kind}.")
        if not _is_amount(amount):
            raise ConfigError(f"A tolerance must be a positive finite number; got {amount!r} for {name!r}.")
        amounts[at] = float(amount)
    return amounts


def spans_of(model: TableModel, columns: Columns, amounts: Array) -> list[Span]:
    """Return between which places the inexact features of every row lie. Missing values remain missing."""
    found = []
    for i in np.flatnonzero(amounts):
        kind = model.schema.features[int(i)]
        values = numbers(columns.arrays[int(i)], kind.name)
        low, high = (sum(kind.locate(end)) for end in (values - amounts[i], values + amounts[i]))
        found.append(Span(int(i), np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)))
    return found


def moved_rows(model: TableModel, cells: Cells, spans: Sequence[Span]) -> Iterator[Cells]:
    """Yield the rows with one inexact feature, or all of them, at an end of what it may be."""
    n = len(spans)
    alone = [tuple(side * (j == i) for j in range(n)) for i in range(n) for side in (-1, 1)]
    together = [(side,) * n for side in (-1, 1)] if n > 1 else []
    for sides in (*alone, *together):
        yield _moved(model, cells, spans, sides)


def divided(spans: Sequence[Span], rows: IntArray) -> Iterator[list[Span]]:
    """Yield spans of some rows that together cover all combinations of theirs; none if that would be too many."""
    n_parts = int(_MOST_BOXES ** (1 / len(spans)) + 1e-9)
    if n_parts < 2:
        return
    own = [Span(span.feature, span.low[rows], span.high[rows]) for span in spans]
    for parts in product(range(n_parts), repeat=len(spans)):
        yield [_part_of(span, part, n_parts) for span, part in zip(own, parts, strict=True)]


def _part_of(span: Span, part: int, n_parts: int) -> Span:
    width = (span.high - span.low) / n_parts
    high = span.high if part == n_parts - 1 else span.low + (part + 1) * width
    return Span(span.feature, span.low + part * width, high)


def _moved(model: TableModel, cells: Cells, spans: Sequence[Span], sides: Sequence[int]) -> Cells:
    """Return rows with every feature of a span at its low end (-1), its high end (1), or where it is (0)."""
    slot, fraction = cells.slot.copy(), cells.fraction.copy()
    for span, side in zip(spans, sides, strict=True):
        if side:
            place = span.high if side > 0 else span.low
            slot[:, span.feature] = np.floor(place) + model.schema.offsets[span.feature]
            fraction[:, span.feature] = place - np.floor(place)
    is_whole = fraction >= 1  # rounded up to the next knot
    return Cells(slot + is_whole, np.where(is_whole, fraction.dtype.type(0), fraction))


def _is_amount(value: Any) -> bool:
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return is_number and bool(np.isfinite(value)) and value > 0
