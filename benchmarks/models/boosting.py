"""Boosted trees: many trees, small steps, early stopping on the validation rows, native categories.

The three libraries share the learning rate, the patience, and the share of rows and columns per tree. Other settings
are close to the recommendations of each library. The validation rows decide when to stop. With ``is_refitted``, as many
trees are then grown on all rows, as one would do for a final model. ``settings`` replace the settings given here, or
add others, such as constraints.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from benchmarks.datasets import Split
from benchmarks.models.protocol import Budget, Fitted

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CatBoost", "LightGBM", "XGBoost", "as_categories", "category_names", "with_missing_as_text"]

LEARNING_RATE = 0.03
PATIENCE = 100
SUBSAMPLE = 0.8


@dataclass(frozen=True)
class XGBoost:
    """XGBoost with histograms and native categories."""

    is_refitted: bool = False
    modules: tuple[str, ...] = ("xgboost",)
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def fit(self, split: Split, budget: Budget) -> Fitted:
        """Fit until validation stops improving."""
        from xgboost import XGBClassifier, XGBRegressor

        settings = {
            "learning_rate": LEARNING_RATE,
            "max_depth": 7,
            "subsample": SUBSAMPLE,
            "colsample_bytree": SUBSAMPLE,
            "tree_method": "hist",
            "enable_categorical": True,
            "n_jobs": budget.threads,
            "random_state": budget.seed,
        }
        kind = XGBRegressor if split.dataset.task == "regression" else XGBClassifier
        make = partial(kind, **{**settings, **self.settings})
        prepare = as_categories(split.train.X)
        model = make(n_estimators=budget.n_trees, early_stopping_rounds=PATIENCE)
        model.fit(
            prepare(split.train.X),
            split.train.y,
            sample_weight=split.train.weight,
            eval_set=[(prepare(split.validation.X), split.validation.y)],
            sample_weight_eval_set=_listed(split.validation.weight),
            verbose=False,
        )
        if self.is_refitted:
            rows = split.all_train
            again = make(n_estimators=model.best_iteration + 1)
            model = again.fit(prepare(rows.X), rows.y, sample_weight=rows.weight)
        return Fitted(model, split.dataset.task, prepare)


@dataclass(frozen=True)
class LightGBM:
    """LightGBM with native categories."""

    is_refitted: bool = False
    modules: tuple[str, ...] = ("lightgbm",)
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def fit(self, split: Split, budget: Budget) -> Fitted:
        """Fit until validation stops improving."""
        import lightgbm

        settings = {
            "learning_rate": LEARNING_RATE,
            "num_leaves": 63,
            "min_child_samples": 10,
            "subsample": SUBSAMPLE,
            "subsample_freq": 1,
            "colsample_bytree": SUBSAMPLE,
            "n_jobs": budget.threads,
            "random_state": budget.seed,
            "verbose": -1,
        }
        kind = lightgbm.LGBMRegressor if split.dataset.task == "regression" else lightgbm.LGBMClassifier
        make = partial(kind, **{**settings, **self.settings})
        prepare = as_categories(split.train.X)
        model = make(n_estimators=budget.n_trees).fit(
            prepare(split.train.X),
            split.train.y,
            sample_weight=split.train.weight,
            eval_X=prepare(split.validation.X),
            eval_y=split.validation.y,
            eval_sample_weight=_listed(split.validation.weight),
            callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
        )
        if self.is_refitted:
            rows = split.all_train
            again = make(n_estimators=model.best_iteration_)
            model = again.fit(prepare(rows.X), rows.y, sample_weight=rows.weight)
        return Fitted(model, split.dataset.task, prepare)


@dataclass(frozen=True)
class CatBoost:
    """CatBoost with its ordered encoding of categories."""

    is_refitted: bool = False
    modules: tuple[str, ...] = ("catboost",)
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def fit(self, split: Split, budget: Budget) -> Fitted:
        """Fit until validation stops improving."""
        from catboost import CatBoostClassifier, CatBoostRegressor, Pool

        names = category_names(split.train.X)

        def prepare(X: "pd.DataFrame", y: Any = None, weight: Any = None) -> Any:
            return Pool(with_missing_as_text(X, names), y, cat_features=names, weight=weight)

        settings = {
            "learning_rate": LEARNING_RATE,
            "depth": 8,
            "thread_count": budget.threads,
            "random_seed": budget.seed,
            "allow_writing_files": False,
            "verbose": False,
        }
        kind = CatBoostRegressor if split.dataset.task == "regression" else CatBoostClassifier
        make = partial(kind, **{**settings, **self.settings})
        train, validation = (prepare(part.X, part.y, part.weight) for part in (split.train, split.validation))
        model = make(iterations=budget.n_trees * 2 // 3, early_stopping_rounds=PATIENCE)
        model.fit(train, eval_set=validation, use_best_model=True)
        if self.is_refitted:
            rows = split.all_train
            model = make(iterations=model.tree_count_).fit(prepare(rows.X, rows.y, rows.weight))
        return Fitted(model, split.dataset.task, prepare)


def category_names(X: "pd.DataFrame") -> list[str]:
    """Return the columns that hold text."""
    return [str(name) for name in X.columns if X[name].dtype.kind not in "biuf"]


def _listed(weight: NDArray[Any] | None) -> list[NDArray[Any]] | None:
    """Return the weights of the only validation set as a list of one."""
    return None if weight is None else [weight]


def as_categories(train: "pd.DataFrame") -> Callable[["pd.DataFrame"], Any]:
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
