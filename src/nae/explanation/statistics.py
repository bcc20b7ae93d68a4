"""Gathering what a model remembers of its rows, so that it explains itself without them."""

from dataclasses import replace
from typing import Any

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding.cells import Cells
from nae.errors import DataError
from nae.explanation.context import few_rows, raw_parts
from nae.explanation.members import agreement, member_contributions
from nae.explanation.own import own_effects
from nae.explanation.reference import MeanGate, has_context, mean_terms
from nae.tables.lookup import interpolate
from nae.tables.model import TableModel
from nae.tables.statistics import Statistics, slot_means, slot_quantiles, slot_weights

__all__ = ["gather_statistics", "with_statistics"]

_MOST_ROWS = 2048  # rows that measure who changes whom
_WORK = 4_000_000_000  # multiplications that may take
_REACH = 30  # rows on either side that a knot with few rows of its own may draw on


def with_statistics(model: TableModel, X: Any, *, sample_weight: Any = None) -> TableModel:
    """Return the same model with the statistics of other rows: the population that its explanations speak of."""
    cells = model.cells(X)
    weights = np.ones(len(cells)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if len(cells) == 0 or weights.shape != (len(cells),) or not weights.sum() > 0:
        raise DataError(
            "Statistics need rows and one weight each, not all zero; "
            f"got {len(cells)} rows and weights of shape {weights.shape}."
        )
    return replace(model, statistics=gather_statistics(model, cells, weights))


def gather_statistics(model: TableModel, cells: Cells, weights: Array) -> Statistics:
    """Return the aggregates of rows with positive total weight."""
    share = weights / weights.sum()
    weight = slot_weights(cells, weights, model.schema.n_slots)
    values = model.contributions(cells).values.reshape(len(cells), model.n_features, model.n_outputs)
    means = mean_terms(model, weight)
    gate = MeanGate(model, means)
    mean = _mean_effects(gate, cells, weights, values)
    quantiles = slot_quantiles(cells, weights, values, model.schema.n_slots)
    own = own_effects(model, cells, values, weights)
    score, rest = values.sum(axis=1), (values - own).sum(axis=1)
    influence, typical, agree = _gather_context(gate, cells, weights, mean)
    return Statistics(
        weight=weight,
        mean=mean,
        quantiles=np.where(weight[:, None] > 0, quantiles.clip(*_bounds(model)), mean),
        gate_mean=means,
        variance=np.tensordot(share, (values - np.tensordot(share, values, axes=1)) ** 2, axes=1),
        residual=np.tensordot(share, (values - own) ** 2, axes=1),
        score_variance=share @ (score - share @ score) ** 2,
        additive_variance=share @ (rest - share @ rest) ** 2,
        influence=influence,
        typical=typical,
        agreement=agree,
    )


def _mean_effects(gate: MeanGate, cells: Cells, weights: Array, values: Array) -> Array:
    """Return E[c | x] at every slot, (slot, output).

    The effect under the mean gate plus the mean of what that leaves: exact for an additive model, where a plain mean of
    the rows around a knot would smooth the curve, and defined where no row is. What it leaves is noise at a knot of
    four rows, so knots of a number with few rows draw on their neighbours'.
    """
    curve = gate.slot_effects().mean(axis=-1)
    schema = gate.model.schema
    if not has_context(gate.model):
        return np.asarray(curve)
    rest = slot_means(cells, weights, values - interpolate(curve, cells), schema.n_slots)
    count = slot_weights(cells, _as_counts(weights), schema.n_slots)
    for i, feature in enumerate(schema.features):
        if feature.kind == "number":
            first = int(schema.offsets[i])
            knots = slice(first, first + feature.n_values)
            rest[knots] = _calm(rest[knots], count[knots])
    return np.asarray(curve + rest).clip(*_bounds(gate.model))


def _as_counts(weights: Array) -> Array:
    """Return weights as numbers of rows: as they are, unless they are so small that they cannot be meant as such."""
    return np.asarray(weights * max(1.0, np.count_nonzero(weights) / weights.sum()))


def _calm(means: Array, count: Array) -> Array:
    """Return local averages of means (knot, output) of so many rows; a knot with rows enough keeps its own."""
    at = np.cumsum(count) - count / 2  # in rows: where rows are many, neighbours are far
    first, last = np.searchsorted(at, at - _REACH, "right"), np.searchsorted(at, at + _REACH, "left")
    calm = means.copy()
    for knot, near in enumerate(map(slice, first, last)):
        share = count[near] * (1 - np.abs(at[near] - at[knot]) / _REACH)
        if share.sum() > 0:
            calm[knot] = share @ means[near] / share.sum()
    return calm


def _bounds(model: TableModel) -> tuple[Array, Array]:
    """Return the bounds at every slot: rows between two knots may lie outside of those at the nearer one."""
    lower, upper = model.slot_bounds
    return lower.astype(np.float64), upper.astype(np.float64)


def _gather_context(gate: MeanGate, cells: Cells, weights: Array, mean: Array) -> tuple[Array, Array, Array]:
    """Return influence and typical shares (feature, cause, output) and the members' agreement (feature, output)."""
    model = gate.model
    chosen = _spread_rows(model, weights)
    cells, weights = cells.take(chosen), weights[chosen]
    square = (model.n_features, model.n_features, model.n_outputs)
    agree = agreement(member_contributions(model, cells), weights)
    if not has_context(model):
        return np.zeros(square), np.zeros(square), agree
    raw_square, along, gap_square = _moments(gate, cells, weights, mean)
    shares = np.divide(along, gap_square, out=np.zeros_like(along), where=gap_square > 0)
    total = shares.sum(axis=1, keepdims=True)
    # They sum to one but for the noise of few rows; a sum far from it means there is nothing to share.
    typical = np.divide(shares, total, out=np.zeros_like(shares), where=total > 0.5)
    influence = raw_square - 2 * typical * along + typical**2 * gap_square
    return np.sqrt(np.maximum(influence, 0.0)), typical, agree


def _moments(gate: MeanGate, cells: Cells, weights: Array, mean: Array) -> tuple[Array, Array, Array]:
    """Return the means of parts squared, parts times gap, and gap squared, (feature, cause, output) each.

    A feature that goes with others (longitude with latitude) has a context that is usual for its value. That part of
    the raw parts, ``gap``, is a function of the value alone; regressing every part on it finds who stands behind it.
    """
    shape = (gate.model.n_features, gate.model.n_features, gate.model.n_outputs)
    raw_square, along, square = np.zeros(shape), np.zeros(shape), np.zeros((shape[0], 1, shape[2]))
    for rows, part in few_rows(gate.model, cells):
        raw, _, reference = raw_parts(gate, part)
        gap = (interpolate(mean, part) - reference)[:, :, None]  # (B, F, 1, O)
        raw_square += np.tensordot(weights[rows], raw**2, axes=1)
        along += np.tensordot(weights[rows], raw * gap, axes=1)
        square += np.tensordot(weights[rows], gap**2, axes=1)
    return raw_square / weights.sum(), along / weights.sum(), square / weights.sum()


def _spread_rows(model: TableModel, weights: Array) -> IntArray:
    """Return evenly spread rows of positive weight, as many as the work allows."""
    inner = model.gate.terms.shape[1] if model.gate.mix is not None else model.n_experts
    per_row = model.n_features**2 * inner * model.n_members * model.n_outputs
    known = np.flatnonzero(weights > 0)
    n_rows = min(len(known), _MOST_ROWS, max(128, _WORK // per_row))
    return known[np.linspace(0, len(known) - 1, n_rows).round().astype(np.int64)]
