"""The levels of a column, each of which has residuals of its own: the coverage then holds within every level."""

from typing import Any

import numpy as np

from nae._typing import Array
from nae.encoding.columns import category_keys
from nae.encoding.frames import read_table
from nae.errors import DataError
from nae.quality.grouping import MISSING, read_by
from nae.tables.model import TableModel
from nae.tables.residuals import Residuals
from nae.tables.summary import LevelsEntry
from nae.uncertainty.quantiles import LEAST_ROWS, quantile_points

__all__ = ["OTHER", "divided", "known_by", "read_levels", "to_level", "without_by"]

OTHER = "(other)"
"""All levels that have too few rows, and those that were never seen."""
_LEAST_IN_LEVEL = 100


def read_levels(by: Any, X: Any, n_rows: int) -> Array:
    """Return the level of every row in a column of a table, as text."""
    if not isinstance(by, str):
        raise DataError(f"by must be the name of a column; got {type(by).__name__}.")
    keys = category_keys(read_by({by: by}, X, n_rows)[by])
    return np.array([MISSING if key is None else key for key in keys], dtype=object)


def known_by(model: TableModel) -> str | None:
    """Return the column whose levels have residuals of their own; None if no column has."""
    entry = model.training.intervals
    return entry["by"]["column"] if entry is not None and "by" in entry else None


def without_by(X: Any, model: TableModel, by: str | None) -> Any:
    """Return a table without the column of levels, if that is no feature: an estimator takes no other columns."""
    if by is None or by in model.feature_names:
        return X
    columns = read_table(X)
    return columns if columns.names is None else columns.select([name for name in columns.names if name != by])


def divided(
    residuals: Residuals, by: str, values: Array, weight: Array, levels: Array
) -> tuple[Residuals, LevelsEntry]:
    """Return residuals with quantiles of every level, and what a file says about the levels.

    Levels of fewer than 100 rows are put together. If these have fewer than 39 rows, all rows stand for them.
    """
    names, counts = np.unique(levels.astype(str), return_counts=True)
    kept = names[counts >= _LEAST_IN_LEVEL].tolist()
    rows = {name: np.flatnonzero(levels == name) for name in kept}
    rest = np.flatnonzero(~np.isin(levels.astype(str), kept))
    rows[OTHER] = rest if len(rest) >= LEAST_ROWS else np.arange(len(levels))
    points = [quantile_points(values[own], weight[own]) for own in rows.values()]
    entry: LevelsEntry = {
        "column": by,
        "levels": list(rows),
        "n_rows": list(map(len, rows.values())),
        "n_points": list(map(len, points)),
    }
    return Residuals(residuals.quantiles, residuals.sizes, np.concatenate(points)), entry


def to_level(levels: Array, entry: LevelsEntry) -> Array:
    """Return, for the level of every row, the one whose residuals stand for it."""
    return np.where(np.isin(levels.astype(str), entry["levels"]), levels, OTHER)
