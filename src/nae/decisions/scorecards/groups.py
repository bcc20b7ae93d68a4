"""Groups: the values of a feature that a table shows as one, with their mean effect and its proven range."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from nae._typing import Array, IntArray
from nae.decisions.scorecards.segments import best_steps, direction_of, in_order
from nae.encoding.cells import Cells
from nae.encoding.schema import Feature, Number
from nae.explanation.caps import extremes_between
from nae.explanation.reference import require_statistics
from nae.tables.model import TableModel

__all__ = ["Curve", "Group", "edge_between", "group_values", "read_curve"]

Role = Literal["value", "missing", "unseen"]
_LIGHT = 1e-9  # the weight of a slot without rows, as a share of all: it counts only where nothing else does


@dataclass(frozen=True, eq=False)
class Curve:
    """The effect of one feature on one output at every slot."""

    model: TableModel
    at: int  # the position of the feature
    output: int
    effect: Array  # (slot,), the mean contribution at the slot
    share: Array  # (slot,), share of the training rows
    direction: int  # 1 or -1 if the effect rises or falls throughout, as promised or as it is; else 0

    @property
    def feature(self) -> Feature:
        return self.model.schema.features[self.at]

    @property
    def weight(self) -> Array:
        """The share of the rows, not quite zero anywhere."""
        return np.asarray(self.share + _LIGHT)

    def extremes(self, slot: IntArray, fraction: Array, following: IntArray) -> tuple[Array, Array]:
        """Return the least and the largest contribution from some points to others, (point,) each."""
        cells = Cells((slot + self.model.schema.offsets[self.at])[:, None], fraction[:, None])
        least, most = extremes_between(self.model, cells, following)
        return least[:, self.output], most[:, self.output]


@dataclass(frozen=True, eq=False)
class Group:
    """Values that share one row of a table."""

    role: Role
    slots: IntArray  # counted within the feature
    low: float  # a number belongs to the group from here on; NaN for levels
    high: float  # and below here
    effect: float  # the mean over the training rows
    share: float
    lower: float  # no input with such a value contributes less
    upper: float


def read_curve(model: TableModel, at: int, output: int) -> Curve:
    """Return the effect of a feature. A direction that the fit promised is that of the curve."""
    statistics, slots, feature = require_statistics(model), model.schema.slots(at), model.schema.features[at]
    effect = statistics.mean[slots, output].astype(np.float64)
    weight = statistics.weight[slots].astype(np.float64)
    known = np.arange(feature.n_values)
    way = _promised(model, feature)
    has_order = isinstance(feature, Number) or feature.is_ordered
    if has_order and not way:
        way = direction_of(effect[known], weight[known])
    return Curve(model, at, output, effect, weight / weight.sum(), way)


def group_values(curve: Curve, limit: int, look: Callable[[Array], Array]) -> tuple[Group, ...]:
    """Return the groups of a feature: at most ``limit``, then *missing*, and *unseen* for a category.

    ``look`` is what a table shows of the effects of some groups. Neighbours that look alike become one group.
    """
    feature = curve.feature
    is_line = isinstance(feature, Number) and not feature.is_empty
    known = np.arange(0 if isinstance(feature, Number) and feature.is_empty else feature.n_values)
    order = known if is_line or curve.direction else known[np.argsort(curve.effect[known], kind="stable")]
    runs = _merged(curve, _runs(curve, order, limit), look)
    groups = _intervals(curve, runs) if is_line else [_levels(curve, run) for run in runs]
    special = [_levels(curve, np.array([feature.n_values]), role="missing")]
    if not is_line:
        special.append(_levels(curve, np.array([feature.n_values + 1]), role="unseen"))
    return (*groups, *special)


def _promised(model: TableModel, feature: Feature) -> int:
    way = ((model.training.constraints or {}).get("monotone") or {}).get(feature.name, 0)
    return {"+": 1, "increasing": 1, "-": -1, "decreasing": -1}.get(str(way), way if isinstance(way, int) else 0)


def _runs(curve: Curve, order: IntArray, limit: int) -> list[IntArray]:
    """Return the slots of every group, in order."""
    if not len(order):
        return []
    values, weights = curve.effect[order], curve.weight[order]
    if curve.direction:
        values = in_order(values, weights, curve.direction)
    return np.split(order, best_steps(values, weights, limit)[1:])


def _merged(curve: Curve, runs: Iterable[IntArray], look: Callable[[Array], Array]) -> list[IntArray]:
    """Return the groups, where neighbours that look alike are one."""
    runs = list(runs)
    if not runs:
        return []
    shown = look(np.array([_mean(curve, run) for run in runs]))
    starts = np.flatnonzero(np.diff(shown, prepend=np.nan) != 0)
    return [np.concatenate(runs[first:last]) for first, last in zip(starts, [*starts[1:], len(runs)], strict=True)]


def _mean(curve: Curve, slots: IntArray) -> float:
    return float(np.average(curve.effect[slots], weights=curve.weight[slots]))


def _intervals(curve: Curve, runs: list[IntArray]) -> list[Group]:
    """Return groups of neighbouring knots, which meet between two knots."""
    feature = curve.feature
    if not isinstance(feature, Number):
        raise TypeError("Only numbers have intervals.")
    knots = feature.knots
    inner = [edge_between(float(knots[run[0] - 1]), float(knots[run[0]]), feature.integral) for run in runs[1:]]
    edges = [-np.inf, *inner, np.inf]
    groups = []
    for run, low, high in zip(runs, edges[:-1], edges[1:], strict=True):
        group = _group(curve, run, _extremes_within(curve, feature, low, high))
        groups.append(replace(group, low=low, high=high))
    return groups


def _extremes_within(curve: Curve, feature: Number, low: float, high: float) -> tuple[float, float]:
    """Return the extremes between two edges; in a column of integers or booleans, between the integers there."""
    if feature.integral or feature.is_boolean:
        low, high = np.ceil(low), np.floor(high)
    ends = np.clip([low, high], feature.knots[0], feature.knots[-1])
    points = np.unique([*ends, *feature.knots[(feature.knots > low) & (feature.knots < high)]])
    following = np.minimum(np.arange(len(points)) + 1, len(points) - 1)
    least, most = curve.extremes(*feature.locate(points), following)
    return float(least.min()), float(most.max())


def _levels(curve: Curve, slots: IntArray, *, role: Role = "value") -> Group:
    least, most = curve.extremes(slots, np.zeros(len(slots)), np.arange(len(slots)))
    return _group(curve, slots, (float(least.min()), float(most.max())), role=role)


def _group(curve: Curve, slots: IntArray, ends: tuple[float, float], *, role: Role = "value") -> Group:
    effect, share = _mean(curve, slots), float(curve.share[slots].sum())
    lower, upper = min(ends[0], effect), max(ends[1], effect)
    return Group(role, slots, np.nan, np.nan, effect, share, lower, upper)


def edge_between(low: float, high: float, is_integral: bool) -> float:
    """Return a short number between two knots: half an integer between integers, else the shortest near the middle.

    Examples
    --------
    >>> edge_between(3, 4, True), edge_between(1.23456, 1.5, False)
    (3.5, 1.4)
    """
    middle = low / 2 + high / 2
    if is_integral and abs(middle) < 2**50:
        return float(np.floor(middle) + 0.5)
    near = (high / 2 - low / 2) / 2
    tries = (float(f"{middle:.{digits}g}") for digits in range(1, 17))
    return next((one for one in tries if abs(one - middle) <= near), middle)
