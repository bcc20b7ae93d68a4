"""The models of the suite, behind one protocol; ours and boosted trees first, slow ones last."""

from dataclasses import dataclass

from benchmarks.models.boosting import CatBoost, LightGBM, XGBoost
from benchmarks.models.ebm import EBM
from benchmarks.models.linear import Linear
from benchmarks.models.ours import NAE
from benchmarks.models.protocol import Budget, Fitted, Model
from nae.errors import ConfigError, did_you_mean

__all__ = ["MODELS", "OURS", "Budget", "Entry", "Fitted", "Model", "entry_named"]


@dataclass(frozen=True)
class Entry:
    """A model and its place in the tables."""

    name: str
    label: str
    model: Model
    is_ranked: bool = True
    """Whether it takes part in the ranking of all; variants of one model would crowd out the others."""
    is_additive: bool = False
    """Whether every feature's effect is one curve; these are ranked among themselves, too."""


OURS = "nae"

MODELS: tuple[Entry, ...] = (
    Entry(OURS, "NAE", NAE()),
    Entry("lightgbm", "LightGBM", LightGBM()),
    Entry("xgboost", "XGBoost", XGBoost()),
    Entry("catboost", "CatBoost", CatBoost()),
    Entry("lightgbm-refitted", "LightGBM, all rows", LightGBM(is_refitted=True), is_ranked=False),
    Entry("xgboost-refitted", "XGBoost, all rows", XGBoost(is_refitted=True), is_ranked=False),
    Entry("catboost-refitted", "CatBoost, all rows", CatBoost(is_refitted=True), is_ranked=False),
    Entry("nae-0.9", "NAE 0.9", NAE(additivity=0.9), is_ranked=False),
    Entry("nae-additive", "NAE additive", NAE(additivity=1.0), is_ranked=False, is_additive=True),
    Entry("linear", "linear", Linear(), is_additive=True),
    Entry("spline", "spline", Linear(has_splines=True), is_additive=True),
    Entry("ebm-additive", "EBM without pairs", EBM(has_pairs=False), is_additive=True),
    Entry("ebm", "EBM", EBM()),
)


def entry_named(name: str) -> Entry:
    """Return the model of that name."""
    for entry in MODELS:
        if entry.name == name:
            return entry
    known = [entry.name for entry in MODELS]
    raise ConfigError(f"A model must be one of {known}; got {name!r}.{did_you_mean(name, known)}")
