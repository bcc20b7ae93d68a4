"""What a model keeps of rows that were not learned from: the usual size of their residuals, and quantiles."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding.cells import Cells
from nae.links import LINKS
from nae.tables.model import TableModel
from nae.tables.residuals import Residuals, Sizes
from nae.tables.statistics import slot_weights
from nae.uncertainty.averaging import MemberScores, averaging_factor, averaging_shift, odds_against
from nae.uncertainty.design import make_design
from nae.uncertainty.ends import ends_of, is_one_sided
from nae.uncertainty.outcomes import Outcomes
from nae.uncertainty.quantiles import LEAST_ROWS, Tails, quantile_points
from nae.uncertainty.responses import response_of
from nae.uncertainty.sizes import CrossFitted, fit_sizes

__all__ = ["remember_residuals", "residuals_of", "scales", "sizes_of", "with_residuals"]

_MEASURED = (0.8, 0.9, 0.95)  # the coverages that are measured


@np.errstate(over="ignore", invalid="ignore")  # residuals that are not finite are not kept
def remember_residuals(model: TableModel, rows: Outcomes, members: MemberScores) -> TableModel:
    """Return the same model with the residuals of rows that its members held out.

    It is returned as it is if these are too few, or their residuals too large for a number.
    """
    if rows.fold is None or np.count_nonzero(rows.weight) < LEAST_ROWS:
        return model
    if model.classes:
        return _remember_classes(model, rows, rows.fold, members)
    values, sizes = residuals_of(model, rows), None
    fitted = sizes_of(model, rows, values)
    logs = np.zeros_like(values) if fitted is None else fitted.of_rows(rows.cells, rows.score, rows.fold)
    values, sizes = values * np.exp(-logs), None if fitted is None else fitted.sizes
    factor = _factor(model, rows, members, np.exp(-logs))
    if not all(np.isfinite(part).all() for part in (values, factor, *(() if sizes is None else vars(sizes).values()))):
        return model
    coverage = _measure(model, values, rows.weight, rows.fold)
    return with_residuals(model, rows, values * factor, sizes, source="out-of-fold", coverage=coverage)


def _remember_classes(model: TableModel, rows: Outcomes, fold: IntArray, members: MemberScores) -> TableModel:
    truth = rows.truth[:, 0].astype(np.int64)
    shift = averaging_shift(truth[members.rows], rows.weight[members.rows], members)
    values = LINKS["logit"].inverse(odds_against(rows.score, truth) + shift)[:, None]
    if not np.isfinite(values).all():
        return model
    coverage = _measure(model, residuals_of(model, rows), rows.weight, fold)
    return with_residuals(model, rows, values, None, source="out-of-fold", coverage=coverage)


def sizes_of(model: TableModel, rows: Outcomes, values: Array) -> CrossFitted | None:
    """Return the usual sizes of the residuals of rows; None if they cannot be told."""
    weight = slot_weights(rows.cells, rows.weight, model.schema.n_slots)
    importance = np.zeros(model.n_features) if model.statistics is None else model.statistics.variance.mean(axis=1)
    design = make_design(model.schema, weight, importance)
    return fit_sizes(design, rows, values)


def _factor(model: TableModel, rows: Outcomes, members: MemberScores, scale: Array) -> Array:
    """Return by how much the residuals of all members together are smaller; ``scale`` is one over their sizes."""
    response = response_of(model)
    truth, own = rows.truth[members.rows], scale[members.rows]
    n_members = members.score.shape[-1]
    residuals = [response.residuals(members.score[..., m], truth) * own for m in range(n_members)]
    return averaging_factor(np.stack(residuals, axis=-1), rows.weight[members.rows], members)


def with_residuals(
    model: TableModel,
    rows: Outcomes,
    values: Array,
    sizes: Sizes | None,
    *,
    source: Literal["out-of-fold", "calibration"],
    coverage: Mapping[str, float],
) -> TableModel:
    """Return the model with residuals that were divided by their sizes, and where they come from."""
    points = quantile_points(np.abs(values) if is_one_sided(model) else values, rows.weight)
    entry: dict[str, Any] = {"source": source, "n_rows": len(rows), "coverage": dict(coverage)}
    if not model.classes and response_of(model).power == 1:
        entry["is_whole"] = bool(np.all(rows.truth == np.rint(rows.truth)))
    return replace(model, residuals=Residuals(points, sizes)).with_training(intervals=entry)


def residuals_of(model: TableModel, rows: Outcomes) -> Array:
    """Return the residuals of rows, (row, output); for classes, one minus the probability of the truth, (row, 1)."""
    if not model.classes:
        return response_of(model).residuals(rows.score, rows.truth)
    return LINKS["logit"].inverse(odds_against(rows.score, rows.truth[:, 0].astype(np.int64)))[:, None]


def _measure(model: TableModel, values: Array, weight: Array, folds: IntArray) -> dict[str, float]:
    """Return the share of rows within intervals that were made of the residuals of the other folds."""
    values = np.abs(values) if is_one_sided(model) else values
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


def scales(model: TableModel, cells: Cells, score: Array) -> Array:
    """Return the sizes by which the residuals of rows are multiplied, (row, output)."""
    sizes = None if model.residuals is None else model.residuals.sizes
    return np.ones_like(score) if sizes is None else np.exp(sizes.at(cells, score))
