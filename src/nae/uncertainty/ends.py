"""Between which residuals a share of the rows lies, for every row that is asked about."""

from typing import Any

import numpy as np

from nae._typing import Array
from nae.tables.model import TableModel
from nae.uncertainty.levels import read_levels, to_level
from nae.uncertainty.quantiles import Tails
from nae.uncertainty.responses import response_of
from nae.uncertainty.source import Basis, basis_of

__all__ = ["ends_of", "is_one_sided", "row_ends"]


def is_one_sided(model: TableModel) -> bool:
    """Whether only large residuals count: those of classes, and absolute values of those whose tails are alike."""
    return bool(model.classes) or response_of(model).is_symmetric


def ends_of(model: TableModel, tails: Tails, coverage: float) -> tuple[Array, Array]:
    """Return the residuals between which a share of the rows lies, (output,) each."""
    level = coverage if is_one_sided(model) else (1 + coverage) / 2
    tails.check(level, coverage)
    high = tails.upper(level)
    return -high if is_one_sided(model) else tails.lower(1 - level), high


def row_ends(
    model: TableModel, coverage: float, X: Any, n_rows: int
) -> tuple[Basis, tuple[str, ...], tuple[Array, Array]]:
    """Return what a model's residuals are those of, the level of every row, and both ends, (row or 1, output) each."""
    basis, residuals = basis_of(model, coverage)
    entry = None if model.training.intervals is None else model.training.intervals.get("by")
    if entry is None or residuals.by_level is None:
        found = ends_of(model, Tails(residuals.quantiles, is_outward=basis.is_guaranteed), coverage)
        return basis, (), (found[0][None], found[1][None])
    levels = to_level(read_levels(entry["column"], X, n_rows), entry)
    ends = np.empty((2, n_rows, residuals.quantiles.shape[1]))
    parts = np.split(residuals.by_level, np.cumsum(entry["n_points"])[:-1])
    for name, points in zip(entry["levels"], parts, strict=True):
        own = np.flatnonzero(levels == name)
        if len(own):
            ends[:, own] = np.stack(ends_of(model, Tails(points, is_outward=True), coverage))[:, None]
    return basis, tuple(levels.tolist()), (ends[0], ends[1])
