"""What is measured on one split of a table: coverage and width of our intervals or sets, and what they cost."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Split

__all__ = ["LEVELS", "Outcome", "Times", "measure_ours", "measure_times"]

LEVELS = (0.8, 0.9, 0.95)
_REPEATS = 15
_FEW_EPOCHS = 2

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


@dataclass(frozen=True)
class Times:
    """Milliseconds of processor time for all test rows, the least of 15 calls."""

    predicting: float
    doubting: float
    """Of predicting intervals, or sets."""
    n_rows: int

    @property
    def ratio(self) -> float:
        """How many times as long intervals take as predictions."""
        return self.doubting / self.predicting


def measure_ours(rows: Split, seed: int, threads: int, params: Mapping[str, Any]) -> Outcome:
    """Fit our model with its defaults, and measure its intervals, or its sets that may be empty."""
    started = time.perf_counter()
    model = _fit(rows, {"random_state": seed, "n_jobs": threads} | dict(params))
    seconds = time.perf_counter() - started
    return (_measure_sets if model.classes else _measure_intervals)(model, rows, seconds)


def measure_times(rows: Split, seed: int, threads: int, params: Mapping[str, Any]) -> Times:
    """Fit our model for two epochs, which makes tables of the same sizes, and measure how long it takes to answer."""
    model = _fit(rows, {"random_state": seed, "n_jobs": threads, "max_epochs": _FEW_EPOCHS} | dict(params))
    X = rows.test.X
    ask = model.predict_set if model.classes else model.predict_interval
    calls: tuple[Callable[[], object], ...] = lambda: model.predict(X), lambda: ask(X)
    spent = [[_milliseconds(call) for call in calls] for _ in range(_REPEATS)]
    predicting, doubting = (min(times) for times in zip(*spent, strict=True))
    return Times(predicting, doubting, len(X))


def _fit(rows: Split, settings: Mapping[str, Any]) -> Any:
    from nae import NAEClassifier, NAERegressor

    kind = NAERegressor if rows.dataset.task == "regression" else NAEClassifier
    train = rows.all_train
    return kind(**settings).fit(train.X, train.y, sample_weight=train.weight).model_


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
    )


def _milliseconds(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return 1000 * (time.process_time() - started)
