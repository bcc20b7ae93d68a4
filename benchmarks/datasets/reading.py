"""From a Parquet file to rows for training, validation and testing, the same for every model."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets.registry import Dataset
from nae.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FOLDER", "Part", "Split", "load", "split"]

FOLDER = "NAE_DATA"
TARGET = "target"
TEST_SHARE = 0.2
VALIDATION_SHARE = 0.125


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of a table and their targets: numbers, or the codes of sorted class labels."""

    X: "pd.DataFrame"
    y: NDArray[Any]

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class Split:
    """The rows of a table, divided."""

    dataset: Dataset
    train: Part
    validation: Part
    test: Part
    n_classes: int
    """How many classes the target has; 0 for numbers."""

    @property
    def all_train(self) -> Part:
        """Training and validation rows together, for models that validate by themselves."""
        import pandas as pd

        parts = (self.train, self.validation)
        return Part(pd.concat([part.X for part in parts]), np.concatenate([part.y for part in parts]))


def load(dataset: Dataset, folder: Path | None = None) -> Split:
    """Read a table from ``folder``, or from the one that the environment names, and divide its rows."""
    import pandas as pd

    path = (folder or _folder()) / f"{dataset.name}.parquet"
    if not path.exists():
        raise DataError(f"{FOLDER} must name a folder that holds {path.name}; {path.parent} does not.")
    table = pd.read_parquet(path)
    if TARGET not in table:
        raise DataError(f"{path.name} must have a column {TARGET!r}; it has {list(table.columns)[:8]}.")
    y = table.pop(TARGET).to_numpy()
    return split(dataset, table, y)


def split(dataset: Dataset, X: "pd.DataFrame", y: NDArray[Any]) -> Split:
    """Divide rows: a fifth for testing, an eighth of the rest for validation, classes in equal shares.

    On Housing this is the paper's own split.
    """
    from sklearn.model_selection import train_test_split

    n_classes = 0
    if dataset.task != "regression":
        labels, y = np.unique(y, return_inverse=True)
        n_classes = len(labels)

    def divide(rows: NDArray[np.intp], share: float) -> list[NDArray[np.intp]]:
        strata = y[rows] if n_classes else None
        found: list[NDArray[np.intp]] = train_test_split(rows, test_size=share, random_state=0, stratify=strata)
        return found

    rows = np.arange(len(y))
    if dataset.n_leading_train is None:
        rest, test = divide(rows, TEST_SHARE)
    elif len(rows) <= dataset.n_leading_train:
        raise DataError(f"{dataset.name} must have more than {dataset.n_leading_train:,} rows; it has {len(rows):,}.")
    else:
        rest, test = rows[: dataset.n_leading_train], rows[dataset.n_leading_train :]
    train, validation = divide(rest, VALIDATION_SHARE)

    def part(rows: NDArray[np.intp]) -> Part:
        return Part(X.iloc[rows].reset_index(drop=True), y[rows])

    return Split(dataset, part(train), part(validation), part(test), n_classes)


def _folder() -> Path:
    given = os.environ.get(FOLDER)
    if not given:
        raise ConfigError(f"{FOLDER} must name the folder of the suite's Parquet files; it is not set.")
    return Path(given)
