"""Contributions in the unit of the prediction, such as percentage points: changes from the average row that add up.

The average row has the mean contribution of every feature over the training rows. On the straight way from its score to
that of a row, the prediction changes by a mean slope per unit of score. Contributions minus those of the average row,
times this slope, sum to the prediction minus that of the average row. With one score per prediction, all contributions
of a row are multiplied by one positive factor. The probability of one of several classes has a slope for every score.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from nae._typing import Array, IntArray
from nae.errors import ConfigError, UserError
from nae.explanation.reference import mean_contributions
from nae.tables.model import TableModel

__all__ = ["UNITS", "Exchange", "check_unit"]

UNITS = ("score", "probability", "response")


def check_unit(model: TableModel, unit: str) -> str:
    """Return the unit of contributions; the response of a classifier is a probability."""
    if unit not in UNITS:
        raise ConfigError(f"unit must be 'score', 'probability' or 'response'; got {unit!r}.")
    if unit == "probability" and not model.classes:
        raise UserError("The unit 'probability' needs a classifier; this model predicts numbers. Use unit='response'.")
    return "probability" if model.classes and unit == "response" else unit


@dataclass(frozen=True, eq=False)
class Exchange:
    """What contributions to the scores of rows are worth in predictions."""

    reference: Array  # (feature, output), the contributions of the average row
    intercept: Array  # (output,), the prediction of the average row without an offset
    base: Array  # (row, output), the prediction of the average row with the offset of each row
    slopes: Array  # (row, prediction, output), the mean change of every prediction per unit of every score

    @classmethod
    def of(cls, model: TableModel, score: Array, offset: Array | None = None) -> Self:
        """Return what contributions to scores (row, output) are worth."""
        reference = mean_contributions(model)
        average = model.intercept + reference.sum(axis=0)
        start = np.broadcast_to(average, score.shape) if offset is None else average + offset
        inverse = model.link.inverse
        return cls(reference, inverse(average[None])[0], inverse(start), model.link.mean_slope(start, score))

    def contributions(self, values: Array) -> Array:
        """Return contributions (row, feature, output) in the unit of the predictions."""
        return np.asarray(np.einsum("bko,bfo->bfk", self.slopes, values - self.reference))

    def bounds(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Return lower and upper bounds (row, feature, output) in the unit of the predictions, with the same slopes."""
        rising, falling = np.maximum(self.slopes, 0.0), np.minimum(self.slopes, 0.0)
        low, high = lower - self.reference, upper - self.reference
        least = np.einsum("bko,bfo->bfk", rising, low) + np.einsum("bko,bfo->bfk", falling, high)
        most = np.einsum("bko,bfo->bfk", rising, high) + np.einsum("bko,bfo->bfk", falling, low)
        return least, most

    def parts(self, causes: IntArray, parts: Array) -> Array:
        """Return parts of shifts, (row, feature, output, cause), as (row, feature, prediction, feature)."""
        n_rows, n_features, n_outputs, _ = parts.shape
        square = np.zeros((n_rows, n_features, n_outputs, n_features))
        np.put_along_axis(square, causes, parts, axis=-1)
        return np.asarray(np.einsum("bko,bfoc->bfkc", self.slopes, square))
