"""The layouts of pair maps, three-way panels and the interaction matrix."""

from dataclasses import dataclass, replace

import numpy as np

from nae._typing import Array, BoolArray
from nae.errors import ConfigError, UserError
from nae.explanation.grid import Axis
from nae.explanation.interaction import InteractionExplanation
from nae.explanation.outputs import pick_output, score_label
from nae.explanation.strength import InteractionStrength
from nae.plots.style import format_compact, format_value, nice_ticks

__all__ = ["MapAxis", "MapLayout", "MatrixLayout", "lay_out_map", "lay_out_matrix", "lay_out_panels"]

_FEW = 7  # the largest number of values that are drawn as lines
_GAP, _STRIP, _ROOM = 0.02, 0.05, 0.12  # widths as shares of the range: the gap, *missing*, and its name


@dataclass(frozen=True, eq=False)
class MapAxis:
    """One side of a map. An empty value separates *missing* from numbers."""

    label: str
    is_number: bool
    centres: Array  # (value,), numbers; positions if the values are not numbers
    edges: Array  # (value + 1,)
    ticks: tuple[str, ...]  # one text per value, if the values are not numbers
    marks: tuple[tuple[float, str], ...] = ()  # positions and texts along numbers, if *missing* is shown

    @property
    def has_gap(self) -> bool:
        """Whether *missing* is shown next to numbers."""
        return bool(self.marks)


@dataclass(frozen=True, eq=False)
class MapLayout:
    """A map of effects: colour by (x, y), or a line along x per value of y."""

    x: MapAxis
    y: MapAxis
    values: Array  # (y, x)
    has_data: BoolArray  # (y, x), whether there are rows; all true if no rows were given
    limit: float  # colours run from -limit to limit
    is_lines: bool
    title: str
    label: str
    note: str


@dataclass(frozen=True, eq=False)
class MatrixLayout:
    """Which features change each other's effect."""

    names: tuple[str, ...]
    values: Array  # (changed feature, changing feature)
    hidden: int  # number of features left out, the weakest ones
    label: str


def lay_out_map(
    explanation: InteractionExplanation,
    *,
    output: str | int | None = None,
    unit: str | None = None,
    effect: str = "total",
    kind: str = "auto",
) -> MapLayout:
    """Return the map of a pair, with the first feature along x and the second along y or as one line per value."""
    if len(explanation.axes) != 2:
        raise UserError(f"A pair map takes two features; this explanation has {list(explanation.feature_names)}.")
    if kind not in ("auto", "map", "lines"):
        raise ConfigError(f"kind must be 'auto', 'map' or 'lines'; got {kind!r}.")
    o = pick_output(explanation.outputs, output)
    values = _effect(explanation, effect)[..., o]
    first, second = explanation.axes
    is_lines = kind == "lines" or (kind == "auto" and _wants_lines(first, second))
    support = explanation.support
    if is_lines and _runs_along(second, first):
        first, second, values = second, first, values.T
        support = None if support is None else support.T
    return _layout(explanation, (first, second), values, support, o=o, unit=unit, effect=effect, is_lines=is_lines)


def lay_out_panels(
    explanation: InteractionExplanation,
    *,
    output: str | int | None = None,
    unit: str | None = None,
    effect: str = "total",
) -> tuple[MapLayout, ...]:
    """Return one map per value of the third feature, all with the same colour scale."""
    if len(explanation.axes) != 3:
        raise UserError(f"Panels take three features; this explanation has {list(explanation.feature_names)}.")
    o = pick_output(explanation.outputs, output)
    values = _effect(explanation, effect)[..., o]
    first, second, third = explanation.axes
    support = None if explanation.support is None else explanation.support.sum(axis=2)
    found = []
    limit = _limit(values, None if support is None else np.repeat(support[..., None] > 0, len(third.labels), axis=2))
    for at, text in enumerate(third.labels):
        number = third.numbers[at]
        shown = text if np.isnan(number) or third.kind != "number" else format_value(float(f"{number:.4g}"))
        layout = _layout(explanation, (first, second), values[:, :, at], support, o=o, unit=unit, effect=effect)
        found.append(replace(layout, title=f"{third.name} = {shown}", limit=limit))
    return tuple(found)


def lay_out_matrix(
    strength: InteractionStrength, *, output: str | None = None, unit: str | None = None, max_features: int = 20
) -> MatrixLayout:
    """Return the directed matrix of the features with the strongest interactions, in the order of the table."""
    matrix = strength.matrix(output)
    part = np.sqrt((matrix**2).sum(axis=0) + (matrix**2).sum(axis=1))
    kept = np.sort(np.argsort(-part, kind="stable")[:max_features])
    suffix = f" ({unit})" if unit else ""
    return MatrixLayout(
        names=tuple(strength.feature_names[i] for i in kept),
        values=matrix[np.ix_(kept, kept)],
        hidden=len(part) - len(kept),
        label=f"typical change of the contribution{suffix}",
    )


def _layout(
    explanation: InteractionExplanation,
    axes: tuple[Axis, Axis],
    values: Array,
    support: Array | None,
    *,
    o: int,
    unit: str | None,
    effect: str,
    is_lines: bool = False,
) -> MapLayout:
    has_data = np.ones(values.shape, dtype=bool) if support is None else support > 0
    limit = _limit(values, has_data)
    x, y = _side(axes[0]), _side(axes[1], is_series=is_lines)
    for at, side in enumerate((x, y)):
        if side.has_gap:
            values = np.insert(values, -1, 0.0, axis=at)
            has_data = np.insert(has_data, -1, False, axis=at)
    names = " and ".join(axis.name for axis in axes)
    word = "effect" if effect == "total" else "pure interaction"
    return MapLayout(
        x=x,
        y=y,
        values=values.T,
        has_data=has_data.T,
        limit=limit,
        is_lines=is_lines,
        title=f"{names}: {word}",
        label=f"{word} on {score_label(explanation, o, unit)}",
        note=explanation.note,
    )


def _effect(explanation: InteractionExplanation, effect: str) -> Array:
    if effect not in ("total", "pure"):
        raise ConfigError(f"effect must be 'total' or 'pure'; got {effect!r}.")
    return explanation.total if effect == "total" else explanation.pure


def _side(axis: Axis, *, is_series: bool = False) -> MapAxis:
    """Return one side of a map; the values that become lines need no positions."""
    is_known = ~np.isnan(axis.numbers)
    is_number = axis.kind == "number" and bool(is_known.sum() > 1) and not (is_series and not is_known.all())
    centres = axis.numbers[is_known] if is_number else np.arange(len(axis.labels), dtype=np.float64)
    edges = _edges(centres)
    if not is_number or is_known.all():
        return MapAxis(axis.name, is_number, centres, edges, axis.labels)
    low, high = float(edges[0]), float(edges[-1])
    span = high - low
    strip = max(_STRIP * span, span / len(centres))
    edges = np.append(edges, [high + _GAP * span, high + _GAP * span + strip])
    beside = (edges[-3:-1] + edges[-2:]) / 2  # the gap and *missing*, the last value
    marks = [(at, format_compact(at)) for at in nice_ticks(low, high) if at < beside[1] - _ROOM * span]
    ticks = (*axis.labels[:-1], "", axis.labels[-1])
    return MapAxis(
        axis.name, is_number, np.append(centres, beside), edges, ticks, (*marks, (float(beside[1]), axis.labels[-1]))
    )


def _edges(centres: Array) -> Array:
    middle = (centres[1:] + centres[:-1]) / 2
    if len(centres) > 1:
        first, last = centres[0] - (middle[0] - centres[0]), centres[-1] + (centres[-1] - middle[-1])
    else:
        first, last = centres[0] - 0.5, centres[0] + 0.5
    return np.concatenate([[first], middle, [last]])


def _limit(values: Array, has_data: BoolArray | None) -> float:
    seen = values if has_data is None else values[has_data]
    return max(float(np.abs(seen).max(initial=0.0)), 1e-12)


def _is_few(axis: Axis) -> bool:
    return len(axis.labels) <= _FEW


def _runs_along(one: Axis, other: Axis) -> bool:
    """Return whether lines run along ``one`` rather than ``other``: along the number, or the longer side."""
    if _is_few(one) != _is_few(other):
        return _is_few(other)
    return one.kind == "number" and other.kind != "number"


def _wants_lines(first: Axis, second: Axis) -> bool:
    """Return whether lines suit better than colours: one side has few values and the other is ordered."""
    if _is_few(first) and first.kind != "number" and second.kind == "number":
        return True
    return _is_few(second) and first.kind == "number" and len(first.labels) > 1
