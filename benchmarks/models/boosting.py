"""Boosted trees: many trees, small steps, early stopping on the validation rows, native categories.

The three libraries share the learning rate, the patience, and the share of rows and columns per tree. Other settings
are close to the recommendations of each library. The validation rows decide when to stop. With ``is_refitted``, as many
trees are then grown on all rows, as one would do for a final model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.datasets import Split
from benchmarks.models.protocol import Budget, Fitted

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CatBoost", "LightGBM", "XGBoost", "category_names", "with_missing_as_text"]

LEARNING_RATE = 0.03
PATIENCE = 100
SUBSAMPLE = 0.8


@dataclass(frozen=True)
class XGBoost:
    """XGBoost with histograms and native categories."""

    is_refitted: bool = False
    modules: tuple[str, ...] = ("xgboost",)

    def fit(self, split: Split, budget: Budget) -> Fitted:
        """Fit until validation stops improving."""
        from xgboost import XGBClassifier, XGBRegressor

        make = partial(
            XGBRegressor if split.dataset.task == "regression" else XGBClassifier,
            learning_rate=LEARNING_RATE,
            max_depth=7,
            subsample=SUBSAMPLE,
            colsample_bytree=SUBSAMPLE,
            tree_method="hist",
            enable_categorical=True,
            n_jobs=budget.threads,
            random_state=budget.seed,
        )
        prepare = _as_categories(split.train.X)
        model = make(n_estimators=budget.n_trees, early_stopping_rounds=PATIENCE)
        validation = (prepare(split.validation.X), split.validation.y)
        model.fit(prepare(split.train.X), split.train.y, eval_set=[validation], verbose=False)
        if self.is_refitted:
            rows = split.all_train
            model = make(n_estimators=model.best_iteration + 1).fit(prepare(rows.X), rows.y)
        return Fitted(model, split.dataset.task, prepare)


@dataclass(frozen=True)
class LightGBM:
    """LightGBM with native categories."""

    is_refitted: bool = False
    modules: tuple[str, ...] = ("lightgbm",)

    def fit(self, split: Split, budget: Budget) -> Fitted:
        """Fit until validation stops improving."""
        import lightgbm

        make = partial(
            lightgbm.LGBMRegressor if split.dataset.task == "regression" else lightgbm.LGBMClassifier,
            learning_rate=LEARNING_RATE,
            num_leaves=63,
            min_child_samples=10,
            subsample=SUBSAMPLE,
            subsample_freq=1,
            colsample_bytree=SUBSAMPLE,
            n_jobs=budget.threads,
            random_state=budget.seed,
            verbose=-1,
        )
        prepare = _as_categories(split.train.X)
        model = make(n_estimators=budget.n_trees).fit(
            prepare(split.train.X),
            split.train.y,
            eval_X=prepare(split.validation.X),
            eval_y=split.validation.y,
            callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
        )
        if self.is_refitted:
            rows = split.all_train
            model = make(n_estimators=model.best_iteration_).fit(prepare(rows.X), rows.y)
        return Fitted(model, split.dataset.task, prepare)


@dataclass(frozen=True)
class CatBoost:
    """CatBoost with its ordered encoding of categories."""

    is_refitted: bool = False
    modules: tuple[str, ...] = ("catboost",)

    def fit(self, split: Split, budget: Budget) -> Fitted:
        """Fit until validation stops improving."""
        from catboost import CatBoostClassifier, CatBoostRegressor, Pool

        names = category_names(split.train.X)

        def prepare(X: "pd.DataFrame", y: Any = None) -> Any:
            return Pool(with_missing_as_text(X, names), y, cat_features=names)

        make = partial(
            CatBoostRegressor if split.dataset.task == "regression" else CatBoostClassifier,
            learning_rate=LEARNING_RATE,
            depth=8,
            thread_count=budget.threads,
            random_seed=budget.seed,
            allow_writing_files=False,
            verbose=False,
        )
        model = make(iterations=budget.n_trees * 2 // 3, early_stopping_rounds=PATIENCE)
        validation = prepare(split.validation.X, split.validation.y)
        model.fit(prepare(split.train.X, split.train.y), eval_set=validation, use_best_model=True)
        if self.is_refitted:
            rows = split.all_train
            model = make(iterations=model.tree_count_).fit(prepare(rows.X, rows.y))
        return Fitted(model, split.dataset.task, prepare)


def category_names(X: "pd.DataFrame") -> list[str]:
    """Return the columns that hold text."""
    return [str(name) for name in X.columns if X[name].dtype.kind not in "biuf"]


def _as_categories(train: "pd.DataFrame") -> Callable[["pd.DataFrame"], Any]:
    """Return a function that turns text into categories. A level that does not occur in training becomes missing.

    XGBoost and LightGBM do not accept names with brackets, so columns are named by their numbers.
    """
    import pandas as pd

    levels = {name: pd.CategoricalDtype(sorted(train[name].dropna().unique())) for name in category_names(train)}

    def prepare(X: "pd.DataFrame") -> "pd.DataFrame":
        columns = {name: X[name].where(X[name].isin(dtype.categories)) for name, dtype in levels.items()}
        found = X.assign(**columns).astype(levels)
        return found.set_axis([f"x{i}" for i in range(found.shape[1])], axis=1)

    return prepare


def with_missing_as_text(X: "pd.DataFrame", names: list[str]) -> "pd.DataFrame":
    """Return the table with missing categories as a level. CatBoost accepts missing numbers."""
    return X.assign(**{name: X[name].astype(object).where(X[name].notna(), "(missing)") for name in names})
