"""Categories as numbers by the mean target of their level, as the paper takes them.

NODE-GAM, whose preparation the paper follows, fits a leave-one-out encoder with the targets of the training rows and
applies it without any: every row gets its level's mean over the training rows, and a level seen once or never gets the
overall mean. So validation and test rows never lend their targets. (Leaving the own target out on the training rows
would tell it: in a level, rows of different targets would then have different values.)
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
    """The mean target of every level that training rows have at least twice."""

    overall: float
    means: "dict[str, pd.Series[float]]"
    """By column, then by level."""

    @classmethod
    def fit(cls, X: "pd.DataFrame", y: NDArray[Any]) -> "LeaveOneOut":
        """Take the means from training rows."""
        means = {}
        for name in X.columns:
            if X[name].dtype.kind not in "biuf":
                grouped = _series(y, X[name]).groupby(level=0).agg(["mean", "size"])
                means[name] = grouped.loc[grouped["size"] > 1, "mean"]
        return cls(float(np.mean(y)), means)

    def transform(self, X: "pd.DataFrame") -> "pd.DataFrame":
        """Return the table in numbers."""
        columns = {name: _levels(X[name]).map(means).fillna(self.overall) for name, means in self.means.items()}
        return X.assign(**columns).astype(np.float64)


def encode_categories(split: Split) -> Split:
    """Return the split with its categories as numbers, learnt from its training rows."""
    encoder = LeaveOneOut.fit(split.train.X, split.train.y)

    def encode(part: Part) -> Part:
        return Part(encoder.transform(part.X), part.y)

    return replace(split, train=encode(split.train), validation=encode(split.validation), test=encode(split.test))


def _levels(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return the levels as text, missing ones as a level of their own."""
    return column.astype(object).where(column.notna(), MISSING)


def _series(y: NDArray[Any], levels: "pd.Series[Any]") -> "pd.Series[Any]":
    import pandas as pd

    return pd.Series(y, index=_levels(levels).to_numpy(), dtype=np.float64)
