"""Reweighted squares: what many rows ask of the additive fit, as a matrix and a vector."""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array
from nae.uncertainty.effects.families import Family

__all__ = ["Sample", "Squares", "reweighted"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows as columns of the additive fit, for one output."""

    columns: Array  # (row, column)
    truth: Array  # (row,)
    offset: Array  # (row,)
    weight: Array  # (row,)
    shown: Array  # (row, feature), the effects that the model shows

    def take(self, rows: slice) -> "Sample":
        """Return some of the rows."""
        return Sample(self.columns[rows], self.truth[rows], self.offset[rows], self.weight[rows], self.shown[rows])


@dataclass(frozen=True, eq=False)
class Squares:
    """The weighted squares that stand for the loss near some scores: those of ``goal`` minus the fit of the columns.

    Columns and goal are centred, which takes the place of an intercept.
    """

    weights: Array  # (row,), sample weights included
    goal: Array  # (row,)
    centre: Array  # (column,), the weighted mean of the columns
    mean: float  # of the goal
    matrix: Array  # (column, column)
    vector: Array  # (column,)
    total: float  # the weighted squares of the goal
    precision: float  # of the weak prior of every column
    has_known_noise: bool

    def rest(self, coefficients: Array) -> float:
        """Return the weighted squares that coefficients leave."""
        return float(self.total - 2 * coefficients @ self.vector + coefficients @ self.matrix @ coefficients)

    def residuals(self, columns: Array, coefficients: Array) -> Array:
        """Return what coefficients leave of every row."""
        return np.asarray(self.goal - self.mean - (columns @ coefficients - self.centre @ coefficients))


def reweighted(sample: Sample, family: Family, *, fitted: Array, base: float) -> Squares:
    """Return the squares near the scores of a fit and its intercept."""
    pull, residuals = family.pull(sample.truth, sample.offset + base + fitted)
    weights = pull * sample.weight
    total = float(weights.sum())
    goal = fitted + residuals
    mean = float(weights @ goal) / total
    scaled = sample.columns * weights[:, None]
    centre = scaled.sum(axis=0) / total
    return Squares(
        weights=weights,
        goal=goal,
        centre=centre,
        mean=mean,
        matrix=scaled.T @ sample.columns - total * np.outer(centre, centre),
        vector=scaled.T @ (goal - mean),
        total=float(weights @ (goal - mean) ** 2),
        precision=family.precision,
        has_known_noise=family.has_known_noise,
    )
