"""Small tables with everything the suite meets: numbers, categories, missing values, any task."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.datasets import Dataset, Split, Task, split

__all__ = ["make_split", "make_table", "write_table"]


def make_table(task: Task, n_rows: int = 400) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table whose target follows a curve, a category and a product."""
    random = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "size": random.normal(size=n_rows),
            "age [years]": random.integers(0, 60, n_rows).astype(float),
            "grade": random.integers(1, 5, n_rows).astype(float),
            "colour": random.choice(["red", "green", "blue"], n_rows),
        }
    )
    effect = X["colour"].map({"red": -1.0, "green": 0.0, "blue": 1.0}).to_numpy()
    signal = 2 * np.sin(2 * X["size"]) + effect * X["size"] + effect + 0.02 * X["age [years]"]
    signal = signal.to_numpy() + 0.1 * random.normal(size=n_rows)
    X.loc[random.random(n_rows) < 0.05, "size"] = np.nan
    X.loc[random.random(n_rows) < 0.05, "colour"] = None
    if task == "regression":
        return X, signal
    if task == "binary":
        return X, (signal > np.median(signal)).astype(np.int64)
    labels: np.ndarray = np.array(["a", "b", "c"])[np.digitize(signal, np.quantile(signal, [1 / 3, 2 / 3]))]
    return X, labels


def make_split(task: Task, n_rows: int = 400) -> Split:
    """Return a generated table with its rows divided."""
    return split(Dataset("generated", task, "Generated"), *make_table(task, n_rows))


def write_table(folder: Path, name: str, table: tuple[pd.DataFrame, Any]) -> None:
    """Write a table as the suite reads it."""
    X, y = table
    X.assign(target=y).to_parquet(folder / f"{name}.parquet")
