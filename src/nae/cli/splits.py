"""Split rows at random into training and test rows: the same seed gives the same split, stratified by class."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import AnyArray, IntArray
from nae.encoding import read_table
from nae.encoding.columns import is_missing
from nae.encoding.fingerprint import fingerprint
from nae.errors import ConfigError, DataError
from nae.tables import TableModel
from nae.tables.summary import SplitEntry

__all__ = ["Split", "describe_split", "find_test_rows", "split_rows"]

_FEWEST = 20  # with fewer rows, none are kept for testing


@dataclass(frozen=True, eq=False)
class Split:
    """The positions of the training rows and of the test rows, both ascending."""

    training: IntArray
    test: IntArray


def split_rows(target: AnyArray, *, test_size: float, seed: int, is_classes: bool) -> Split:
    """Return a split that keeps the share ``test_size`` of the rows for testing, the same share of every class."""
    if not 0 <= test_size < 1:
        raise ConfigError(f"--test-size must be in [0, 1); got {test_size:g}.")
    if len(target) < 2:
        raise DataError(f"At least 2 rows must have a target; got {len(target)}.")
    random = np.random.default_rng(seed)
    order = random.permutation(len(target))
    is_test = np.zeros(len(target), dtype=bool)
    if len(target) >= _FEWEST:
        groups = [order[target[order] == label] for label in sorted(set(target))] if is_classes else [order]
        for group in groups:
            is_test[group[: int(test_size * len(group) + 0.5)]] = True
    return Split(np.flatnonzero(~is_test), np.flatnonzero(is_test))


def describe_split(X: Any, target: AnyArray, *, test_size: float, seed: int) -> SplitEntry:
    """Return what a model file must remember so that its test rows can be found again."""
    return {"test_size": test_size, "seed": seed, "rows_sha256": fingerprint(read_table(X), target)}


def find_test_rows(model: TableModel, X: Any, target: AnyArray) -> IntArray | None:
    """Return the test rows of a model, if the table is the one it was fitted to. None if that is not known."""
    found = model.training.split
    if found is None or found["rows_sha256"] != fingerprint(read_table(X), target):
        return None
    known = np.flatnonzero(~is_missing(target))
    split = split_rows(target[known], test_size=found["test_size"], seed=found["seed"], is_classes=bool(model.classes))
    return known[split.test] if len(split.test) else None
