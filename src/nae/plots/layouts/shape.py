"""The layout of a shape plot: the effect of one feature, its band, its dots and its density."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from nae._typing import Array, IntArray
from nae.explanation.grid import FEW_VALUES, central_range, is_listed
from nae.explanation.outputs import pick_output, score_label
from nae.explanation.shapes import NOISE, FeatureShape, GlobalExplanation
from nae.plots.style import format_value

__all__ = ["Bar", "Level", "ShapeLayout", "lay_out_shape", "lay_out_shapes", "value_range"]

_TAIL = 1.6  # a range this many times as long as its central part has long tails
_BINS = 40
_TICKS = 12  # the largest number of values that are labelled one by one along an axis
_SEEN = 1e-5  # as a share of the axis; anything narrower is rounding
_REACH = 0.04  # share of the rows on either side of a knot that determine the spread of contributions there


@dataclass(frozen=True)
class Bar:
    """A density bar; the tallest bar has height 1."""

    left: float
    right: float
    height: float


@dataclass(frozen=True)
class Level:
    """A separate value: a category, a boolean, missing or unseen."""

    label: str
    role: str  # 'value', 'other', 'missing' or 'unseen'
    mean: float
    lower: float
    upper: float
    low: float  # the 5 % quantile of the contributions
    high: float  # the 95 % quantile
    share: float  # share of the rows
    sure: tuple[float, float]  # where the true effect lies, at the coverage of the explanation; NaN if it is unknown


@dataclass(frozen=True, eq=False)
class ShapeLayout:
    """Everything a shape plot shows. A number has a curve and separate levels; other features have only levels."""

    title: str
    effect_label: str
    is_number: bool
    x: Array  # (point,), along the number
    mean: Array
    lower: Array
    upper: Array
    low: Array  # the 5 % quantile of the contributions, smoothed over neighbouring knots
    high: Array  # the 95 % quantile
    sure: tuple[Array, Array]  # where the true effect lies, at this coverage; NaN if it is unknown
    coverage: float | None
    density: tuple[Bar, ...]
    levels: tuple[Level, ...]
    hidden: int  # levels left out, the rarest
    dots_at: Array  # the number, or the position of the level
    dots: Array
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    ticks: tuple[float, ...]  # every value if there are few; if empty, the backend chooses
    is_whole: bool  # the values are whole numbers
    is_few: bool  # each value is marked
    note: str

    @property
    def has_bounds(self) -> bool:
        """Whether context can change the effect of any value; in an additive model it cannot."""
        return self._is_wide(self.lower, self.upper, [level.upper - level.lower for level in self.levels])

    @property
    def has_spread(self) -> bool:
        """Whether the contributions of rows with the same value differ."""
        return self._is_wide(self.low, self.high, [level.high - level.low for level in self.levels])

    @property
    def sure_label(self) -> str:
        """The name of the band of the true effect; empty if there is none."""
        return "" if self.coverage is None else f"effect, {100 * self.coverage:g} % sure"

    def _is_wide(self, low: Array, high: Array, widths: list[float]) -> bool:
        return bool(max([*(high - low), *widths], default=0.0) > _SEEN * (self.y_range[1] - self.y_range[0]))


def lay_out_shape(
    explanation: GlobalExplanation,
    feature: str,
    *,
    output: str | int | None = None,
    unit: str | None = None,
    max_levels: int = 40,
) -> ShapeLayout:
    """Return the layout of one feature."""
    shape, o = explanation.feature(feature), pick_output(explanation.outputs, output)
    known = np.flatnonzero([role == "value" for role in shape.roles])
    is_few = shape.is_number and is_listed(shape.numbers[known], _dotted(shape))
    is_curve = shape.is_number and not (is_few and _is_flag(shape.numbers[known]))
    curve = known if is_curve else known[:0]
    levels, hidden, places = _levels(shape, o, explanation.quantile_levels, max_levels, is_curve=is_curve)
    x = shape.numbers[curve]
    x_range = value_range(x, shape.weight[curve]) if len(x) else (-0.5, len(levels) - 0.5)
    if is_few and len(x) > 1:  # room for whole bars at both ends
        half = float(np.diff(x).min()) / 2
        x_range = float(x[0]) - half, float(x[-1]) + half
    dots_at, dots = _dots(shape, o, places, is_curve=is_curve)
    mean, lower, upper = (part[curve, o] for part in (shape.mean, shape.lower, shape.upper))
    rest = _spread(shape.quantiles[:, curve, o] - mean, shape.weight[curve], explanation.quantile_levels)
    low, high = (mean + rest).clip(lower, upper)
    layout = ShapeLayout(
        title=shape.name,
        effect_label=f"effect on {score_label(explanation, o, unit)}",
        is_number=is_curve,
        x=x,
        mean=mean,
        lower=lower,
        upper=upper,
        low=low,
        high=high,
        sure=(_sure(shape.effect_lower, curve, o), _sure(shape.effect_upper, curve, o)),
        coverage=explanation.coverage,
        density=_density(x, shape.weight[curve], x_range, is_few=is_few) if len(x) else (),
        levels=levels,
        hidden=hidden,
        dots_at=dots_at,
        dots=dots,
        x_range=x_range,
        y_range=(0.0, 1.0),
        is_whole=bool(len(x)) and bool(np.all(x == np.rint(x))),
        is_few=is_few,
        ticks=tuple(x.tolist()) if is_few and _can_be_written(x) else (),
        note=_note(shape, o, x, x_range, hidden),
    )
    return replace(layout, y_range=_effect_range(layout))


def lay_out_shapes(
    explanation: GlobalExplanation,
    *,
    features: tuple[str, ...] | None = None,
    output: str | int | None = None,
    unit: str | None = None,
    max_levels: int = 12,
    share_scale: bool = True,
) -> tuple[ShapeLayout, ...]:
    """Return the layouts of several features, the most important first, all with the same scale of effects."""
    o = pick_output(explanation.outputs, output)
    names = features or tuple(shape.name for shape in explanation.ranked(o))
    layouts = [lay_out_shape(explanation, name, output=o, unit=unit, max_levels=max_levels) for name in names]
    if share_scale and layouts:
        low, high = min(one.y_range[0] for one in layouts), max(one.y_range[1] for one in layouts)
        layouts = [replace(one, y_range=(low, high)) for one in layouts]
    return tuple(layouts)


def value_range(x: Array, weight: Array) -> tuple[float, float]:
    """Return the range of values to show: all values, or the central 99 % if long tails would squeeze it."""
    low, high = float(x[0]), float(x[-1])
    if len(x) <= FEW_VALUES or weight.sum() <= 0:
        return (low, high) if high > low else (low - 0.5, high + 0.5)
    inner_low, inner_high = central_range(x, weight)
    if inner_high <= inner_low or high - low <= _TAIL * (inner_high - inner_low):
        return low, high
    return inner_low, inner_high


def _can_be_written(x: Array) -> bool:
    """Return whether there is room to write each value along an axis."""
    return 1 < len(x) <= _TICKS and float(x[-1] - x[0]) <= 2 * _TICKS * float(np.diff(x).min())


def _is_flag(x: Array) -> bool:
    """Return whether the values are the flags 0 and 1, so that no slope is drawn between them."""
    return len(x) == 2 and bool(np.all(x == np.rint(x))) and float(x[1] - x[0]) == 1


def _dotted(shape: FeatureShape) -> Array:
    return np.empty(0) if shape.dots_at is None else shape.dots_at


def _levels(
    shape: FeatureShape, o: int, levels: tuple[float, ...], max_levels: int, *, is_curve: bool
) -> tuple[tuple[Level, ...], int, dict[int, int]]:
    """Return the levels to show, the number of hidden levels, and the position of each value."""
    known = [at for at, role in enumerate(shape.roles) if role in ("value", "other")]
    kept = [] if is_curve else known
    if len(kept) > max_levels:
        frequent = sorted(kept, key=lambda at: -shape.weight[at])[:max_levels]
        kept = [at for at in kept if at in set(frequent)]
    hidden = 0 if is_curve else len(known) - len(kept)
    missing, unseen = shape.roles.index("missing"), shape.roles.index("unseen")
    kept += [missing] if shape.weight[missing] > 0 else []
    kept += [unseen] if shape.kind == "category" else []
    low, high = _inner(levels)
    found = tuple(
        Level(
            label=shape.labels[at],
            role=shape.roles[at],
            mean=float(shape.mean[at, o]),
            lower=float(shape.lower[at, o]),
            upper=float(shape.upper[at, o]),
            low=float(shape.quantiles[low, at, o]),
            high=float(shape.quantiles[high, at, o]),
            share=float(shape.weight[at]),
            sure=(float(_sure(shape.effect_lower, at, o)), float(_sure(shape.effect_upper, at, o))),
        )
        for at in kept
    )
    return found, hidden, {at: place for place, at in enumerate(kept)}


def _sure(end: Array | None, at: IntArray | int, o: int) -> Array:
    return np.full(np.shape(at), np.nan) if end is None else np.asarray(end[at, o])


def _inner(levels: tuple[float, ...]) -> tuple[int, int]:
    return 0, len(levels) - 1


def _spread(rest: Array, weight: Array, levels: tuple[float, ...]) -> Array:
    """Return the outer quantiles, (2, knot), of the differences between contributions and mean effect near each knot.

    The quantiles of a knot with three rows are just these rows, and their outline would be jagged. Each knot therefore
    also uses the quantiles of its neighbours, weighted by their rows and by their distance.
    """
    at = np.cumsum(weight) - weight / 2
    first, last = np.searchsorted(at, at - _REACH, "right"), np.searchsorted(at, at + _REACH, "left")
    middle = [(one + other) / 2 for one, other in pairwise(levels)]
    mass = np.diff([0.0, *middle, 1.0])  # the share of rows that each quantile represents
    out = np.zeros((2, len(weight)))
    for knot, near in enumerate(map(slice, first, last)):
        share = weight[near] * (1 - np.abs(at[near] - at[knot]) / _REACH)
        if share.sum() > 0:
            values, shares = rest[:, near].ravel(), (mass[:, None] * share).ravel()
            order = np.argsort(values, kind="stable")
            total = np.cumsum(shares[order])
            ends = np.searchsorted(total, np.array([levels[0], levels[-1]]) * total[-1])
            out[:, knot] = values[order][ends.clip(0, len(values) - 1)]
    return out


def _dots(shape: FeatureShape, o: int, places: dict[int, int], *, is_curve: bool) -> tuple[Array, Array]:
    if shape.dots is None or shape.dots_at is None:
        return np.empty(0), np.empty(0)
    if is_curve:
        known = ~np.isnan(shape.dots_at)
        return shape.dots_at[known], shape.dots[known, o]
    at = shape.dots_at
    if shape.kind != "category":
        at = np.where(np.isnan(at), len(shape.labels) - 2, np.searchsorted(shape.numbers[:-2], at))
    moved = np.array([places.get(int(value), -1) for value in at])
    return moved[moved >= 0].astype(np.float64), shape.dots[moved >= 0, o]


def _density(x: Array, weight: Array, x_range: tuple[float, float], *, is_few: bool) -> tuple[Bar, ...]:
    """Return bars: one per value if there are few values, otherwise a histogram with equal bins.

    A knot represents the values around it, so its weight is spread half-way to its neighbours.
    """
    if is_few or len(x) == 1:
        half = 0.4 * (float(np.diff(x).min()) if len(x) > 1 else x_range[1] - x_range[0])
        top = max(float(weight.max(initial=0.0)), 1e-300)
        return tuple(
            Bar(float(at) - half, float(at) + half, float(w) / top) for at, w in zip(x, weight, strict=True) if w > 0
        )
    middle = (x[1:] + x[:-1]) / 2
    edges = np.concatenate([[x[0]], middle, [x[-1]]])
    mass = np.concatenate([[0.0], np.cumsum(weight)])
    bins = np.linspace(*x_range, _BINS + 1)
    height = np.diff(np.interp(bins, edges, mass))
    height = height / max(float(height.max()), 1e-300)
    return tuple(Bar(*map(float, one)) for one in zip(bins[:-1], bins[1:], height, strict=True))


def _effect_range(layout: ShapeLayout) -> tuple[float, float]:
    inside = (layout.x >= layout.x_range[0]) & (layout.x <= layout.x_range[1])
    ends = [*layout.lower[inside], *layout.upper[inside], *layout.sure[0][inside], *layout.sure[1][inside], 0.0]
    for level in layout.levels:
        ends += [level.lower, level.upper, *level.sure]
    low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
    room = 0.06 * (high - low) if high > low else 1.0
    return low - room, high + room


def _note(shape: FeatureShape, o: int, x: Array, x_range: tuple[float, float], hidden: int) -> str:
    parts = [NOISE if shape.is_noise else f"additivity {shape.additivity[o]:.2f}"]  # there is little room
    if shape.stability is not None and not shape.is_noise:
        parts.append(f"stability {shape.stability[o]:.2f}")
    if len(x) and (x_range[0] > x[0] or x_range[1] < x[-1]):
        parts.append(f"values reach {format_value(float(x[-1] if x_range[1] < x[-1] else x[0]))}")
    if hidden:
        parts.append(f"{hidden} rare ones hidden")
    return " · ".join(parts)
