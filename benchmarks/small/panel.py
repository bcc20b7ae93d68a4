"""The panel of small tables: those in scikit-learn, samples of the suite's tables, and simulations."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.datasets import Dataset, Split, Task, folder_of_tables
from benchmarks.datasets.files import read_table
from benchmarks.datasets.reading import divide

__all__ = ["CASES", "PANEL", "SIZES", "Case", "draw"]

MOST_TEST_ROWS = 2_000

Table = tuple[pd.DataFrame, NDArray[Any]]


@dataclass(frozen=True)
class Case:
    """A table, and the number of training rows. At most 2,000 of the other rows are for testing."""

    name: str
    task: Task
    n_train: int
    read: Callable[[int], Table]
    """The table by the number of the draw. Real tables are the same for all draws."""

    @property
    def label(self) -> str:
        return f"{self.name}, {self.n_train} rows"


def _bundled(name: str) -> Callable[[int], Table]:
    @cache
    def read() -> Table:
        from sklearn import datasets

        found = getattr(datasets, f"load_{name}")(as_frame=True)
        return found.data, found.target.to_numpy()

    return lambda _: read()


def _stored(name: str) -> Callable[[int], Table]:
    @cache
    def read() -> Table:
        table = read_table(name, folder_of_tables())
        return table.X, table.y

    return lambda _: read()


def _simulated(
    target: Callable[[NDArray[np.float64], np.random.Generator], NDArray[Any]], *, n_features: int, n_rows: int
) -> Callable[[int], Table]:
    def read(seed: int) -> Table:
        random = np.random.default_rng([seed, n_features, n_rows])
        X = random.standard_normal((n_rows, n_features))
        return pd.DataFrame(X, columns=[f"x{i}" for i in range(n_features)]), target(X, random)

    return read


def _coin(odds: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int64]:
    return (random.uniform(size=len(odds)) < 1 / (1 + np.exp(-odds))).astype(np.int64)


def _noise(X: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    return random.standard_normal(len(X))


def _noisy_coin(X: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int64]:
    return _coin(np.full(len(X), -0.5), random)


def _line(X: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    return X[:, 0] - 0.5 * X[:, 1] + 0.25 * X[:, 2] + random.standard_normal(len(X))


def _one_of_three(X: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int64]:
    return _coin(X[:, 0], random)


def _curves(X: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    return np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + np.abs(X[:, 2]) + 0.5 * random.standard_normal(len(X))


def _products(X: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    return X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * random.standard_normal(len(X))


def _steps(X: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int64]:
    return _coin(3.0 * (X[:, 0] > 0) - 2.0 * (np.abs(X[:, 1]) > 1), random)


def _simulation(name: str, target: Any, n_train: int, *, n_features: int, task: Task = "regression") -> Case:
    read = _simulated(target, n_features=n_features, n_rows=n_train + MOST_TEST_ROWS)
    return Case(name, task, n_train, read)


PANEL: tuple[Case, ...] = (
    Case("Diabetes", "regression", 60, _bundled("diabetes")),
    Case("Diabetes", "regression", 300, _bundled("diabetes")),
    Case("Breast cancer", "binary", 60, _bundled("breast_cancer")),
    Case("Breast cancer", "binary", 300, _bundled("breast_cancer")),
    Case("Wine cultivars", "multiclass", 90, _bundled("wine")),
    Case("Iris", "multiclass", 75, _bundled("iris")),
    Case("Concrete", "regression", 100, _stored("concrete")),
    Case("Concrete", "regression", 400, _stored("concrete")),
    Case("Telco churn", "binary", 150, _stored("telco_churn")),
    Case("Telco churn", "binary", 500, _stored("telco_churn")),
    Case("COMPAS", "binary", 256, _stored("compas")),
    Case("Housing", "regression", 200, _stored("housing")),
    Case("Bike (hours)", "regression", 400, _stored("bike_hour")),
    Case("Ames", "regression", 250, _stored("ames")),
    Case("Wine quality", "regression", 300, _stored("wine_quality")),
    Case("Magic", "binary", 200, _stored("magic")),
    Case("Income", "binary", 400, _stored("income")),
    Case("Diamonds", "regression", 120, _stored("diamonds")),
    _simulation("noise", _noise, 60, n_features=5),
    _simulation("coin", _noisy_coin, 100, n_features=5, task="binary"),
    _simulation("line", _line, 40, n_features=6),
    _simulation("one of three", _one_of_three, 256, n_features=3, task="binary"),
    _simulation("curves", _curves, 200, n_features=6),
    _simulation("products", _products, 300, n_features=5),
    _simulation("steps", _steps, 250, n_features=4, task="binary"),
)
"""The tables of 40 to 500 rows, with and without signal."""

SIZES: tuple[Case, ...] = tuple(
    Case(name, task, n, read)
    for n in (20, 30, 45, 70, 100, 140, 190, 240, 250, 256, 257, 265, 300, 350, 383, 384, 400, 450, 520, 600)
    for name, task, read in (
        ("one of three", "binary", _simulated(_one_of_three, n_features=3, n_rows=2600)),
        ("Telco churn", "binary", _stored("telco_churn")),
        ("line", "regression", _simulated(_line, n_features=6, n_rows=2600)),
        ("Concrete", "regression", _stored("concrete")),
    )
)
"""The same tables at a series of sizes. There must be no jump where the settings change."""


CASES: dict[str, Case] = {case.label: case for case in (*SIZES, *PANEL)}
"""All cases by label. Two of the sizes are also on the panel."""


def draw(case: Case, seed: int) -> Split:
    """Return a draw: training rows, an eighth of which are for models that need validation rows, and test rows."""
    from sklearn.model_selection import train_test_split

    X, y = case.read(seed)
    is_class = case.task != "regression"
    rows = np.random.default_rng([seed, case.n_train]).permutation(len(y))
    order = rows if not is_class else _with_every_class(rows, y)
    rest, test = order[: case.n_train], order[case.n_train :][:MOST_TEST_ROWS]
    n_validation = max(len(np.unique(y)) if is_class else 2, round(case.n_train / 8))
    counts = np.unique(y[rest], return_counts=True)[1] if is_class else np.array([2])
    strata = y[rest] if is_class and counts.min() > 1 else None
    train, validation = train_test_split(rest, test_size=n_validation, random_state=seed, stratify=strata)
    return divide(Dataset(case.name, case.task, case.label), X, y, rows=(train, validation, test))


def _with_every_class(rows: NDArray[np.intp], y: NDArray[Any]) -> NDArray[np.intp]:
    """Return the rows with two of each class first, so that all classes are in the training rows."""
    first = np.concatenate([rows[y[rows] == label][:2] for label in np.unique(y)])
    return np.concatenate([first, rows[~np.isin(rows, first)]])
