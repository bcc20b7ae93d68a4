"""Encode categories as the mean target of their level, as the paper does.

The paper follows NODE-GAM, which fits a leave-one-out encoder with the targets of the training rows, and applies it
without targets: every row gets the mean of its level over the training rows, and a level that was seen at most once
gets the overall mean. Targets of validation and test rows are therefore never used. (If the own target were left out on
the training rows, the feature would reveal it: rows of one level with different targets would have different values.)
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets.reading import Part, Split

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LeaveOneOut", "encode_categories"]

MISSING = "(missing)"


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """The mean target of every level that occurs at least twice in the training rows."""

    overall: float
    means: "dict[str, pd.Series[float]]"
    """The means by column and level."""

    @classmethod
    def fit(cls, X: "pd.DataFrame", y: NDArray[Any]) -> "LeaveOneOut":
        """Compute the means from training rows."""
        means = {}
        for name in X.columns:
            if X[name].dtype.kind not in "biuf":
                grouped = _series(y, X[name]).groupby(level=0).agg(["mean", "size"])
                means[name] = grouped.loc[grouped["size"] > 1, "mean"]
        return cls(float(np.mean(y)), means)

    def transform(self, X: "pd.DataFrame") -> "pd.DataFrame":
        """Return the table with numbers in place of categories."""
        columns = {name: _levels(X[name]).map(means).fillna(self.overall) for name, means in self.means.items()}
        return X.assign(**columns).astype(np.float64)


def encode_categories(split: Split) -> Split:
    """Return the split with categories encoded by the means of its training rows."""
    encoder = LeaveOneOut.fit(split.train.X, split.train.y)

    def encode(part: Part) -> Part:
        return Part(encoder.transform(part.X), part.y)

    return replace(split, train=encode(split.train), validation=encode(split.validation), test=encode(split.test))


def _levels(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return the levels as text; missing values become a level."""
    return column.astype(object).where(column.notna(), MISSING)


def _series(y: NDArray[Any], levels: "pd.Series[Any]") -> "pd.Series[Any]":
    import pandas as pd

    return pd.Series(y, index=_levels(levels).to_numpy(), dtype=np.float64)
