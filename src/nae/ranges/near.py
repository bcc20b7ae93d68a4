"""Bounds of every contribution when some numbers of each row may lie anywhere near their value.

Every row has limits of its own. Gate terms and experts are linear between two knots, so within the limits each is
smallest and largest at an end or at a knot between the ends. All logits then lie in intervals, and so do the weights.

Shapes: B rows, V slots of one feature, K experts, F features, M members, O outputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nae._typing import Array, IntArray
from nae.certificates import Tables, tables_of
from nae.encoding.cells import Cells
from nae.ranges.domains import whole
from nae.ranges.gates import Units
from nae.ranges.mixing import largest, limits
from nae.ranges.problem import Mixed
from nae.tables.lookup import interpolate
from nae.tables.model import TableModel

__all__ = ["Span", "bounds_near"]

_PLACES = 2**20  # logits that are computed at once


@dataclass(frozen=True, eq=False)
class Span:
    """Between which places a feature of every row lies. A place is a slot within the feature plus a fraction."""

    feature: int
    low: Array  # (B,)
    high: Array  # (B,); a level, or a missing value, has only one place

    def take(self, rows: slice) -> "Span":
        """Return the span of some rows."""
        return Span(self.feature, self.low[rows], self.high[rows])

    def extremes(self, table: Array) -> tuple[Array, Array]:
        """Return the least and the largest values of a table (V, ...) between the places, (B, ...) each."""
        ends = _at(table, self.low), _at(table, self.high)
        least, most = np.minimum(*ends), np.maximum(*ends)
        first, last = np.ceil(self.low).astype(np.int64), np.floor(self.high).astype(np.int64)
        _widen(table, first, last, least, most)
        return least, most


def bounds_near(model: TableModel, cells: Cells, spans: Sequence[Span]) -> tuple[Array, Array]:
    """Return lower and upper bounds of the contributions, (B, F, O) each, up to rounding of double precision."""
    tables = tables_of(model, np.ones(model.n_outputs))
    cells = Cells(cells.slot.astype(np.int64), cells.fraction.astype(np.float64))
    shape = (len(cells), model.n_features, model.n_outputs)
    lower, upper = np.empty(shape), np.empty(shape)
    step = max(1, _PLACES // (model.n_experts * model.n_features * model.n_members))
    for start in range(0, len(cells), step):
        rows = slice(start, start + step)
        lower[rows], upper[rows] = _bounds(tables, cells.take(rows), [span.take(rows) for span in spans])
    return lower, upper


def _bounds(tables: Tables, cells: Cells, spans: Sequence[Span]) -> tuple[Array, Array]:
    model = tables.model
    weights = limits(model.routing, *_logits(model, cells, spans))  # (K, B, F * M) each
    least, most = _extremes(model, model.experts, cells, spans)  # (B, F, K, O, M) each
    lower = np.stack([-_means(model, weights, -least[:, :, :, o]) for o in range(model.n_outputs)], axis=-1)
    upper = np.stack([_means(model, weights, most[:, :, :, o]) for o in range(model.n_outputs)], axis=-1)
    if model.clamps is None:
        return lower, upper
    floor, ceiling = (_extremes(model, end, cells, spans) for end in (model.clamps.lower, model.clamps.upper))
    clipped = [np.minimum(np.maximum(end, floor[i]), ceiling[i]) for i, end in enumerate((lower, upper))]
    return clipped[0], clipped[1]


def _logits(model: TableModel, cells: Cells, spans: Sequence[Span]) -> tuple[Array, Array]:
    """Return the least and the largest logits, (K, B, F * M) each."""
    units = Units(model)
    domains = [whole(model, span.feature) for span in spans]
    for domain in domains:
        cells = domain.place(cells, np.zeros(len(cells), dtype=np.int64))
    low = units.at(cells)
    high = low.copy()
    for domain, span in zip(domains, spans, strict=True):
        least, most = span.extremes(units.along(domain))
        low += units.grouped(least)
        high += units.grouped(most)
    return units.logits(low, high)


def _extremes(model: TableModel, table: Array, cells: Cells, spans: Sequence[Span]) -> tuple[Array, Array]:
    """Return the least and the largest values of a table (slot, ...) at the rows' cells, (B, F, ...) each."""
    least = interpolate(table.astype(np.float64, copy=False), cells)
    most = least.copy()
    for span in spans:
        own = table[model.schema.slots(span.feature)]
        least[:, span.feature], most[:, span.feature] = span.extremes(own)
    return least, most


def _means(model: TableModel, weights: tuple[Array, Array], experts: Array) -> Array:
    """Return the largest means of experts (B, F, K, M) under weights within limits, (B, F)."""
    n_rows, n_features, n_experts, n_members = experts.shape
    columns = experts.transpose(0, 2, 1, 3).reshape(n_rows, n_experts, -1)
    mixed = Mixed.of(columns, np.arange(n_features * n_members))
    found = largest(model.routing, mixed.read(weights[0]), mixed.read(weights[1]), mixed.experts)
    return np.asarray(found.reshape(n_rows, n_features, n_members).mean(axis=-1))


def _at(table: Array, places: Array) -> Array:
    """Return a table (V, ...) at places between two slots, (B, ...)."""
    slot = np.floor(places).astype(np.int64)
    share = (places - slot).reshape(-1, *[1] * (table.ndim - 1))
    return np.asarray(table[slot] * (1 - share) + table[slot + (places > slot)] * share)


def _widen(table: Array, first: IntArray, last: IntArray, least: Array, most: Array) -> None:
    """Extend extremes (B, ...) in place by the slots from ``first`` to ``last``, of which there may be none.

    A run of slots is covered by two runs of the largest power of two that is not longer.
    """
    length = last - first + 1
    size, low, high = 1, table, table
    while (length >= size).any():
        rows = np.flatnonzero((length >= size) & (length < 2 * size))
        for at in (first[rows], last[rows] - size + 1):
            least[rows] = np.minimum(least[rows], low[at])
            most[rows] = np.maximum(most[rows], high[at])
        low = np.minimum(low[:-size], low[size:]) if len(low) > size else low
        high = np.maximum(high[:-size], high[size:]) if len(high) > size else high
        size *= 2
