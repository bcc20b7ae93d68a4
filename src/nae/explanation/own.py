"""The own effect, E[c | x]: the mean contribution of a feature at a value. This file holds its only definition.

It is a curve per feature and output, with a number at every slot and linear in between. The curve is stored with the
model. It is the line of a shape plot and the own effect in a local explanation. Additivity is the share of the
contributions' variance that the curve explains. The difference between a contribution and its own effect is the context
shift.
"""

import numpy as np

from nae._typing import Array
from nae.encoding.cells import Cells
from nae.explanation.reference import MeanGate, has_context
from nae.tables.lookup import interpolate
from nae.tables.model import TableModel
from nae.tables.statistics import slot_means, slot_weights

__all__ = ["additive_share", "mean_effects", "own_effects", "variance", "weighted_share"]

_REACH = 30  # a slot with fewer rows also uses other slots' rows: a few rows must not explain themselves


def own_effects(model: TableModel, cells: Cells, values: Array, mean: Array) -> Array:
    """Return the own effect of every contribution, (row, feature, output).

    ``mean`` is the curve (slot, output) of the model's statistics, or :func:`mean_effects` of other rows. If no feature
    can change the contribution of another one, the own effect is the contribution itself.
    """
    return np.asarray(interpolate(mean, cells), dtype=np.float64) if has_context(model) else values


def mean_effects(gate: MeanGate, cells: Cells, values: Array, weights: Array) -> Array:
    """Return the mean contribution of rows at every slot, (slot, output), from contributions (row, feature, output).

    The result is the effect under the mean gate, plus the mean of the remainder at every slot. It is exact for an
    additive model, whose curve a plain mean of the rows around a knot would smooth, and it is defined at slots without
    rows. At a slot with few rows, the remainder is mostly noise, so the slot also uses other rows: a knot of a number
    uses its neighbours, and any other slot uses all slots of the feature.
    """
    schema = gate.model.schema
    curve = gate.slot_effects().mean(axis=-1)
    if gate.model.clamps is not None:
        curve = gate.model.clamps.clip_slots(curve)
    if not has_context(gate.model):
        return np.asarray(curve)
    rest = slot_means(cells, weights, values - interpolate(curve, cells), schema.n_slots)
    count = slot_weights(cells, _as_counts(weights), schema.n_slots)
    for i, feature in enumerate(schema.features):
        slots = schema.slots(i)
        pooled = _pool(rest[slots], count[slots])
        if feature.kind == "number":
            knots = slice(slots.start, slots.start + feature.n_values)
            pooled[: feature.n_values] = _smooth(rest[knots], count[knots])
        rest[slots] = pooled
    return np.asarray(curve + rest).clip(*gate.model.slot_bounds)  # rows between knots may exceed the bounds of a knot


def variance(values: Array, share: Array) -> Array:
    """Return the variance over rows; ``share`` is the rows' weights, which sum to one."""
    return np.asarray(np.tensordot(share, (values - np.tensordot(share, values, axes=1)) ** 2, axes=1))


def additive_share(total: Array, context: Array, score: Array) -> Array:
    """Return the additivity of every feature, Eq. (15), from variances: of contributions, their shifts, the score."""
    delta = 1e-6 * score + 1e-300  # a feature without any effect is additive
    return np.clip((total - context + delta) / (total + delta), 0.0, 1.0)


def weighted_share(additivity: Array, total: Array) -> float:
    """Return the mean of (feature, output): over the features, weighted by their variance, then over the outputs."""
    size = total + 1e-300
    return float(np.mean((additivity * size).sum(axis=0) / size.sum(axis=0)))


def _as_counts(weights: Array) -> Array:
    """Return weights as numbers of rows. Weights with a mean below one are scaled up to a mean of one."""
    return np.asarray(weights * max(1.0, np.count_nonzero(weights) / weights.sum()))


def _pool(means: Array, count: Array) -> Array:
    """Return the means (slot, output), where a slot with too few rows is completed by the mean over all slots."""
    lacking = np.maximum(_REACH - count, 0.0)[:, None]
    return np.asarray((count[:, None] * means + lacking * (count @ means / count.sum())) / (count[:, None] + lacking))


def _smooth(means: Array, count: Array) -> Array:
    """Return local averages of the means (knot, output). A knot with enough rows keeps its own mean."""
    at = np.cumsum(count) - count / 2  # positions counted in rows, so a knot with many rows is far from its neighbours
    first, last = np.searchsorted(at, at - _REACH, "right"), np.searchsorted(at, at + _REACH, "left")
    smooth = means.copy()
    for knot, near in enumerate(map(slice, first, last)):
        share = count[near] * (1 - np.abs(at[near] - at[knot]) / _REACH)
        if share.sum() > 0:
            smooth[knot] = share @ means[near] / share.sum()
    return smooth
