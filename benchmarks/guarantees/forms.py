"""Whether monotone features should change others: validation errors of a free fit and of both forms of the constraint.

Rows are split at random, several times; the suite's test rows are not among them. Two tables are simulations in which
monotone features interact with each other.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import nae
from benchmarks.datasets import dataset_named, load
from benchmarks.machine import describe
from benchmarks.tables import markdown_table
from nae._typing import Array

__all__ = ["add_command"]

TRAIN_SHARE = 0.75


@dataclass(frozen=True)
class Case:
    """A table, the directions of its features, and how many rows to train on."""

    name: str
    directions: Mapping[str, int]
    n_rows: int | None = None


CASES = (
    Case("product", {"x0": 1, "x1": 1, "x2": 1, "x3": 1}, 2000),
    Case("corner", {"x0": 1, "x1": 1, "x2": 1, "x3": 1, "x4": -1}, 2000),
    Case("housing", {"MedInc": 1, "HouseAge": 1, "AveOccup": -1}),
    Case("concrete", {"Cement": 1, "Age": 1, "Water": -1}),
    Case("bike_hour", {"temp": 1, "atemp": 1, "hum": -1, "windspeed": -1}, 8000),
)
SIMULATED: dict[str, Callable[[Array], Array]] = {
    "product": lambda x: 5 * x[0] * x[1] + 2 * np.sqrt(x[2]) * (1 + (x[3] > 0.5)) + np.sin(6 * x[4]) * x[5],
    "corner": lambda x: 8 * np.maximum(x[0] + x[1] - 1, 0) * x[2] + 3 * (x[3] > x[4]) + x[5] * x[0],
}
FORMS: dict[str, Callable[[Mapping[str, int]], dict[str, Any]]] = {
    "free": lambda _: {},
    "changes others": lambda ways: {"monotonic_cst": dict(ways)},
    "changes nobody": lambda ways: {
        "monotonic_cst": dict(ways),
        "interaction_cst": {name: {"changes": []} for name in ways},
    },
}


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand to a command line."""
    parser = commands.add_parser("forms", help="may monotone features change others?", description=__doc__)
    parser.add_argument("--tables", default=",".join(case.name for case in CASES), help="comma-separated names")
    parser.add_argument("--splits", type=int, default=3, help="number of splits")
    parser.set_defaults(run=run_forms)


def run_forms(given: argparse.Namespace) -> None:
    """Print a line for every table and form."""
    chosen = given.tables.split(",")
    rows = [row for case in CASES if case.name in chosen for row in _rows(case, given.splits)]
    print(describe())
    print(markdown_table(["table", "form", "RMSE", "of the free fit", "seconds"], rows))


def _rows(case: Case, n_splits: int) -> Iterable[list[str]]:
    X, y = _read(case.name)
    free = None
    for form, parameters in FORMS.items():
        found = [_measure(X, y, case, parameters(case.directions), seed) for seed in range(n_splits)]
        error, seconds = (float(np.mean(each)) for each in zip(*found, strict=True))
        free = error if free is None else free
        yield [case.name, form, f"{error:.4g}", f"{error / free:.3f}", f"{seconds:.1f}"]


def _read(name: str) -> tuple[Any, Array]:
    import pandas as pd

    if name in SIMULATED:
        random = np.random.default_rng(0)
        X = random.uniform(size=(12_000, 6))
        y = SIMULATED[name](X.T) + 0.4 * random.normal(size=len(X))
        return pd.DataFrame(X, columns=[f"x{i}" for i in range(6)]), y
    rows = load(dataset_named(name)).all_train
    return rows.X, np.log1p(rows.y) if name == "bike_hour" else rows.y


def _measure(X: Any, y: Array, case: Case, parameters: dict[str, Any], seed: int) -> tuple[float, float]:
    order = np.random.default_rng(seed).permutation(len(y))
    n = case.n_rows or round(TRAIN_SHARE * len(y))
    train, rest = order[:n], order[n:]
    begin = time.perf_counter()
    model = nae.NAERegressor(random_state=seed, **parameters).fit(X.iloc[train], y[train])
    seconds = time.perf_counter() - begin
    return float(np.sqrt(np.mean((model.predict(X.iloc[rest]) - y[rest]) ** 2))), seconds
