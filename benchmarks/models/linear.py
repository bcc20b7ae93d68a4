"""Linear models of standardised numbers and one-hot categories, plain or with splines of every number.

The validation rows choose the strength of the ridge penalty. Then the model is fitted on all rows.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Part, Split
from benchmarks.models.protocol import Budget, Fitted

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Linear", "table_columns"]

STRENGTHS = (0.1, 1.0, 10.0, 100.0)
N_KNOTS = 12
FEW_VALUES = 24
"""A number with fewer distinct values is a category for the splines, because there is nothing to smooth."""


@dataclass(frozen=True)
class Linear:
    """Ridge or logistic regression; with splines, a generalised additive model."""

    has_splines: bool = False
    modules: tuple[str, ...] = ("sklearn.linear_model",)

    def fit(self, split: Split, budget: Budget) -> Fitted:
        """Fit with every strength, choose the best one on the validation rows, and fit it on all rows."""
        losses = [self._loss(split, strength) for strength in STRENGTHS]
        pipeline = self._pipeline(split.train.X, split, STRENGTHS[int(np.argmin(losses))])
        rows = split.all_train
        return Fitted(pipeline.fit(rows.X, rows.y), split.dataset.task, lambda X: X)

    def _loss(self, split: Split, strength: float) -> float:
        from sklearn.metrics import log_loss

        pipeline = self._pipeline(split.train.X, split, strength).fit(split.train.X, split.train.y)
        rows: Part = split.validation
        if split.dataset.task == "regression":
            return float(np.mean((pipeline.predict(rows.X) - rows.y) ** 2))
        return float(log_loss(rows.y, pipeline.predict_proba(rows.X), labels=np.arange(split.n_classes)))

    def _pipeline(self, X: "pd.DataFrame", split: Split, strength: float) -> Any:
        from sklearn.linear_model import LogisticRegression, Ridge
        from sklearn.pipeline import make_pipeline

        if split.dataset.task == "regression":
            head = Ridge(alpha=strength)
        else:
            head = LogisticRegression(C=1 / strength, max_iter=2000)
        return make_pipeline(table_columns(X, has_splines=self.has_splines), head)


def table_columns(X: "pd.DataFrame", *, has_splines: bool = False) -> Any:
    """Return a transformer of a table to standardised numbers, one-hot levels and flags for missing values."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import MissingIndicator, SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler

    numbers = [name for name in X.columns if X[name].dtype.kind in "biuf"]
    curves = [name for name in numbers if has_splines and X[name].nunique() >= FEW_VALUES]
    plain = [] if has_splines else numbers
    levels = [name for name in X.columns if name not in curves and name not in plain]
    missing = [name for name in (*curves, *plain) if X[name].isna().any()]
    fill = SimpleImputer(strategy="median")
    parts: list[tuple[str, Any, list[str]]] = [
        ("plain", make_pipeline(fill, StandardScaler()), plain),
        ("levels", OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=5), levels),
        ("missing", MissingIndicator(features="all"), missing),
    ]
    for name in curves:  # one by one, because each number has its own knots
        spline = SplineTransformer(knots=_knots(X[name].to_numpy()), extrapolation="constant")
        parts.append((f"curve of {name}", make_pipeline(fill, spline), [name]))
    return ColumnTransformer([part for part in parts if part[2]])


def _knots(values: NDArray[Any]) -> NDArray[Any]:
    """Return knots at quantiles of the distinct values, because quantiles of the rows may coincide."""
    distinct = np.unique(values[~np.isnan(values)])
    knots: NDArray[Any] = np.quantile(distinct, np.linspace(0, 1, N_KNOTS))
    return knots[:, None]
