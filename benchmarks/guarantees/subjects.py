"""The models that promise directions, and how to read the score that each promise is about.

A score is what a model adds up: the prediction itself, the log-odds, or the logarithm of a rate.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Split
from benchmarks.guarantees.cases import LEVEL, Case, Loss
from benchmarks.models import Budget, Fitted, Model
from benchmarks.models.boosting import CatBoost, LightGBM, XGBoost
from benchmarks.models.ebm import EBM
from benchmarks.models.ours import NAE
from nae.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["OURS", "SUBJECTS", "Subject", "Use", "subject_named", "subjects_for"]

Settings = dict[str, Any]
Use = Literal["attacks", "scores"]
BOTH: frozenset[Use] = frozenset({"attacks", "scores"})
Scores = Callable[[Fitted, "pd.DataFrame"], NDArray[Any]]


@dataclass(frozen=True)
class Subject:
    """A model, its settings for losses and for directions, and its score."""

    name: str
    label: str
    make: Callable[[Settings], Model]
    losses: Mapping[Loss, Settings]
    """The settings for every loss that the model has."""
    promise: Callable[[Case, list[str]], Settings]
    """The settings for a case, given the names of all columns."""
    score: Scores
    repair: Callable[[Case, Fitted], None] | None = None
    """What makes the fitted model keep the promise, if not its fit."""
    family: str = ""
    """The name of the form of the same library whose scores are measured; empty if it is this one."""
    for_attacks: Mapping[str, Any] = field(default_factory=dict)
    """Settings that make a model cheaper that is attacked. Its scores are measured without them."""
    uses: frozenset[Use] = frozenset({"attacks"})
    """The commands that fit the model by default."""

    @property
    def is_ours(self) -> bool:
        """Whether the model is of this library."""
        return OURS in (self.name, self.family)

    def fit(
        self, case: Case, split: Split, budget: Budget, *, is_free: bool = False, is_attacked: bool = False
    ) -> Fitted:
        """Fit with the promises of a case, or without."""
        if case.loss not in self.losses:
            raise ConfigError(f"has no {case.loss} loss")
        promised = {} if is_free else self.promise(case, [str(name) for name in split.train.X.columns])
        cheaper = self.for_attacks if is_attacked else {}
        fitted = self.make({**self.losses[case.loss], **promised, **cheaper}).fit(split, budget)
        if self.repair is not None and not is_free:
            self.repair(case, fitted)
        return fitted

    def scores(self, fitted: Fitted, X: "pd.DataFrame") -> NDArray[np.float64]:
        """Return the score of every row."""
        return np.asarray(self.score(fitted, X), dtype=np.float64).reshape(-1)


def _by_position(case: Case, names: list[str]) -> list[int]:
    return [case.signs.get(name, 0) for name in names]


def _for_trees(case: Case, names: list[str]) -> Settings:
    return {"monotone_constraints": _by_position(case, names)}


def _for_lightgbm(method: str) -> Callable[[Case, list[str]], Settings]:
    return lambda case, names: {**_for_trees(case, names), "monotone_constraints_method": method}


def _for_xgboost(case: Case, names: list[str]) -> Settings:
    return {"monotone_constraints": tuple(_by_position(case, names))}


def _monotonize(case: Case, fitted: Fitted) -> None:
    for name, sign in case.signs.items():
        fitted.estimator.monotonize(name, increasing=sign > 0)


def _score_of_ours(fitted: Fitted, X: "pd.DataFrame") -> NDArray[Any]:
    return np.asarray(fitted.estimator.model_.decision_function(fitted.prepare(X)))


def _score_of_lightgbm(fitted: Fitted, X: "pd.DataFrame") -> NDArray[Any]:
    return np.asarray(fitted.estimator.predict(fitted.prepare(X), raw_score=True))


def _score_of_xgboost(fitted: Fitted, X: "pd.DataFrame") -> NDArray[Any]:
    return np.asarray(fitted.estimator.predict(fitted.prepare(X), output_margin=True))


def _score_of_catboost(fitted: Fitted, X: "pd.DataFrame") -> NDArray[Any]:
    return np.asarray(fitted.estimator.predict(fitted.prepare(X), prediction_type="RawFormulaVal"))


def _score_of_ebm(fitted: Fitted, X: "pd.DataFrame") -> NDArray[Any]:
    if fitted.task != "regression":
        return np.asarray(fitted.estimator.decision_function(X))
    found = np.asarray(fitted.estimator.predict(X))
    return np.log(found) if fitted.estimator.link_ == "log" else found


_OURS: Mapping[Loss, Settings] = {
    "default": {},
    "quantile": {"loss": "quantile", "quantile": LEVEL},
    "poisson": {"loss": "poisson"},
}
_LIGHTGBM: Mapping[Loss, Settings] = {
    "default": {},
    "quantile": {"objective": "quantile", "alpha": LEVEL},
    "poisson": {"objective": "poisson"},
}
_XGBOOST: Mapping[Loss, Settings] = {
    "default": {},
    "quantile": {"objective": "reg:quantileerror", "quantile_alpha": LEVEL},
    "poisson": {"objective": "count:poisson"},
}
_CATBOOST: Mapping[Loss, Settings] = {
    "default": {},
    "quantile": {"loss_function": f"Quantile:alpha={LEVEL}"},
    "poisson": {"loss_function": "Poisson"},
}
_EBM: Mapping[Loss, Settings] = {"default": {}, "poisson": {"objective": "poisson_deviance"}}

_FEW_BAGS = {"outer_bags": 4}

OURS = "nae"

SUBJECTS: tuple[Subject, ...] = (
    Subject(
        OURS,
        "NAE",
        lambda settings: NAE(settings=settings),
        _OURS,
        lambda case, _: {"monotonic_cst": dict(case.signs)},
        _score_of_ours,
        uses=BOTH,
    ),
    Subject(
        "nae-free",
        "NAE, nothing promised",
        lambda settings: NAE(settings=settings),
        _OURS,
        lambda case, _: {},
        _score_of_ours,
        family=OURS,
    ),
    Subject(
        "lightgbm-basic",
        "LightGBM, basic",
        lambda settings: LightGBM(settings=settings),
        _LIGHTGBM,
        _for_lightgbm("basic"),
        _score_of_lightgbm,
        family="lightgbm",
    ),
    Subject(
        "lightgbm",
        "LightGBM, advanced",
        lambda settings: LightGBM(settings=settings),
        _LIGHTGBM,
        _for_lightgbm("advanced"),
        _score_of_lightgbm,
        uses=BOTH,
    ),
    Subject(
        "lightgbm-all",
        "LightGBM, all rows",
        lambda settings: LightGBM(is_refitted=True, settings=settings),
        _LIGHTGBM,
        _for_lightgbm("advanced"),
        _score_of_lightgbm,
        family="lightgbm",
        uses=frozenset({"scores"}),
    ),
    Subject(
        "xgboost",
        "XGBoost",
        lambda settings: XGBoost(settings=settings),
        _XGBOOST,
        _for_xgboost,
        _score_of_xgboost,
        uses=BOTH,
    ),
    Subject(
        "xgboost-all",
        "XGBoost, all rows",
        lambda settings: XGBoost(is_refitted=True, settings=settings),
        _XGBOOST,
        _for_xgboost,
        _score_of_xgboost,
        family="xgboost",
        uses=frozenset({"scores"}),
    ),
    Subject(
        "catboost",
        "CatBoost",
        lambda settings: CatBoost(settings=settings),
        _CATBOOST,
        _for_trees,
        _score_of_catboost,
        uses=BOTH,
    ),
    Subject(
        "ebm-monotonize",
        "EBM, monotonize",
        lambda settings: EBM(settings=settings),
        _EBM,
        lambda case, names: {},
        _score_of_ebm,
        repair=_monotonize,
        family="ebm",
        for_attacks=_FEW_BAGS,
    ),
    Subject(
        "ebm",
        "EBM, in fit",
        lambda settings: EBM(settings=settings),
        _EBM,
        _for_trees,
        _score_of_ebm,
        for_attacks=_FEW_BAGS,
    ),
)


def subjects_for(use: Use) -> tuple[Subject, ...]:
    """Return the models that a command fits by default."""
    return tuple(each for each in SUBJECTS if use in each.uses)


def subject_named(name: str) -> Subject:
    """Return the model with the given name."""
    for subject in SUBJECTS:
        if subject.name == name:
            return subject
    known = [subject.name for subject in SUBJECTS]
    raise ConfigError(f"A model must be one of {known}; got {name!r}.{did_you_mean(name, known)}")
