"""Turn a table into features: categories become mean targets, and every column gets a normal distribution."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import LeaveOneOut

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Inputs"]

N_QUANTILES = 2000
NOISE = 1e-3
"""Noise on the values from which quantiles are computed, so that equal values do not make steps."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """From a table to features: every column, followed by a flag for each column with missing values."""

    categories: LeaveOneOut
    quantiles: Any
    with_missing: tuple[str, ...]
    names: tuple[str, ...]
    """The names of the features."""

    @classmethod
    def fit(cls, X: "pd.DataFrame", y: NDArray[Any], *, seed: int) -> "Inputs":
        """Compute levels and quantiles from training rows."""
        from sklearn.preprocessing import QuantileTransformer

        categories = LeaveOneOut.fit(X, y)
        numbers = categories.transform(X).to_numpy(np.float64)
        spread = np.nanstd(numbers, axis=0)
        noise = NOISE * np.where(spread > 0, spread, 1.0) * np.random.default_rng(seed).normal(size=numbers.shape)
        quantiles = QuantileTransformer(
            n_quantiles=min(N_QUANTILES, len(numbers)), output_distribution="normal", random_state=seed
        )
        missing = tuple(str(name) for i, name in enumerate(X.columns) if np.isnan(numbers[:, i]).any())
        names = (*map(str, X.columns), *(f"{name} is missing" for name in missing))
        return cls(categories, quantiles.fit(numbers + noise), missing, names)

    def __call__(self, X: "pd.DataFrame") -> NDArray[np.float32]:
        """Return the features (row, feature)."""
        table = self.categories.transform(X)
        numbers = np.nan_to_num(self.quantiles.transform(table.to_numpy(np.float64)))
        flags = table[list(self.with_missing)].isna().to_numpy(np.float64)
        return np.concatenate([numbers, flags], axis=1).astype(np.float32)
