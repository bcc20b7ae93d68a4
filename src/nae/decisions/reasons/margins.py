"""Margins: by how much every reason is ahead of the features behind it, whatever else could have been.

Features of a row are in order: the one that counts most for the outcome first. A reason keeps its place if it still
counts more than every feature behind it, and more than nothing. It stays listed if it counts more than every feature
that is not listed. If a difference may lie in an interval, the reason is at its lower end, the others at the upper one.

Shapes: B rows, F features that may be named, k reasons.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from nae._typing import Array, IntArray
from nae.decisions.reasons.comparing import Compared
from nae.decisions.reasons.noise import divided, moved_rows
from nae.decisions.reasons.references import centred_members
from nae.explanation.members import member_contributions
from nae.ranges import Span, bounds_near

__all__ = ["TESTS", "Order", "Survival"]

TESTS = ("members", "noise", "context")  # which the order may survive


@dataclass(frozen=True, eq=False)
class Order:
    """The features of rows in order, and how many of the first are listed."""

    features: IntArray  # (B, F)
    n_listed: int

    @classmethod
    def of(cls, differences: Array, named: IntArray, n_listed: int) -> Self:
        """Return the order of the features that may be named."""
        return cls(named[np.argsort(-differences[:, named], axis=1, kind="stable")], n_listed)

    def take(self, rows: IntArray) -> "Order":
        """Return the order of some rows."""
        return Order(self.features[rows], self.n_listed)

    @property
    def listed(self) -> IntArray:
        """The first features, (B, k)."""
        return self.features[:, : self.n_listed]

    def ahead(self, lower: Array, upper: Array) -> Array:
        """Return by how much reasons keep their place, and by how much they stay listed, (2, B, k).

        ``lower`` and ``upper`` limit the differences of all features, (B, all features).
        """
        low, high = (np.take_along_axis(end, self.features, axis=1) for end in (lower, upper))
        behind = np.maximum.accumulate(high[:, ::-1], axis=1)[:, ::-1]  # the largest from here on
        behind = np.concatenate([behind, np.zeros((len(high), 1))], axis=1).clip(min=0.0)
        first, n = low[:, : self.n_listed], self.n_listed
        return np.stack([first - behind[:, 1 : n + 1], first - behind[:, [n]]])


@dataclass(frozen=True, eq=False)
class Survival:
    """What the order of rows survives; the names are those of :class:`Reasons`."""

    places: Array  # (B, k, test)
    listed: Array
    found: Array  # (B, k)
    agreeing: IntArray

    @classmethod
    def of(cls, rows: Compared, order: Order, spans: Sequence[Span]) -> Self:
        """Return the results of all tests: every member, the spans of inexact numbers, and any context."""
        of_members, agreeing = _in_members(rows, order)
        in_noise, found = _in_noise(rows, order, spans)
        tests = np.stack([of_members, in_noise, order.ahead(*rows.in_any_context())], axis=-1)
        return cls(tests[0], tests[1], found, agreeing)


def _in_members(rows: Compared, order: Order) -> tuple[Array, IntArray]:
    """Return the margins in the worst member, and how many members give every reason its place."""
    unknown = np.full((2, *order.listed.shape), np.nan)
    if rows.model.n_members == 1:
        return unknown, np.ones(order.listed.shape, dtype=np.int64)
    members = centred_members(member_contributions(rows.model, rows.cells), rows.values)
    every = np.stack([order.ahead(one, one) for one in rows.of_members(members)])
    return every.min(axis=0), np.asarray((every[:, 0] > 0).sum(axis=0))


def _in_noise(rows: Compared, order: Order, spans: Sequence[Span]) -> tuple[Array, Array]:
    """Return the margins for any values within the spans, and the smallest ones of the values that were tried."""
    shape = order.listed.shape
    if not spans:
        return np.full((2, *shape), np.nan), np.full(shape, np.nan)
    proven = _proven(rows, order, spans)
    found = np.full(shape, np.inf)
    for cells in moved_rows(rows.model, rows.cells, spans):
        moved = rows.counted(rows.model.contributions(cells).values.reshape(rows.values.shape))
        np.minimum(found, order.ahead(moved, moved)[0], out=found)
    some = np.flatnonzero(((proven[0] <= 0) & (found > 0)).any(axis=1))
    finer = [_proven(rows.take(some), order.take(some), parts) for parts in divided(spans, some)] if len(some) else []
    if finer:
        proven[:, some] = np.maximum(proven[:, some], np.min(finer, axis=0))
    return proven, found


def _proven(rows: Compared, order: Order, spans: Sequence[Span]) -> Array:
    return order.ahead(*rows.between(*bounds_near(rows.model, rows.cells, spans)))
