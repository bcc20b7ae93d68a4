"""Conformalised quantile regression (Romano, Patterson, Candès 2019) with LightGBM.

Of the training rows, 80 % grow the trees of the lower and of the upper quantile, 10 % say when to stop, and with the
last 10 % both quantiles are moved apart until they hold the share of rows that is asked for. Settings of the trees are
those of the suite.
"""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Split
from benchmarks.intervals.measuring import LEVELS, Outcome
from benchmarks.models.boosting import LEARNING_RATE, PATIENCE, SUBSAMPLE, as_categories

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["measure_peer"]

_TREES = 3000
_SHARES = (0.8, 0.9)  # of the rows, where those that stop begin, and those that conformalise

Array = NDArray[np.float64]


def measure_peer(rows: Split, seed: int, threads: int, params: Mapping[str, Any]) -> Outcome:
    """Fit two models for every coverage, and measure their conformalised intervals."""
    train = rows.all_train
    prepare = as_categories(train.X)
    X, y, test = prepare(train.X), np.asarray(train.y, dtype=np.float64), prepare(rows.test.X)
    order = np.random.default_rng(seed).permutation(len(y))
    cut = np.split(order, [int(share * len(y)) for share in _SHARES])
    parts = [(X.iloc[own], y[own]) for own in cut]
    started = time.perf_counter()
    ends = [_interval(parts, test, level, {"n_jobs": threads, "random_state": seed} | dict(params)) for level in LEVELS]
    seconds = time.perf_counter() - started
    truth = rows.test.y
    return Outcome(
        coverage=[float(np.mean((low <= truth) & (truth <= high))) for low, high in ends],
        width=[float(np.mean(high - low)) for low, high in ends],
        measured=[],
        not_empty=[],
        n_test=len(truth),
        seconds=seconds,
    )


def _interval(
    parts: "list[tuple[pd.DataFrame, Array]]", test: "pd.DataFrame", level: float, params: Mapping[str, Any]
) -> tuple[Array, Array]:
    """Return the ends for the test rows; an end that crosses the other one takes its place."""
    import lightgbm

    (X, y), (X_stop, y_stop), (X_held, y_held) = parts
    predicted = []
    for alpha in ((1 - level) / 2, (1 + level) / 2):
        settings = {
            "n_estimators": _TREES,
            "learning_rate": LEARNING_RATE,
            "num_leaves": 63,
            "min_child_samples": 10,
            "subsample": SUBSAMPLE,
            "subsample_freq": 1,
            "colsample_bytree": SUBSAMPLE,
        }
        model = lightgbm.LGBMRegressor(objective="quantile", alpha=alpha, verbose=-1, **{**settings, **params})
        stop = lightgbm.early_stopping(PATIENCE, verbose=False)
        model.fit(X, y, eval_X=X_stop, eval_y=y_stop, callbacks=[stop])
        predicted.append((model.predict(X_held), model.predict(test)))
    outside = np.sort(np.maximum(predicted[0][0] - y_held, y_held - predicted[1][0]))
    rank = min(int(np.ceil((len(outside) + 1) * level)), len(outside))
    low, high = predicted[0][1] - outside[rank - 1], predicted[1][1] + outside[rank - 1]
    return np.minimum(low, high), np.maximum(low, high)
