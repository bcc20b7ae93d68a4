"""Compute the statistics of the training rows that a model stores, so that it can explain itself without the rows."""

from dataclasses import replace
from typing import Any

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding.cells import Cells
from nae.errors import DataError
from nae.explanation.context import raw_parts, row_chunks
from nae.explanation.members import agreement, member_contributions
from nae.explanation.own import mean_effects, own_effects, variance
from nae.explanation.reference import MeanGate, has_context, mean_terms
from nae.tables.lookup import interpolate
from nae.tables.model import TableModel
from nae.tables.statistics import Statistics, slot_quantiles, slot_weights
from nae.tables.working import in_turn

__all__ = ["gather_statistics", "remember", "with_statistics"]

_MOST_ROWS = 2048  # largest number of rows on which interactions are measured
_WORK = 4_000_000_000  # largest number of multiplications for that


def remember(model: TableModel, cells: Cells, weights: Array, *, slot_weight: Array | None = None) -> TableModel:
    """Return the same model with the statistics of its training rows.

    If the rows are a sample, ``slot_weight`` says how much of all rows lies at each slot.
    """
    statistics = gather_statistics(model, cells, weights)
    if slot_weight is not None:
        statistics = replace(statistics, weight=slot_weight)
    return replace(model, statistics=statistics)


def with_statistics(model: TableModel, X: Any, *, sample_weight: Any = None) -> TableModel:
    """Return the same model with the statistics of other rows, which become the population of its explanations."""
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
    mean = mean_effects(gate, cells, values, weights)
    quantiles = slot_quantiles(cells, weights, values, model.schema.n_slots)
    shift = values - own_effects(model, cells, values, mean)
    influence, typical, agree = _gather_context(gate, cells, weights, mean)
    return Statistics(
        weight=weight,
        mean=mean,
        quantiles=np.where(weight[:, None] > 0, quantiles.clip(*model.slot_bounds), mean),
        gate_mean=means,
        variance=variance(values, share),
        residual=variance(shift, share),
        score_variance=variance(values.sum(axis=1), share),
        additive_variance=variance(shift.sum(axis=1), share),
        influence=influence,
        typical=typical,
        agreement=agree,
    )


def _gather_context(gate: MeanGate, cells: Cells, weights: Array, mean: Array) -> tuple[Array, Array, Array]:
    """Return influence and typical shares, (feature, cause, output) each, and agreement, (feature, output)."""
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
    # Up to noise, the shares sum to one. A sum far from one means that there is nothing to divide.
    typical = np.divide(shares, total, out=np.zeros_like(shares), where=total > 0.5)
    influence = raw_square - 2 * typical * along + typical**2 * gap_square
    return np.sqrt(np.maximum(influence, 0.0)), typical, agree


def _moments(gate: MeanGate, cells: Cells, weights: Array, mean: Array) -> tuple[Array, Array, Array]:
    """Return the means of parts squared, parts times gap, and gap squared, (feature, cause, output) each.

    If a feature correlates with others, as longitude does with latitude, each value has a typical context. Its effect,
    ``gap``, is a function of the value alone. Regressing every raw part on the gap tells how much of the gap each cause
    contributes.
    """
    shape = (gate.model.n_features, gate.model.n_features, gate.model.n_outputs)
    raw_square, along, square = np.zeros(shape), np.zeros(shape), np.zeros((shape[0], 1, shape[2]))

    def sums(chunk: tuple[slice, Cells]) -> tuple[Array, ...]:
        rows, part = chunk
        raw, _, reference = raw_parts(gate, part)
        gap = (interpolate(mean, part) - reference)[:, :, None]  # (B, F, 1, O)
        return tuple(np.tensordot(weights[rows], each, axes=1) for each in (raw**2, raw * gap, gap**2))

    for squares, products, gaps in in_turn(sums, row_chunks(gate.model, cells)):
        raw_square += squares
        along += products
        square += gaps
    return raw_square / weights.sum(), along / weights.sum(), square / weights.sum()


def _spread_rows(model: TableModel, weights: Array) -> IntArray:
    """Return evenly spaced rows of positive weight, as many as the limit of the work allows."""
    inner = model.gate.terms.shape[1] if model.gate.mix is not None else model.n_experts
    per_row = model.n_features**2 * inner * model.n_members * model.n_outputs
    known = np.flatnonzero(weights > 0)
    n_rows = min(len(known), _MOST_ROWS, max(128, _WORK // per_row))
    return known[np.linspace(0, len(known) - 1, n_rows).round().astype(np.int64)]
