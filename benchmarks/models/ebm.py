"""Explainable boosting machines of InterpretML."""

import warnings
from dataclasses import dataclass

from benchmarks.datasets import Split
from benchmarks.models.protocol import Budget, Fitted

__all__ = ["EBM"]


@dataclass(frozen=True)
class EBM:
    """EBM with its defaults, or without pairs. It splits its own validation rows, so ours are training rows."""

    has_pairs: bool = True
    max_rounds: int | None = None
    """Largest number of boosting rounds. If None, EBM's default."""
    modules: tuple[str, ...] = ("interpret.glassbox",)

    def fit(self, split: Split, budget: Budget) -> Fitted:
        """Fit. EBM chooses the number of pairs."""
        from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

        is_regression = split.dataset.task == "regression"
        estimator = ExplainableBoostingRegressor if is_regression else ExplainableBoostingClassifier
        chosen = {} if self.has_pairs else {"interactions": 0}
        if self.max_rounds is not None:
            chosen["max_rounds"] = self.max_rounds
        model = estimator(n_jobs=budget.threads, random_state=budget.seed, **chosen)
        rows = split.all_train
        with warnings.catch_warnings():
            # EBM warns that its pictures do not show missing values, but no pictures are drawn here.
            warnings.filterwarnings("ignore", message="Missing values detected")
            model.fit(rows.X, rows.y)
        return Fitted(model, split.dataset.task, lambda X: X)
