"""Clamps of a fit: how near the bounds of the experts the contributions of training rows with a similar value come.

The *position* of a contribution is 0 where it meets the lower bound of the experts and 1 where it meets the upper one;
in between, both bounds are taken as linear from knot to knot. At every slot, a clamp leaves the positions of the rows
in a window around it, and a margin. So clamps lie within the bounds, follow a steep curve, and leave the rows that they
were measured on as they are.

A window holds ``_SHARE`` of the rows and at least ``_LEAST_ROWS``; a level, and missing values, have their own rows
alone. Where these are fewer than ``_LEAST_ROWS``, all rows of the feature count. A slot without rows keeps the bounds.
Where experts cross between two knots, the bounds are narrower there than at both: clamps make way for them, too.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.encoding.cells import Cells
from nae.encoding.schema import Number
from nae.network.forms import Forms
from nae.tables.clamps import Clamps
from nae.tables.lookup import interpolate
from nae.tables.model import TableModel

__all__ = ["Guards", "Positions", "clamped"]

_SHARE = 0.02
_LEAST_ROWS = 30
_MOST_MARGIN = 0.25  # of the range of positions; it is 1 / sqrt(rows), since more rows tell the range better
_NARROW = 1e-9  # of the widest bounds of a feature: between these, there is no position
_ROUNDING = 16  # units in the last place of a feature's experts, by which clamps are wider than measured


@dataclass(frozen=True, eq=False)
class Guards:
    """The promises that clamps must not break, by feature."""

    direction: IntArray
    """(F,), 1 or -1 where the contributions rise or fall over the first ``n_ordered`` slots: clamps do, too."""
    n_ordered: IntArray
    """(F,)."""
    is_free: BoolArray
    """(F,), whether clamps leave the contributions alone, such as those that are convex or concave."""
    is_ordered: bool = False
    """Whether contributions to one output never exceed those to the next: nor do clamps."""

    @classmethod
    def none(cls, n_features: int) -> Self:
        """Return no guards."""
        nothing = np.zeros(n_features, dtype=np.int64)
        return cls(nothing, nothing, nothing.astype(bool))

    @classmethod
    def of(cls, forms: Forms | None, n_features: int, *, is_ordered: bool = False, has_classes: bool = False) -> Self:
        """Return the guards of what a network was made to be."""
        if forms is None:
            return replace(cls.none(n_features), is_ordered=is_ordered)
        is_ordered = is_ordered or forms.sorts_outputs
        # A cap on the log-odds of several classes is about differences of outputs, which clamps of each could widen.
        is_free = (forms.bends != 0) | (forms.has_caps & (has_classes and forms.caps.shape[1] > 1))
        return cls(forms.rises, forms.n_ordered, is_free, is_ordered)

    def widen(self, clamps: Clamps, offsets: IntArray) -> Clamps:
        """Return clamps that are nowhere narrower, rise and fall as they must, and have the order of the outputs."""
        lower, upper = clamps.lower.copy(), clamps.upper.copy()
        for i in np.flatnonzero(self.direction):
            slots = slice(offsets[i], offsets[i] + self.n_ordered[i])
            way = int(self.direction[i])
            upper[slots] = np.maximum.accumulate(upper[slots][::way])[::way]
            lower[slots] = np.minimum.accumulate(lower[slots][::-way])[::-way]
        if self.is_ordered:
            upper = np.maximum.accumulate(upper, axis=1)
            lower = np.minimum.accumulate(lower[:, ::-1], axis=1)[:, ::-1]
        return Clamps(lower, upper)


class Positions:
    """The range of the positions that rows show, at every slot and between every slot and the next."""

    def __init__(self, model: TableModel) -> None:
        self.model = model
        self.least, most = model.slot_bounds
        self.width = most - self.least
        self.widest = np.stack([self.width[model.schema.slots(i)].max(axis=0) for i in range(model.n_features)])
        n_places = 2 * model.schema.n_slots  # the slot itself, then what lies between it and the next
        self.lowest = np.full((model.n_outputs, n_places), np.inf)
        self.highest = np.full((model.n_outputs, n_places), -np.inf)
        self.weight = np.zeros(n_places)
        self.n_rows = 0
        self.has_counts = True  # whole weights are numbers of rows, others are only relative

    def add(self, cells: Cells, values: Array, weights: Array) -> None:
        """Take in some rows with their contributions, (row, feature, output)."""
        place = (2 * cells.slot + (cells.fraction > 0)).ravel()
        width = interpolate(self.width, cells)
        has_width = (width > _NARROW * self.widest) & (weights > 0)[:, None, None]
        position = np.divide(values - interpolate(self.least, cells), width, out=np.zeros_like(width), where=has_width)
        position = position.clip(0.0, 1.0)
        low, high = np.where(has_width, position, np.inf), np.where(has_width, position, -np.inf)
        for o in range(len(self.lowest)):
            np.minimum.at(self.lowest[o], place, low[:, :, o].ravel())
            np.maximum.at(self.highest[o], place, high[:, :, o].ravel())
        self.weight += np.bincount(place, np.repeat(weights, cells.slot.shape[1]), minlength=len(self.weight))
        self.n_rows += int(np.count_nonzero(weights))
        self.has_counts &= bool(np.all(weights == np.rint(weights)))

    def clamps(self, guards: Guards) -> Clamps:
        """Return the clamps of the rows so far."""
        low, high = np.zeros_like(self.width), np.ones_like(self.width)
        waist_low, waist_high = self._waists()
        for i in np.flatnonzero(~guards.is_free):
            slots = self.model.schema.slots(int(i))
            low[slots], high[slots] = self._ranges(int(i))
        low, high = np.minimum(low, waist_high), np.maximum(high, waist_low)
        found = Clamps(self.least + low * self.width, self.least + high * self.width)
        return self._rounded(guards.widen(found, self.model.schema.offsets))

    def _waists(self) -> tuple[Array, Array]:
        """Return how high the lower bound rises and how low the upper one falls beside every slot, (slot, output) each.

        Both are positions that the true bounds, which bend between two knots, do not exceed: the experts that are
        extreme at one knot are lines to the other one, and there they are at ``here`` and ``there``.
        """
        low, high = np.zeros_like(self.width), np.ones_like(self.width)
        for i, feature in enumerate(self.model.schema.features):
            if isinstance(feature, Number) and feature.n_values > 1:
                first = self.model.schema.offsets[i]
                knots = slice(first, first + feature.n_values)
                for sign, out in ((1, high), (-1, low)):
                    waist = self._waist(knots, sign)
                    ends = np.concatenate([waist[:1], waist, waist[-1:]])
                    out[knots] = sign * np.minimum(sign * ends[1:], sign * ends[:-1])
        return low, high

    def _waist(self, knots: slice, sign: int) -> Array:
        """Return the position of the narrowest place of one bound from every knot to the next, (knot - 1, output)."""
        experts = sign * self.model.experts[knots]
        chosen = np.argsort(experts, axis=1)[:, -self.model.routing.n_extreme :]
        moved = [np.take_along_axis(experts[1:], chosen[:-1], 1), np.take_along_axis(experts[:-1], chosen[1:], 1)]
        ends = [self._position(sign * one.mean(axis=(1, -1)), knots, at) for one, at in zip(moved, (1, 0), strict=True)]
        here, there = (1 - end if sign > 0 else end for end in ends)
        total = here + there
        depth = np.divide(here * there, total, out=np.zeros_like(total), where=total > 0)
        return 1 - depth if sign > 0 else depth

    def _position(self, values: Array, knots: slice, at: int) -> Array:
        """Return the positions of values at all knots but the first (``at`` 1) or the last one (0)."""
        slots = slice(knots.start + at, knots.stop - 1 + at)
        width = self.width[slots]
        found = np.divide(values - self.least[slots], width, out=np.zeros_like(width), where=width > 0)
        return np.asarray(found.clip(0.0, 1.0))

    def _rounded(self, clamps: Clamps) -> Clamps:
        """Return clamps that rounding to single precision does not make narrower than they were measured."""
        eps = float(np.finfo(np.float32).eps)
        largest = np.abs(self.model.experts).max(axis=(1, 2, 3))
        slack = np.empty((len(largest), 1))
        for i in range(self.model.n_features):
            slots = self.model.schema.slots(i)
            slack[slots] = _ROUNDING * eps * largest[slots].max()
        return Clamps(clamps.lower - slack, clamps.upper + slack)

    def _ranges(self, i: int) -> tuple[Array, Array]:
        """Return the lowest and highest position at every slot of a feature, (slot, output) each."""
        slots, feature = self.model.schema.slots(i), self.model.schema.features[i]
        places = slice(2 * slots.start, 2 * slots.stop)
        lowest, highest = self.lowest[:, places], self.highest[:, places]
        weight = self.weight[places]
        count = weight if self.has_counts else weight * (self.n_rows / weight.sum())
        first = 2 * np.arange(slots.stop - slots.start)
        end = first + 1
        if isinstance(feature, Number):
            n = feature.n_values
            first[:n], end[:n] = _windows(count[: 2 * n - 1])
        low, high = _over(np.minimum, lowest, first, end), _over(np.maximum, highest, first, end)
        n_near = np.diff(np.append(0.0, np.cumsum(count))[np.stack([first, end])], axis=0)[0][:, None]
        is_few = n_near < _LEAST_ROWS
        low = np.where(is_few, lowest.min(axis=1), low)
        high = np.where(is_few, highest.max(axis=1), high)
        is_known = (n_near > 0) & (low <= high)
        low, high = np.where(is_known, low, 0.0), np.where(is_known, high, 1.0)
        margin = (high - low) * np.minimum(_MOST_MARGIN, 1 / np.sqrt(np.maximum(n_near, 1.0)))
        return (low - margin).clip(0.0, 1.0), (high + margin).clip(0.0, 1.0)


def clamped(model: TableModel, cells: Cells, weights: Array, guards: Guards) -> TableModel:
    """Return a model with the clamps of its training rows. One expert needs none: its bounds are its curve."""
    if model.n_experts == 1:
        return model
    free = replace(model, experts=model.experts.astype(np.float64), clamps=None)
    positions = Positions(free)
    for rows, part in free.iterate(cells):
        positions.add(part, free.contribute(part), weights[rows])
    return replace(model, clamps=positions.clamps(guards).astype(model.experts.dtype))


def _windows(count: Array) -> tuple[IntArray, IntArray]:
    """Return where the window of every knot begins and ends, given the rows at the knots and between them.

    The places beside a knot always belong to its window, so that clamps leave the rows between two knots alone.
    """
    end = np.cumsum(count)
    start = end - count
    middle = (start + end)[::2] / 2
    reach = max(_SHARE * float(count.sum()), _LEAST_ROWS) / 2
    at = 2 * np.arange(len(middle))
    first = np.minimum(np.searchsorted(end, middle - reach, "right"), at - 1)
    last = np.maximum(np.searchsorted(start, middle + reach, "left"), at + 2)
    return np.maximum(first, 0), np.minimum(last, len(count))


def _over(extreme: np.ufunc, values: Array, first: IntArray, end: IntArray) -> Array:
    """Return an extreme of values (output, place) over the places from ``first`` to before ``end``, (slot, output)."""
    padded = np.concatenate([values, values[:, -1:]], axis=1)  # an index must not be the length
    return np.asarray(extreme.reduceat(padded, np.stack([first, end], axis=1).ravel(), axis=1)[:, ::2].T)
