"""The scale on which residuals are compared: the one on which the target of a loss varies alike at every prediction.

The target is transformed by ``t``, whose slope is one over the standard deviation that the loss assumes: the identity
for the squared, absolute, Huber and quantile loss, twice the root for counts (Poisson), the logarithm for gamma, and a
power between the two for Tweedie.
"""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array
from nae.quality.baseline import Criterion
from nae.tables.model import TableModel

__all__ = ["Response", "response_of"]


@dataclass(frozen=True)
class Response:
    """A target and the scale of its residuals."""

    power: float
    """The variance grows with this power of the mean: 0, 1 for counts, 2 for gamma."""

    @property
    def is_symmetric(self) -> bool:
        """Whether the two tails are told apart by nothing: the transform has made them alike."""
        return self.power > 0

    def residuals(self, score: Array, truth: Array) -> Array:
        """Return the residuals of scores and targets, (row, output) each."""
        if self.power == 0:
            return truth - score
        return self._transform(truth) - self._transform(np.exp(score))

    @np.errstate(over="ignore")  # as for predictions, a score may be too large for its exponential
    def targets(self, score: Array, residuals: Array) -> Array:
        """Return the targets at which scores have the given residuals."""
        if self.power == 0:
            return score + residuals
        return self._inverse(self._transform(np.exp(score)) + residuals)

    def _transform(self, values: Array) -> Array:
        if self.power == 2:
            return np.asarray(np.log(values))
        own = 1 - self.power / 2
        return np.asarray(values**own / own)

    def _inverse(self, values: Array) -> Array:
        if self.power == 2:
            return np.asarray(np.exp(values))
        own = 1 - self.power / 2
        return np.asarray(np.maximum(own * values, 0.0) ** (1 / own))


def response_of(model: TableModel) -> Response:
    """Return the response of a model of numbers."""
    return Response(Criterion.of(model.training).power or 0.0)
