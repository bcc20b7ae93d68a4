"""Compute scores, and the influence of every test row on them.

A score on a few thousand rows is uncertain. The influence of a row is its first-order effect on the error: the error is
approximately the mean of the influences. Two models on the same test rows differ clearly if their errors differ by more
than twice the standard error of the mean difference of their influences.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Split
from benchmarks.store import Report
from nae.quality import measure_classes, measure_numbers

__all__ = ["influence", "score", "standard_error"]


def score(report: Report, split: Split, predicted: NDArray[Any]) -> Report:
    """Return the report with the scores of its task."""
    y = split.test.y
    if split.dataset.task == "regression":
        numbers = measure_numbers(y.astype(np.float64)[:, None], predicted.astype(np.float64)[:, None])
        return replace(report, rmse=numbers["RMSE"].value)
    found = measure_classes(y.astype(np.int64), predicted)
    if split.dataset.task == "binary":
        return replace(report, auc=found["AUC"].value, log_loss=found["log loss"].value)
    return replace(report, accuracy=found["accuracy"].value, log_loss=found["log loss"].value)


def influence(split: Split, predicted: NDArray[Any]) -> NDArray[np.float32]:
    """Return the influence of every test row on the error (RMSE, 1 - AUC, 1 - accuracy), minus the mean influence."""
    y = split.test.y
    if split.dataset.task == "regression":
        squares = (predicted - y) ** 2
        found = squares / (2 * np.sqrt(squares.mean()) + 1e-300)
    elif split.dataset.task == "binary":
        found = -_placements(y == 1, predicted[:, 1])
    else:
        found = (predicted.argmax(axis=1) != y).astype(np.float64)
    return np.asarray(found - found.mean(), dtype=np.float32)


def standard_error(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    """Return the standard error of the difference of two errors on the same rows, from their influences."""
    return float(np.std(first.astype(np.float64) - second) / np.sqrt(len(first)))


def _placements(is_positive: NDArray[np.bool_], predicted: NDArray[Any]) -> NDArray[np.float64]:
    """Return the placement of each row: the share of the other class on its correct side, centred, weighted by class.

    After DeLong, DeLong and Clarke-Pearson (1988): the AUC is the mean of the placements of either class.
    """
    overall = _mid_ranks(predicted)
    found = np.empty(len(predicted))
    for chosen in (is_positive, ~is_positive):
        n_others = len(predicted) - chosen.sum()
        below = (overall[chosen] - _mid_ranks(predicted[chosen])) / n_others
        share = below if chosen is is_positive else 1 - below
        found[chosen] = (share - share.mean()) * len(predicted) / chosen.sum()
    return found


def _mid_ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the ranks from 1 on. Equal values share their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place], dtype=np.float64)
