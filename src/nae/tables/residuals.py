"""What a model keeps of its residuals on rows that it did not learn from: aggregates, never rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from nae._typing import Array
from nae.encoding.cells import Cells
from nae.tables.lookup import interpolate_sum

__all__ = ["Residuals", "Sizes"]


@dataclass(frozen=True, eq=False)
class Sizes:
    """The logarithm of the usual size of a residual: a curve per feature, and one of the score, added up."""

    size: Array  # (slot, output), linear between two slots; on average over the rows 0 for every feature
    score_knots: Array  # (knot, output), ascending
    score_size: Array  # (knot, output), linear between two knots, constant beyond the first and the last one

    def at(self, cells: Cells, score: Array) -> Array:
        """Return the logarithm of the size of the residuals of rows, given their scores, (row, output) each."""
        found = interpolate_sum(self.size, cells).astype(np.float64)
        for o, column in enumerate(score.T):
            found[:, o] += np.interp(column, self.score_knots[:, o], self.score_size[:, o])
        return found


@dataclass(frozen=True, eq=False)
class Residuals:
    """The distribution of residuals, from which prediction intervals and sets are computed.

    For classes, the residual is one minus the probability of the true class, and there is one output.
    """

    quantiles: Array  # (point, output), at the levels 1 / (P + 1), ..., P / (P + 1); ascending
    sizes: Sizes | None = None
    """What residuals were divided by. If None, by nothing."""
    by_level: Array | None = None  # (points of all levels, output): quantiles of every level of a column, in turn

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays by name."""
        by_level = {} if self.by_level is None else {"by_level": self.by_level}
        return {"quantiles": self.quantiles, **({} if self.sizes is None else vars(self.sizes)), **by_level}

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> Self:
        """Return what the arrays of :meth:`to_arrays` hold."""
        sizes = {name: array for name, array in arrays.items() if name not in ("quantiles", "by_level")}
        return cls(arrays["quantiles"], Sizes(**sizes) if sizes else None, arrays.get("by_level"))
