"""The models of the panel: those that careful users fit to small tables, and those that win on larger ones."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Split
from benchmarks.models import Budget, Fitted, Model
from benchmarks.models.boosting import category_names, with_missing_as_text
from benchmarks.models.ebm import EBM
from benchmarks.models.linear import table_columns
from benchmarks.models.ours import NAE
from benchmarks.small.tabm import TabM

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CONSTANT", "MODELS", "OURS", "REFERENCES"]


@dataclass(frozen=True, eq=False)
class _Always:
    value: NDArray[np.float64]

    def predict(self, X: "pd.DataFrame") -> NDArray[np.float64]:
        return np.full(len(X), self.value[0])

    def predict_proba(self, X: "pd.DataFrame") -> NDArray[np.float64]:
        return np.tile(self.value, (len(X), 1))


@dataclass(frozen=True)
class Constant:
    """The mean, or the shares of the classes."""

    modules: tuple[str, ...] = ()

    def fit(self, split: Split, budget: Budget) -> Fitted:
        """Fit the mean, or the shares of the classes."""
        y, n_classes = split.all_train.y, split.n_classes
        value = np.bincount(y, minlength=n_classes) / len(y) if n_classes else np.array([y.mean()])
        return Fitted(_Always(value), split.dataset.task, lambda X: X)


@dataclass(frozen=True)
class CrossValidatedLinear:
    """Ridge or logistic regression. Its penalty is chosen by ten folds, or by as many as the rarest class has rows."""

    modules: tuple[str, ...] = ("sklearn.linear_model",)

    def fit(self, split: Split, budget: Budget) -> Fitted:
        """Fit on all training rows."""
        from sklearn.linear_model import LogisticRegression, RidgeCV
        from sklearn.model_selection import GridSearchCV
        from sklearn.pipeline import make_pipeline

        rows = split.all_train
        head: Any
        if split.dataset.task == "regression":
            head = RidgeCV(alphas=np.logspace(-2, 4, 19))
        else:
            n_folds = int(min(10, np.bincount(rows.y).min()))
            head = LogisticRegression(max_iter=2000)
            if n_folds >= 2:
                head = GridSearchCV(head, {"C": np.logspace(-4, 2, 13)}, cv=n_folds, scoring="neg_log_loss")
        pipeline = make_pipeline(table_columns(rows.X), head)
        return Fitted(pipeline.fit(rows.X, rows.y), split.dataset.task, lambda X: X)


@dataclass(frozen=True)
class DefaultCatBoost:
    """CatBoost with its defaults on all rows, because an eighth of a small table says little about when to stop."""

    modules: tuple[str, ...] = ("catboost",)

    def fit(self, split: Split, budget: Budget) -> Fitted:
        """Fit on all training rows."""
        from catboost import CatBoostClassifier, CatBoostRegressor

        rows, names = split.all_train, category_names(split.train.X)
        kind = CatBoostRegressor if split.dataset.task == "regression" else CatBoostClassifier
        model = kind(
            cat_features=names,
            thread_count=budget.threads,
            random_seed=budget.seed,
            allow_writing_files=False,
            verbose=False,
        )

        def prepare(X: "pd.DataFrame") -> Any:
            return with_missing_as_text(X, names)

        return Fitted(model.fit(prepare(rows.X), rows.y), split.dataset.task, prepare)


OURS, CONSTANT = "nae", "constant"
REFERENCES = ("linear", "ebm")
"""The references: losses are compared with the better of the two."""

MODELS: dict[str, tuple[str, Model]] = {
    OURS: ("NAE", NAE()),
    "linear": ("linear", CrossValidatedLinear()),
    "ebm": ("EBM", EBM()),
    "catboost": ("CatBoost", DefaultCatBoost()),
    "tabm": ("TabM", TabM()),
    CONSTANT: ("mean", Constant()),
}
