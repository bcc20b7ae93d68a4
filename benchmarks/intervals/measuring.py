"""What is measured on one split of a table: coverage and width of our intervals or sets, and what they cost."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Split

__all__ = ["LEVELS", "Outcome", "measure_ours"]

LEVELS = (0.8, 0.9, 0.95)
_REPEATS = 5

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """What was measured of one way to make intervals; lists have an entry per coverage of :data:`LEVELS`."""

    coverage: list[float]
    """The share of test rows whose target lies in the interval, or whose class is in the set."""
    width: list[float]
    """The mean width of the intervals, or the mean number of classes in the sets."""
    measured: list[float]
    """The coverage that the model measured itself, on rows that members held out; empty if it did not."""
    not_empty: list[float]
    """The coverage of sets that are never empty; empty for numbers."""
    n_test: int
    seconds: float
    """Of the fit."""
    ratio: float | None = None
    """The time of predicting intervals, by that of predicting."""


def measure_ours(rows: Split, seed: int, threads: int, params: Mapping[str, Any]) -> Outcome:
    """Fit our model with its defaults, and measure its intervals, or its sets that may be empty."""
    from nae import NAEClassifier, NAERegressor

    kind = NAERegressor if rows.dataset.task == "regression" else NAEClassifier
    train = rows.all_train
    started = time.perf_counter()
    model = kind(random_state=seed, n_jobs=threads, **params).fit(train.X, train.y, sample_weight=train.weight)
    seconds = time.perf_counter() - started
    if rows.dataset.task == "regression":
        return _measure_intervals(model.model_, rows, seconds)
    return _measure_sets(model.model_, rows, seconds)


def _measure_intervals(model: Any, rows: Split, seconds: float) -> Outcome:
    X, y = rows.test.X, rows.test.y
    found = [model.predict_interval(X, level) for level in LEVELS]
    return Outcome(
        coverage=[float(np.mean((one.lower <= y) & (y <= one.upper))) for one in found],
        width=[float(one.width.mean()) for one in found],
        measured=[one.basis.measured for one in found],
        not_empty=[],
        n_test=len(y),
        seconds=seconds,
        ratio=_fastest(lambda: model.predict_interval(X)) / _fastest(lambda: model.predict(X)),
    )


def _measure_sets(model: Any, rows: Split, seconds: float) -> Outcome:
    X = rows.test.X
    names = {name: at for at, name in enumerate(model.classes)}
    y = np.array([names[str(label)] for label in rows.test.y.tolist()])
    found = [model.predict_set(X, level, allow_empty=True) for level in LEVELS]
    full = [model.predict_set(X, level) for level in LEVELS]
    at = np.arange(len(y)), y
    return Outcome(
        coverage=[float(one.contains[at].mean()) for one in found],
        width=[float(one.size.mean()) for one in found],
        measured=[one.basis.measured for one in found],
        not_empty=[float(one.contains[at].mean()) for one in full],
        n_test=len(y),
        seconds=seconds,
        ratio=_fastest(lambda: model.predict_set(X)) / _fastest(lambda: model.predict(X)),
    )


def _fastest(work: Callable[[], object]) -> float:
    spent = []
    for _ in range(_REPEATS):
        started = time.perf_counter()
        work()
        spent.append(time.perf_counter() - started)
    return min(spent)
