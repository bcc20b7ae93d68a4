"""Neural additive experts with their defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.datasets import Split
from benchmarks.models.protocol import Budget, Fitted
from nae.parameters import EngineName

__all__ = ["NAE"]


@dataclass(frozen=True)
class NAE:
    """Our estimators with their defaults. Members hold out rows themselves, so validation rows are training rows."""

    additivity: float | None = None
    engine: EngineName = "auto"
    modules: tuple[str, ...] = ("nae.estimators",)
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Settings beside the defaults."""

    def fit(self, split: Split, budget: Budget) -> Fitted:
        """Fit on the device of the budget. By default, this is the CPU, as for all other models."""
        from nae import NAEClassifier, NAERegressor

        estimator = NAERegressor if split.dataset.task == "regression" else NAEClassifier
        model = estimator(
            additivity=self.additivity,
            n_jobs=budget.threads,
            random_state=budget.seed,
            device=budget.device,
            engine=self.engine,
            **self.settings,
        )
        rows = split.all_train
        return Fitted(model.fit(rows.X, rows.y, sample_weight=rows.weight), split.dataset.task, lambda X: X)
