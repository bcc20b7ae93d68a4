"""The models of the panel: those of the suite as small tables want them, and TabM."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Split
from benchmarks.models import Budget, Fitted
from benchmarks.models.linear import Linear

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Constant", "CrossValidatedLinear", "DefaultCatBoost"]


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
        y = split.all_train.y
        n_classes = split.n_classes
        value = np.bincount(y, minlength=n_classes) / len(y) if n_classes else np.array([y.mean()])
        return Fitted(_Always(value), split.dataset.task, lambda X: X)


@dataclass(frozen=True)
class CrossValidatedLinear:
    """Ridge or logistic regression whose strength ten folds choose: what a careful user of a small table does."""

    modules: tuple[str, ...] = ("sklearn.linear_model",)

    def fit(self, split: Split, budget: Budget) -> Fitted:
        from sklearn.linear_model import LogisticRegression, RidgeCV
        from sklearn.model_selection import GridSearchCV
        from sklearn.pipeline import make_pipeline

        rows = split.all_train
        head: Any
        if split.dataset.task == "regression":
            head = RidgeCV(alphas=np.logspace(-2, 4, 19))
        else:
            n_folds = int(min(10, np.bincount(rows.y).min()))
            grid = {"C": np.logspace(-4, 2, 13)}
            head = LogisticRegression(max_iter=2000)
            if n_folds >= 2:
                head = GridSearchCV(head, grid, cv=n_folds, scoring="neg_log_loss")
        pipeline = make_pipeline(Linear()._columns(rows.X), head)
        return Fitted(pipeline.fit(rows.X, rows.y), split.dataset.task, lambda X: X)


@dataclass(frozen=True)
class DefaultCatBoost:
    """CatBoost as it comes, on all rows: an eighth of a small table says little about when to stop."""

    modules: tuple[str, ...] = ("catboost",)

    def fit(self, split: Split, budget: Budget) -> Fitted:
        from catboost import CatBoostClassifier, CatBoostRegressor

        from benchmarks.models.boosting import _category_names, _with_missing_as_text

        names = _category_names(split.train.X)
        kind = CatBoostRegressor if split.dataset.task == "regression" else CatBoostClassifier
        model = kind(
            cat_features=names,
            thread_count=budget.threads,
            random_seed=budget.seed,
            allow_writing_files=False,
            verbose=False,
        )
        rows = split.all_train

        def prepare(X: "pd.DataFrame") -> Any:
            return _with_missing_as_text(X, names)

        return Fitted(model.fit(prepare(rows.X), rows.y), split.dataset.task, prepare)
