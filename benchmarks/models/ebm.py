"""Explainable boosting machines of InterpretML."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.datasets import Split
from benchmarks.models.protocol import Budget, Fitted

__all__ = ["EBM"]


@dataclass(frozen=True)
class EBM:
    """EBM with its defaults, or without pairs. It splits its own validation rows, so ours are training rows."""

    has_pairs: bool = True
    modules: tuple[str, ...] = ("interpret.glassbox",)
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Settings beside the defaults."""

    def fit(self, split: Split, budget: Budget) -> Fitted:
        """Fit. EBM chooses the number of pairs."""
        from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

        is_regression = split.dataset.task == "regression"
        estimator = ExplainableBoostingRegressor if is_regression else ExplainableBoostingClassifier
        chosen = {} if self.has_pairs else {"interactions": 0}
        model = estimator(n_jobs=budget.threads, random_state=budget.seed, **{**chosen, **self.settings})
        rows = split.all_train
        with warnings.catch_warnings():
            # EBM warns that its pictures do not show missing values, but no pictures are drawn here.
            warnings.filterwarnings("ignore", message="Missing values detected")
            model.fit(rows.X, rows.y, sample_weight=rows.weight)
        return Fitted(model, split.dataset.task, lambda X: X)
