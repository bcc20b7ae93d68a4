"""Residuals of rows that a fit has not seen: with them, the coverage is guaranteed (split conformal prediction)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nae._typing import Array
from nae.encoding.columns import Columns
from nae.encoding.fingerprint import fingerprint
from nae.errors import ConfigError, DataError, UserError
from nae.tables.model import TableModel
from nae.uncertainty.ends import is_one_sided
from nae.uncertainty.levels import divided, known_by, read_levels, without_by
from nae.uncertainty.outcomes import Outcomes, read_outcomes
from nae.uncertainty.remembering import residuals_of, sizes_of, with_residuals

__all__ = ["calibrated", "knowing"]

Read = Callable[[Any], Columns]
_ROWS_WITH_SIZES = 400  # rows from which a model of sizes is made, too


def calibrated(model: TableModel, read: Read, given: tuple[Any, ...], *, by: str | None = None) -> TableModel:
    """Return the same model with the residuals of rows that it did not learn from: X, y and perhaps an offset.

    If it knows no sizes of residuals, every second row of at least 400 is used to find them, and only the others count.
    """
    X, y, offset = (*given, None)[:3]
    columns = read(without_by(X, model, by))
    level = None if by is None else read_levels(by, X, columns.n_rows)
    rows = read_outcomes(model, columns, y, offset=offset, level=level)
    _check_unseen(model, columns, rows)
    sizes = None if model.residuals is None else model.residuals.sizes
    if sizes is None and not model.classes and len(rows) >= _ROWS_WITH_SIZES:
        apart, rows = rows.take(slice(0, None, 2)), rows.take(slice(1, None, 2))
        fitted = sizes_of(model, apart, residuals_of(model, apart))
        sizes = None if fitted is None else fitted.sizes
    values = residuals_of(model, rows)
    if sizes is not None:
        values = values * np.exp(-sizes.at(rows.cells, rows.score))
    found = with_residuals(model, rows, values, sizes, source="calibration", coverage={})
    return found if by is None else _divided(found, by, values, rows)


def _check_unseen(model: TableModel, columns: Columns, rows: Outcomes) -> None:
    """Raise an error for the training rows themselves, whose residuals are too small."""
    if model.training.data_sha256 is None or not len(rows) == columns.n_rows == model.training.n_rows:
        return
    truth = rows.truth[:, : model.n_targets]
    targets = [truth[:, 0], len(model.classes) - 1 - truth[:, 0]] if model.classes else [truth]
    if model.training.data_sha256 in [fingerprint(columns, target, rows.weight) for target in targets]:
        raise DataError(
            "Rows to calibrate on must be rows that the fit has not seen; these are its training rows. "
            "Without calibrate_on, the residuals of rows that members held out are used."
        )


def knowing(model: TableModel, read: Read, calibrate_on: Any, *, by: str | None) -> TableModel:
    """Return the model with the residuals that were asked for: its own, or those of given rows."""
    if calibrate_on is not None:
        if not isinstance(calibrate_on, tuple) or len(calibrate_on) not in (2, 3):
            raise ConfigError(f"calibrate_on must be (X, y) or (X, y, offset); got {type(calibrate_on).__name__}.")
        return calibrated(model, read, calibrate_on, by=by)
    if by is not None and by != known_by(model):
        raise UserError(
            f"Residuals by {by!r} need rows that the fit has not seen; none are given. "
            "Pass calibrate_on=(X, y), or keep them in a model: calibrated(X, y, by=…)."
        )
    return model


def _divided(model: TableModel, by: str, values: Array, rows: Outcomes) -> TableModel:
    if model.residuals is None or model.training.intervals is None or rows.level is None:
        raise TypeError("Only residuals of known levels can be divided.")
    values = np.abs(values) if is_one_sided(model) else values
    residuals, entry = divided(model.residuals, by, values, rows.weight, rows.level)
    return replace(model, residuals=residuals).with_training(intervals={**model.training.intervals, "by": entry})
