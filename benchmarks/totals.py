"""Check whether totals balance: ``NAE_DATA=folder python -m benchmarks.totals``.

It prints the ratio of predicted to actual totals for models with the default settings, before and after the intercept
is balanced, on the rows of the fit and on other rows; and the mean deviance (for classes, the log loss) on the other
rows.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, mean_tweedie_deviance

from nae import NAEClassifier, NAERegressor, TableModel
from nae._typing import AnyArray, Array

N_SEEDS = 3
POWER = {"poisson": 1.0, "tweedie": 1.5, "gamma": 2.0}


@dataclass(frozen=True, eq=False)
class Case:
    """A table whose first rows are fitted, and the estimator."""

    name: str
    loss: str
    X: pd.DataFrame
    y: AnyArray
    offset: Array
    n_rows: int
    class_weight: str | None = None

    def rows(self, *, is_fit: bool) -> tuple[pd.DataFrame, AnyArray, Array]:
        """Return the rows of the fit, or the others."""
        part = slice(self.n_rows) if is_fit else slice(self.n_rows, None)
        return self.X[part], self.y[part], self.offset[part]


def main() -> None:
    """Print a table row per case and seed."""
    print("| | seed | fitted rows, before | after | other rows, before | after | their deviance, before | after |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for seed in range(N_SEEDS):
        for case in _cases(seed):
            figures = " | ".join(f"{one:.4f}" for one in _measure(case, seed))
            print(f"| {case.name} | {seed} | {figures} |", flush=True)


def _cases(seed: int) -> Iterator[Case]:
    path = Path(os.environ["NAE_DATA"])
    motor = pd.read_parquet(path / "bemtpl97.parquet").sample(frac=1, random_state=seed)
    X, exposure, count = motor.drop(columns=["exposure", "target"]), motor["exposure"].to_numpy(), motor["target"]
    for n_rows in (8_000, 32_000):
        name = f"Poisson with exposure, {n_rows:,} motor policies"
        yield Case(name, "poisson", X, count.to_numpy(), np.log(exposure), n_rows)
    claimed, nothing = (count > 0).to_numpy().astype(int), np.zeros(len(X))
    yield Case("logistic, 8,000 motor policies", "logistic", X, claimed, nothing, 8_000)
    yield Case("the same, balanced classes", "logistic", X, claimed, nothing, 8_000, "balanced")
    for loss in ("tweedie", "gamma"):
        yield _simulated(loss, seed)


def _simulated(loss: str, seed: int) -> Case:
    n_rows, random = 100_000, np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 8))
    mean = np.exp(0.4 * X[:, 0] + 0.3 * X[:, 1] * (X[:, 2] > 0) - 0.3 * np.abs(X[:, 3]))
    # Sums of a random number of exponential claims, at least one if the loss does not allow zeros.
    count = random.poisson(0.3, n_rows) if loss == "tweedie" else np.ones(n_rows)
    size = mean * random.gamma(np.maximum(count, 1)) * (count > 0)
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(8)])
    return Case(f"{loss.capitalize()}, 8,000 simulated", loss, table, size, np.zeros(n_rows), 8_000)


def _measure(case: Case, seed: int) -> list[float]:
    own, others = case.rows(is_fit=True), case.rows(is_fit=False)
    model = _fit(case, own, seed).model_
    moved = np.array(model.training.intercept_shift)
    before = replace(model, intercept=model.intercept - moved)
    found = [_ratio(one, *rows) for rows in (own, others) for one in (before, model)]
    return [*found, *(_deviance(case, one, *others) for one in (before, model))]


def _fit(case: Case, rows: Any, seed: int) -> NAERegressor | NAEClassifier:
    X, y, offset = rows
    if case.loss == "logistic":
        return NAEClassifier(class_weight=case.class_weight, random_state=seed).fit(X, y)
    return NAERegressor(case.loss, random_state=seed).fit(X, y, offset=offset)


def _mean(model: TableModel, X: pd.DataFrame, offset: Array) -> Array:
    return model.predict_proba(X)[:, 1] if model.classes else model.predict(X, offset=offset)


def _ratio(model: TableModel, X: pd.DataFrame, y: AnyArray, offset: Array) -> float:
    return float(_mean(model, X, offset).sum() / y.sum())


def _deviance(case: Case, model: TableModel, X: pd.DataFrame, y: AnyArray, offset: Array) -> float:
    mean = _mean(model, X, offset)
    if case.loss == "logistic":
        return float(log_loss(y, mean))
    return float(mean_tweedie_deviance(y, mean, power=POWER[case.loss]))


if __name__ == "__main__":
    main()
