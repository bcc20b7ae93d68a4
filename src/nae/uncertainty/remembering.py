"""What a model keeps of rows that were not learned from: quantiles of their residuals."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from nae._typing import Array, IntArray
from nae.tables.model import TableModel
from nae.tables.residuals import Residuals
from nae.uncertainty.outcomes import Outcomes, read_outcomes
from nae.uncertainty.quantiles import LEAST_ROWS, Tails, quantile_points
from nae.uncertainty.responses import response_of

__all__ = ["calibrated", "remember_residuals", "residuals_of"]

_MEASURED = (0.8, 0.9, 0.95)  # the coverages that are measured


def remember_residuals(model: TableModel, rows: Outcomes) -> TableModel:
    """Return the same model with the residuals of rows that its members held out; without them if these are too few."""
    if np.count_nonzero(rows.weight) < LEAST_ROWS:
        return model
    values = residuals_of(model, rows)
    coverage = {} if rows.fold is None else _measure(model, values, rows.weight, rows.fold)
    return _with(model, rows, values, source="out-of-fold", coverage=coverage)


def calibrated(model: TableModel, X: Any, y: Any, *, offset: Any = None) -> TableModel:
    """Return the same model with the residuals of rows that it did not learn from."""
    rows = read_outcomes(model, X, y, offset=offset)
    return _with(model, rows, residuals_of(model, rows), source="calibration", coverage={})


def _with(
    model: TableModel,
    rows: Outcomes,
    values: Array,
    *,
    source: Literal["out-of-fold", "calibration"],
    coverage: Mapping[str, float],
) -> TableModel:
    points = quantile_points(values, rows.weight)
    entry: dict[str, Any] = {"source": source, "n_rows": len(rows), "coverage": dict(coverage)}
    return replace(model, residuals=Residuals(points)).with_training(intervals=entry)


def residuals_of(model: TableModel, rows: Outcomes) -> Array:
    """Return the residuals of rows, (row, output); for classes, one minus the probability of the truth, (row, 1)."""
    if not model.classes:
        return response_of(model).residuals(rows.score, rows.truth)
    mean = model.link.inverse(rows.score)
    chance = mean if mean.shape[1] > 1 else np.concatenate([1 - mean, mean], axis=1)
    return np.asarray(1 - np.take_along_axis(chance, rows.truth.astype(np.int64), axis=1))


def _measure(model: TableModel, values: Array, weight: Array, folds: IntArray) -> dict[str, float]:
    """Return the share of rows within intervals that were made of the residuals of the other folds."""
    found = dict.fromkeys(_MEASURED, 0.0)
    for fold in np.unique(folds):
        own = folds == fold
        if np.count_nonzero(weight[~own]) < LEAST_ROWS:
            return {}
        tails = Tails(quantile_points(values[~own], weight[~own]), is_outward=False)
        for coverage in found:
            low, high = ends_of(model, tails, coverage)
            is_inside = (values[own] >= low) & (values[own] <= high)
            found[coverage] += float(weight[own] @ is_inside.mean(axis=1))
    total = float(weight.sum())
    return {f"{coverage:g}": share / total for coverage, share in found.items()}


def ends_of(model: TableModel, tails: Tails, coverage: float) -> tuple[Array, Array]:
    """Return the residuals between which a share of the rows lies, (output,) each."""
    if model.classes:
        tails.check(coverage, coverage)
        high = tails.upper(coverage)
        return np.full_like(high, -np.inf), high
    level = (1 + coverage) / 2
    tails.check(level, coverage)
    return tails.lower(1 - level), tails.upper(level)
