"""Upper bounds, for every possible input, of what changes between two models: read off their tables.

Both models stand on one schema (:func:`nae.certificates.merged.merge`), so experts and gate terms of both are linear
between neighbouring slots. Two bounds are computed for every feature, and the smaller one counts:

1. *Ranges.* Over an interval, the logits lie in ranges. For any fixed weights, a contribution is linear in the value,
   so the difference of the contributions of both models is largest at an end of the interval, under the weights that
   favour it most. With logits in ranges, these put the largest logits on the highest experts.
2. *Pairs.* If experts and members correspond by position,
   c' - c = sum_k r'_k (o'_k - o_k) + sum_k (r'_k - r_k) o_k. The first sum is a mean of the changes of the experts. If
   no difference of two logits changes by more than s, no set of experts gains more than tanh(s / 4) of the weight, so
   the second sum is at most the distance between the experts, times that share. It is zero for models with one gate.

Clamps keep a contribution c between L and U. Then clip(c) is at most max(c, L) and at most U, which are convex in the
value, and it grows by no more than the largest of what c, L and U grow by.

The change of the score is at most the change of the intercept and the sum over the features.

Shapes: T slots, K experts, F features, M members; n intervals of one feature. A mean over members comes last.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Self

import numpy as np

from nae._typing import Array, IntArray
from nae.certificates.clamped import tables_of
from nae.certificates.logit_ranges import LogitRange, Range, logit_ranges
from nae.certificates.merged import alike, merge
from nae.certificates.proofs import Tables
from nae.encoding.schema import Number
from nae.tables.model import TableModel

__all__ = ["Changes"]


@dataclass(frozen=True, eq=False)
class Changes:
    """What changes between two models over one schema, for one score."""

    first: Tables
    second: Tables
    parts: tuple["_Part", ...]  # whose changes add up: clamps keep every output within a range of its own
    rounding: float  # the most by which rounding changes the difference of two computed scores

    @classmethod
    def of(cls, first: TableModel, second: TableModel, direction: Array) -> Self:
        """Return the changes of the score ``direction @ outputs``, outputs in the order of the first model."""
        models = merge(first, second)
        directions = [np.asarray(direction, dtype=np.float64)]
        if any(model.clamps is not None for model in models):
            directions = [np.eye(len(direction))[o] * direction[o] for o in np.flatnonzero(direction)]
        parts = [_Part(*(_unclamped(model, one) for model in models)) for one in directions]
        rounding = sum(tables_of(model, direction).rounding for model in (first, alike(first, second)))
        old, new = (tables_of(model, direction) for model in models)
        return cls(old, new, tuple(parts), rounding)

    @cached_property
    def of_features(self) -> Array:
        """The least and the largest change of every feature's contribution, from first to second, (F, 2)."""
        return np.asarray(sum(part.changes for part in self.parts))

    @property
    def of_intercept(self) -> float:
        """The change of the intercept."""
        return float((self.second.model.intercept - self.first.model.intercept) @ self.first.direction)

    @property
    def of_score(self) -> Array:
        """The least and the largest change of the score, (2,)."""
        return np.asarray(self.of_features.sum(axis=0) + self.of_intercept)


@dataclass(frozen=True, eq=False)
class _Part:
    """The tables of two models over one schema, for one output, or for several without clamps."""

    first: Tables
    second: Tables

    @cached_property
    def changes(self) -> Array:
        """The least and the largest change of every feature's contribution, (F, 2)."""
        old, new, moved = logit_ranges(self.first, self.second)
        found = np.empty((self.first.model.n_features, 2))
        for i in range(len(found)):
            left, right = self._intervals(i)
            one, other = (
                _Side.of(tables, (left, right), logits.between(i, left, right))
                for tables, logits in ((self.first, old), (self.second, new))
            )
            shifted = self._shifted(i, left, right, moved)
            found[i] = -_rise(other, one, shifted), _rise(one, other, shifted)
        return found

    def _intervals(self, feature: int) -> tuple[IntArray, IntArray]:
        """Return the slots that an input can lie between, (n,) each. Levels and missing stand alone."""
        own, kind = self.first.reachable[feature], self.first.model.schema.features[feature]
        n_knots = kind.n_values if isinstance(kind, Number) and not kind.is_empty else 0
        return own, own + (np.arange(len(own)) < n_knots - 1)

    def _shifted(self, feature: int, left: IntArray, right: IntArray, moved: LogitRange | None) -> Array | None:
        """Return the largest share of the weight that moves between experts, (n, M); None if experts do not pair."""
        old, new = self.first.model, self.second.model
        if moved is None:
            return None
        if self.first.is_fixed and self.second.is_fixed:
            return np.zeros((len(left), old.n_members))
        if old.routing != new.routing:
            return np.ones((len(left), old.n_members))
        sway = _largest_difference(*moved.between(feature, left, right))
        return (sway > 0).astype(np.float64) if self.first.jumps else np.tanh(sway / 4)


@dataclass(frozen=True, eq=False)
class _Side:
    """One model between slots of a feature."""

    tables: Tables
    ends: tuple[Array, Array]  # experts at both ends, (n, K, M) each
    lower: tuple[Array, Array]  # clamps at both ends, (n,) each; infinite without clamps
    upper: tuple[Array, Array]
    logits: Range  # (n, K, M) each

    @classmethod
    def of(cls, tables: Tables, ends: tuple[IntArray, IntArray], logits: Range) -> Self:
        """Return a model between the slots at two ends."""
        clamps, direction = tables.model.clamps, tables.direction
        lower, upper = np.full(len(tables.experts), -np.inf), np.full(len(tables.experts), np.inf)
        if clamps is not None:
            lower, upper = np.sort(np.stack([clamps.lower @ direction, clamps.upper @ direction]), axis=0)
        experts, low, high = ((array[ends[0]], array[ends[1]]) for array in (tables.experts, lower, upper))
        return cls(tables, experts, low, high, logits)

    @property
    def is_clamped(self) -> bool:
        return self.tables.model.clamps is not None

    @property
    def room(self) -> Array:
        """The largest distance between two experts, (n, M)."""
        return np.asarray(np.maximum(*(np.ptp(end, axis=1) for end in self.ends)))

    def highest(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Return two upper bounds of the contribution at both ends, linear or convex in the value for fixed weights."""
        free = [np.maximum(self.most(end), lower) for end, lower in zip(self.ends, self.lower, strict=True)]
        return (free[0], free[1]), self.upper

    def lowest(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Return two lower bounds of the contribution at both ends, linear or concave in the value."""
        free = [np.minimum(-self.most(-end), upper) for end, upper in zip(self.ends, self.upper, strict=True)]
        return (free[0], free[1]), self.lower

    def most(self, values: Array) -> Array:
        """Return the largest mean of values (n, K, M) that the weights of the experts can give, (n,)."""
        if self.tables.is_fixed:
            found = values.mean(axis=1)
        elif self.tables.jumps:
            found = self.tables.model.routing.bounds(values, axis=1)[1]
        else:
            found = _softmax_most(values, *self.logits)
        return np.asarray(found.mean(axis=-1))


def _unclamped(model: TableModel, direction: Array) -> Tables:
    """Return the tables of what the clamps of a model are applied to; the model keeps the clamps."""
    free = Tables.of(replace(model, clamps=None), direction)
    return replace(free, model=replace(free.model, clamps=model.clamps))


def _rise(old: _Side, new: _Side, shifted: Array | None) -> float:
    """Return the most by which a contribution grows from one model to the other."""
    bound = np.full(len(old.room), np.inf)
    for high, low in product(new.highest(), old.lowest()):
        bound = np.minimum(bound, np.maximum(high[0] - low[0], high[1] - low[1]))
    if shifted is not None and old.is_clamped == new.is_clamped:
        bound = np.minimum(bound, _paired_rise(old, new, shifted))
    return float(bound.max())


def _paired_rise(old: _Side, new: _Side, shifted: Array) -> Array:
    """Return the same from knot to knot, (n,), where experts correspond; clamps grow by no more, either."""
    moves = [end - before for before, end in zip(old.ends, new.ends, strict=True)]
    bound = np.full(len(moves[0]), np.inf)
    for weights, experts in ((new, old), (old, new)):  # either model's weights, and the experts of the other one
        moved = np.maximum(*(weights.most(move) for move in moves))
        bound = np.minimum(bound, moved + (experts.room * shifted).mean(axis=-1))
    if old.is_clamped:
        for before, after in ((old.lower, new.lower), (old.upper, new.upper)):
            bound = np.maximum(bound, np.maximum(after[0] - before[0], after[1] - before[1]))
    return bound


def _softmax_most(values: Array, least: Array, most: Array) -> Array:
    """Return the largest mean of values (n, K, M) under the softmax of logits in a range, (n, M).

    Raising the logit of a value raises the mean if the value is above the mean, so at the largest mean the highest
    values have their largest logits, and the others their least ones.
    """
    order = np.argsort(-values, axis=1, kind="stable")
    values, least, most = (np.take_along_axis(array, order, axis=1) for array in (values, least, most))
    top = most.max(axis=1, keepdims=True)
    high, low = np.exp(most - top), np.exp(least - top)
    weight, total = (np.cumsum(part, axis=1) for part in (high, high * values))
    weight[:, :-1] += np.cumsum(low[:, :0:-1], axis=1)[:, ::-1]
    total[:, :-1] += np.cumsum((low * values)[:, :0:-1], axis=1)[:, ::-1]
    found = np.where(weight > 1e-290, total / np.maximum(weight, 1e-290), values[:, :1])
    return np.asarray(np.minimum(found.max(axis=1), values[:, 0]))


def _largest_difference(least: Array, most: Array) -> Array:
    """Return the largest difference of two numbers out of ranges (n, K, M), (n, M)."""
    if least.shape[1] == 1:
        return np.zeros((len(least), least.shape[2]))
    lowest = np.partition(least, 1, axis=1)[:, :2]  # of all, and of all but the lowest
    is_lowest = np.arange(least.shape[1])[:, None] == least.argmin(axis=1)[:, None]
    return np.asarray((most - np.where(is_lowest, lowest[:, 1:], lowest[:, :1])).max(axis=1))
