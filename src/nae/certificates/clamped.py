"""The bounds of ``proofs.py`` for a model with clamps, which keep every contribution c between L and U at its value.

L and U are linear between the knots of one feature, and clip(c) = min(max(c, L), U) grows with each of the three. Hence
four facts, for one output:

1. If c, L and U each fall by at most f, so does clip(c). A change of the own value lowers all three at once.
2. At one value, clip(c) moves by no more than c does, and by no more than U - L. This is what other features can do.
3. Clamps cut off at most what the experts have above U, and add at most what they have below L. A curve that changes by
   numbers between -a and b is above its chords by at most a + b more.

4. Clamps move a contribution by at most what experts reach beyond them, so the difference of two by twice that.

A score of several outputs is a sum of scores of one, and so are its bounds.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nae._typing import Array, IntArray
from nae.certificates.proofs import Tables
from nae.encoding.schema import Number
from nae.tables.model import TableModel

__all__ = ["tables_of"]


def tables_of(model: TableModel, direction: Array) -> Tables:
    """Return the tables for the score ``direction @ outputs``, whether or not the model has clamps."""
    free = Tables.of(replace(model, clamps=None), direction)
    if model.clamps is None:
        return free
    clamps = model.clamps.astype(np.float64)
    exact = replace(free.model, clamps=clamps)
    parts = []
    for o in np.flatnonzero(free.direction):
        ends = np.sort(free.direction[o] * np.stack([clamps.lower[:, o], clamps.upper[:, o]]), axis=0)
        parts.append(_Clamped(exact, np.eye(len(free.direction))[o] * free.direction[o], free.eps, *ends))
    return parts[0] if len(parts) == 1 else _Sum(exact, free.direction, free.eps, tuple(parts), free)


@dataclass(frozen=True, eq=False)
class _Clamped(Tables):
    """The tables for the score of one output."""

    low: Array  # (slot,), L
    high: Array  # (slot,), U

    @cached_property
    def spread(self) -> float:
        return float(sum(self._width(i, self.experts[own]) for i, own in enumerate(self.reachable)))

    @cached_property
    def rounding(self) -> float:
        ends = sum(float(np.abs([self.low[own], self.high[own]]).max()) for own in self.reachable)
        return float(super().rounding + 8 * self.eps * ends)

    def changed(self, feature: int) -> float:
        return min(super().changed(feature), float(self._gap[feature]))

    @cached_property
    def _gap(self) -> Array:
        """The largest distance between the clamps of a feature at one value, (F,)."""
        return np.array([(self.high[own] - self.low[own]).max() for own in self.reachable])

    def cut(self, feature: int) -> float:
        """Return the most that the clamps of a feature take from, or add to, a contribution."""
        own = self.reachable[feature]
        least, most = (bound.mean(axis=-1) for bound in self.model.routing.bounds(self.experts[own], axis=1))
        return max(float((most - self.high[own]).max()), float((self.low[own] - least).max()), 0.0)

    def _own_gain(self, knots: IntArray, gain: Array) -> Array:
        return np.asarray(np.minimum.reduce([gain, np.diff(self.low[knots]), np.diff(self.high[knots])]))

    def _own_bend(self, feature: int, sign: int) -> float:
        knots = self.knots(feature)
        least, most = (bound.mean(axis=-1) for bound in self.model.routing.bounds(self.experts[knots], axis=1))
        cut = max(float((most - self.high[knots]).max()), 0.0) + max(float((self.low[knots] - least).max()), 0.0)
        return super()._own_bend(feature, sign) + cut

    def _own_effect(self, feature: int) -> float:
        own = self.reachable[feature]
        free = super()._own_effect(feature)
        held = max(free, float(np.ptp(self.low[own])), float(np.ptp(self.high[own])))
        return min(held, self._width(feature, self._own(feature, own)))

    def _felt(self, feature: int) -> Array:
        found = np.minimum(super()._felt(feature), self._gap)
        found[feature] = 0.0
        return np.asarray(found)

    def _width(self, feature: int, experts: Array) -> float:
        """Return the largest minus the least contribution of a feature, given its experts (n, K, M) at all its slots.

        From one knot to the next, both are bounded by the extremes of experts and clamps at the two knots.
        """
        own = self.reachable[feature]
        least, most = (bound.mean(axis=-1) for bound in self.model.routing.bounds(experts, axis=1))
        at = np.arange(len(own))
        is_number = isinstance(self.model.schema.features[feature], Number)
        following = at + (at < len(self.knots(feature)) - 1) if is_number else at
        floor = [np.minimum(values, values[following]) for values in (least, self.low[own], self.high[own])]
        ceiling = [np.maximum(values, values[following]) for values in (most, self.low[own], self.high[own])]
        lowest = np.minimum(np.maximum(floor[0], floor[1]), floor[2]).min()
        highest = np.maximum(np.minimum(ceiling[0], ceiling[2]), ceiling[1]).max()
        return float(highest - lowest)


@dataclass(frozen=True, eq=False)
class _Sum(Tables):
    """The tables for the score of several outputs."""

    parts: tuple["_Clamped", ...]
    free: Tables  # without clamps

    @cached_property
    def spread(self) -> float:
        return sum(part.spread for part in self.parts)

    @cached_property
    def rounding(self) -> float:
        return sum(part.rounding for part in self.parts)

    def drop(self, feature: int, sign: int) -> float:
        return sum(part.drop(feature, sign) for part in self.parts)

    def bend(self, feature: int, sign: int) -> float:
        return sum(part.bend(feature, sign) for part in self.parts)

    def effect(self, feature: int) -> float:
        found = sum(part.effect(feature) for part in self.parts)
        if self.changes(feature):
            return found
        # A sum of bounds forgets that outputs move together; the free tables do not, and clamps add little (fact 4).
        return min(found, self.free.effect(feature) + 2 * sum(part.cut(feature) for part in self.parts))

    def changes(self, feature: int) -> float:
        return sum(part.changes(feature) for part in self.parts)

    def changed(self, feature: int) -> float:
        return sum(part.changed(feature) for part in self.parts)
