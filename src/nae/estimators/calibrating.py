"""Calibrate a classifier: multiply its score by the slope under which rows that members held out lose least."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.errors import DataError
from nae.estimators.fitting import Fitted
from nae.estimators.heldout import HeldOut, held_out
from nae.estimators.prepared import Prepared
from nae.quality.slopes import fit_slope, fit_temperature
from nae.tables.model import TableModel
from nae.tables.scaled import scaled
from nae.tables.summary import CalibrationEntry
from nae.training.workers import ALONE, Workers

__all__ = ["calibrated"]

Balance = Callable[[TableModel], TableModel]

_RANGE = (0.05, 20.0)  # slopes beyond it follow from classes that a score separates


def calibrated(fitted: Fitted, prepared: Prepared, balance: Balance, *, workers: Workers = ALONE) -> Fitted:
    """Return the fit with its score calibrated and balanced again, as ``calibrate`` asks for.

    With 'auto', the score stays as it is unless slopes of the other folds improve the log loss of the rows of each fold
    by more than its standard error.
    """
    asked = prepared.task.calibrate
    if not asked:
        return fitted
    rows = held_out(fitted.model, fitted, prepared, workers=workers)
    if rows is None:
        if asked == "auto":
            return fitted
        raise DataError(
            "calibrate=True needs rows that members held out of their training; this fit has none. Leave out eval_set, "
            "validation and warm_start, use n_members of at least 2 and more rows, or pass calibrate='auto'."
        )
    gain, error = _gain(rows)
    slope = min(_fit(rows, np.ones(len(_codes(rows)), dtype=bool))[0], _most(prepared))
    if asked == "auto" and not gain > error:
        slope = 1.0
    entry: CalibrationEntry = {"slope": slope, "gain": gain, "standard_error": error}
    model = fitted.model if slope == 1 else balance(scaled(fitted.model, slope))
    return replace(
        fitted,
        model=model.with_training(calibration=entry),
        intercepts=fitted.intercepts * slope,
        table_error=fitted.table_error * slope,
    )


def _most(prepared: Prepared) -> float:
    """Return the largest slope: promised limits of effects must not grow."""
    promises = {} if prepared.constraints is None else prepared.constraints.promises(prepared.schema.names)
    return 1.0 if promises.get("max_effect") else _RANGE[1]


def _fit(rows: HeldOut, kept: BoolArray) -> tuple[float, float]:
    """Return slope and shift of the score; the shift is 0 for more than two classes."""
    score, codes, weight, base = rows.score[kept], _codes(rows)[kept], rows.weight[kept], rows.offset[kept]
    if score.shape[1] > 1:
        return float(np.clip(fit_temperature(score, codes, weight, base=base), *_RANGE)), 0.0
    slope, shift = fit_slope(score[:, 0], codes.astype(np.float64), weight, base=base[:, 0])
    return float(np.clip(slope, *_RANGE)), shift


def _codes(rows: HeldOut) -> IntArray:
    return rows.truth[:, 0].astype(np.int64)


def _gain(rows: HeldOut) -> tuple[float, float]:
    """Return by how much calibration lowers the log loss of held-out rows, and the standard error of that.

    Slope and shift are fitted to all folds but one, and applied to the rows of that fold.
    """
    found = np.zeros(len(_codes(rows)))
    for fold in np.unique(rows.fold):
        own = rows.fold == fold
        found[own] = _loss(rows, own, 1.0, 0.0) - _loss(rows, own, *_fit(rows, ~own))
    share = rows.weight / rows.weight.sum()
    mean = float(share @ found)
    return mean, float(np.sqrt(share**2 @ (found - mean) ** 2))


def _loss(rows: HeldOut, kept: BoolArray, slope: float, shift: float) -> Array:
    """Return the log loss of rows."""
    score, codes = slope * rows.score[kept] + shift + rows.offset[kept], _codes(rows)[kept]
    if score.shape[1] == 1:
        return np.asarray(np.logaddexp(0.0, score[:, 0]) - codes * score[:, 0])
    return np.asarray(np.logaddexp.reduce(score, axis=1) - score[np.arange(len(codes)), codes])
