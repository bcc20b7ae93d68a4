"""Split a table into rows for training, validation and testing, the same for every model."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets.files import FOLDER, folder_of_tables, read_table
from benchmarks.datasets.registry import Dataset
from nae.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FOLDER", "Part", "Rows", "Split", "divide", "load", "split"]

TEST_SHARE = 0.2
VALIDATION_SHARE = 0.125

Rows = NDArray[np.intp]
"""Positions of rows in the table."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of a table and their targets: numbers, or codes of the sorted class labels."""

    X: "pd.DataFrame"
    y: NDArray[Any]
    weight: NDArray[Any] | None = None
    """A weight per row. If None, all rows count the same."""

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class Split:
    """The rows of a table, split into three parts."""

    dataset: Dataset
    train: Part
    validation: Part
    test: Part
    n_classes: int
    """The number of classes; 0 for numbers."""

    @property
    def all_train(self) -> Part:
        """Training and validation rows together, for models that split them themselves."""
        import pandas as pd

        parts = (self.train, self.validation)
        weights = [part.weight for part in parts]
        weight = None if any(each is None for each in weights) else np.concatenate(weights)
        return Part(pd.concat([part.X for part in parts]), np.concatenate([part.y for part in parts]), weight)


def load(dataset: Dataset, folder: Path | None = None, *, seed: int = 0) -> Split:
    """Read a table from ``folder``, or from the folder of the environment variable, and split its rows."""
    table = read_table(dataset.name, folder or folder_of_tables())
    return split(dataset, table.X, table.y, seed=seed)


def split(dataset: Dataset, X: "pd.DataFrame", y: NDArray[Any], *, seed: int = 0) -> Split:
    """Split rows, stratified by class: a fifth for testing, and an eighth of the rest for validation.

    On Housing, seed 0 gives the paper's split.
    """
    from sklearn.model_selection import train_test_split

    def draw(rows: Rows, share: float) -> list[Rows]:
        strata = y[rows] if dataset.task != "regression" else None
        found: list[Rows] = train_test_split(rows, test_size=share, random_state=seed, stratify=strata)
        return found

    rows = np.arange(len(y))
    if dataset.n_leading_train is None:
        rest, test = draw(rows, TEST_SHARE)
    elif len(rows) <= dataset.n_leading_train:
        raise DataError(f"{dataset.name} must have more than {dataset.n_leading_train:,} rows; it has {len(rows):,}.")
    else:
        rest, test = rows[: dataset.n_leading_train], rows[dataset.n_leading_train :]
    train, validation = draw(rest, VALIDATION_SHARE)
    return divide(dataset, X, y, rows=(train, validation, test))


def divide(dataset: Dataset, X: "pd.DataFrame", y: NDArray[Any], *, rows: tuple[Rows, Rows, Rows]) -> Split:
    """Return the rows for training, validation and testing by their positions."""
    n_classes = 0
    if dataset.task != "regression":
        labels, y = np.unique(y, return_inverse=True)
        n_classes = len(labels)
    train, validation, test = (Part(X.iloc[chosen].reset_index(drop=True), y[chosen]) for chosen in rows)
    return Split(dataset, train, validation, test, n_classes)
