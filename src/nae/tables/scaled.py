"""A model whose score is multiplied by a positive number: all of its tables are, so that it stays a sum."""

from dataclasses import replace

import numpy as np

from nae._typing import Array
from nae.tables.clamps import Clamps
from nae.tables.model import TableModel
from nae.tables.statistics import Statistics

__all__ = ["scaled"]


def scaled(model: TableModel, slope: float) -> TableModel:
    """Return the model whose contributions, bounds and intercept are ``slope`` times as large.

    Gates and routing are as they were. What was measured about scores on rows (residuals, evidence) is left out.
    """
    if not (np.isfinite(slope) and slope > 0):
        raise ValueError(f"The slope must be positive; got {slope}.")
    return replace(
        model,
        experts=_times(model.experts, slope),
        intercept=_times(model.intercept, slope),
        clamps=None if model.clamps is None else _scaled_clamps(model.clamps, slope),
        statistics=None if model.statistics is None else _scaled_statistics(model.statistics, slope),
        residuals=None,
        evidence=None,
        kernel=None,
    )


def _times(values: Array, slope: float) -> Array:
    return np.asarray(values * slope, dtype=values.dtype)


def _scaled_clamps(clamps: Clamps, slope: float) -> Clamps:
    return Clamps(_times(clamps.lower, slope), _times(clamps.upper, slope))


def _scaled_statistics(statistics: Statistics, slope: float) -> Statistics:
    """Return the statistics of the larger contributions. Shares, weights and gates stay the same."""
    once = {name: _times(getattr(statistics, name), slope) for name in ("mean", "quantiles", "influence")}
    squares = ("variance", "residual", "score_variance", "additive_variance")
    return replace(statistics, **once, **{name: _times(getattr(statistics, name), slope**2) for name in squares})
