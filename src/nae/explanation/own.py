"""The own effect of a contribution, E[c | x]: the mean contribution at its value. Defined here, and nowhere else.

A curve per feature, a number at every slot and linear in between. It travels with the model, and everything reads that
one curve: the line of a shape, the own effect of a row, and additivity, which is what the curve explains of the
contributions' variance. What it leaves is the context shift.
"""

import numpy as np

from nae._typing import Array
from nae.encoding.cells import Cells
from nae.explanation.reference import MeanGate, has_context
from nae.tables.lookup import interpolate
from nae.tables.model import TableModel
from nae.tables.statistics import slot_means, slot_weights

__all__ = ["additive_share", "mean_effects", "own_effects", "variance", "weighted_share"]

_REACH = 30  # rows that a slot with fewer of its own draws on: a few rows must not explain themselves


def own_effects(model: TableModel, cells: Cells, values: Array, mean: Array) -> Array:
    """Return the part of every contribution that its own value explains, (row, feature, output).

    ``mean`` is the curve (slot, output) of the model's statistics, or :func:`mean_effects` of other rows. Where no
    other feature can change a contribution, it is all of it.
    """
    return np.asarray(interpolate(mean, cells), dtype=np.float64) if has_context(model) else values


def mean_effects(gate: MeanGate, cells: Cells, values: Array, weights: Array) -> Array:
    """Return the mean contribution of rows at every slot, (slot, output), from contributions (row, feature, output).

    The effect under the mean gate plus the mean of what that leaves: exact for an additive model, where a plain mean of
    the rows around a knot would smooth the curve, and defined where no row is. What it leaves is noise at a slot of
    four rows, so a slot with few rows draws on others: a knot of a number on its neighbours, anything else on all.
    """
    schema = gate.model.schema
    curve = gate.slot_effects().mean(axis=-1)
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
    return np.asarray(curve + rest).clip(*gate.model.slot_bounds)  # rows between knots may exceed those of a knot


def variance(values: Array, share: Array) -> Array:
    """Return the variance over rows; ``share`` is the rows' weights, which sum to one."""
    return np.asarray(np.tensordot(share, (values - np.tensordot(share, values, axes=1)) ** 2, axes=1))


def additive_share(total: Array, context: Array, score: Array) -> Array:
    """Return the additivity of every feature, Eq. (15), from variances: of contributions, their shifts, the score."""
    delta = 1e-6 * score + 1e-300  # a feature that nobody uses is additive
    return np.clip((total - context + delta) / (total + delta), 0.0, 1.0)


def weighted_share(additivity: Array, total: Array) -> float:
    """Return the mean of (feature, output) with each feature counted by its variance, then over the outputs."""
    size = total + 1e-300
    return float(np.mean((additivity * size).sum(axis=0) / size.sum(axis=0)))


def _as_counts(weights: Array) -> Array:
    """Return weights as numbers of rows: as they are, unless they are so small that they cannot be meant as such."""
    return np.asarray(weights * max(1.0, np.count_nonzero(weights) / weights.sum()))


def _pool(means: Array, count: Array) -> Array:
    """Return means (slot, output) of so many rows; what a slot lacks to rows enough is made up by the mean of all."""
    lacking = np.maximum(_REACH - count, 0.0)[:, None]
    return np.asarray((count[:, None] * means + lacking * (count @ means / count.sum())) / (count[:, None] + lacking))


def _smooth(means: Array, count: Array) -> Array:
    """Return local averages of means (knot, output) of so many rows; a knot with rows enough keeps its own."""
    at = np.cumsum(count) - count / 2  # in rows: where rows are many, neighbours are far
    first, last = np.searchsorted(at, at - _REACH, "right"), np.searchsorted(at, at + _REACH, "left")
    smooth = means.copy()
    for knot, near in enumerate(map(slice, first, last)):
        share = count[near] * (1 - np.abs(at[near] - at[knot]) / _REACH)
        if share.sum() > 0:
            smooth[knot] = share @ means[near] / share.sum()
    return smooth
