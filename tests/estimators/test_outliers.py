"""Outliers: a loss that is to bear a few of them does."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import nae
from nae import NAERegressor
from nae.encoding.target import robust_scale

FAST = {"n_members": 2, "random_state": 0}
SHORT = FAST | {"max_epochs": 2}


def wave(outlier: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.uniform(-3, 3, (200, 1))
    y = np.sin(X[:, 0]) + random.normal(0, 0.1, 200)
    y[7] = outlier
    return X, y, np.arange(200) != 7


@pytest.mark.parametrize("loss", ["huber", "absolute", "quantile"])
def test_one_outlier_does_not_move_the_others(loss):
    X, y, is_kept = wave(1e6)
    found = NAERegressor(loss, **FAST).fit(X, y).predict(X)
    assert np.abs(found - np.sin(X[:, 0]))[is_kept].mean() < 0.15


def test_the_spread_of_a_normal_is_its_standard_deviation():
    values = np.random.default_rng(0).normal(3, 2, 100_000)
    assert robust_scale(values, np.ones(len(values))) == pytest.approx((3, 2), rel=0.01)


def test_a_weight_of_the_spread_is_the_row_as_often():
    random = np.random.default_rng(0)
    values, weights = random.normal(size=101).round(1), random.integers(1, 5, 101)
    assert robust_scale(values, weights) == robust_scale(np.repeat(values, weights), np.ones(weights.sum()))


def test_the_threshold_of_a_file_is_delta_times_the_spread():
    X, y, _ = wave(1e3)
    model = NAERegressor("huber", huber_delta=2.0, **SHORT).fit(X, y).model_
    assert model.training.huber_threshold == (2 * robust_scale(y, np.ones(200))[1],)


def test_a_target_of_mostly_one_value_is_measured_by_its_standard_deviation():
    y = np.where(np.arange(200) % 20 == 0, 3.0, 0.0)
    model = NAERegressor("huber", huber_delta=1.0, **SHORT).fit(wave(0)[0], y).model_
    assert model.training.huber_threshold == pytest.approx((y.std(),))


@pytest.mark.parametrize("loss", ["huber", "absolute", "quantile"])
def test_a_scan_has_the_spread_of_memory(loss):
    X, y, _ = wave(1e3)
    frame = pd.DataFrame({"x": X[:, 0], "y": y, "base": X[:, 0] / 10, "weight": 1.0 + (X[:, 0] > 0)})
    given = NAERegressor(loss, **SHORT).fit(frame[["x"]], y, sample_weight=frame["weight"], offset=frame["base"])
    parts = ds.dataset(pa.Table.from_pandas(frame))
    found = NAERegressor(loss, **SHORT).fit(nae.scan(parts), "y", sample_weight="weight", offset="base")
    np.testing.assert_array_equal(
        found.predict(frame[["x"]], offset=frame["base"]), given.predict(frame[["x"]], offset=frame["base"])
    )
    assert found.model_.training.huber_threshold == given.model_.training.huber_threshold


def test_a_scan_in_parts_has_the_spread_of_all_rows():
    X, y, _ = wave(1e3)
    table = pa.table({"x": X[:, 0], "y": y})
    found = NAERegressor("huber", **SHORT).fit(nae.scan(ds.dataset(table), block_rows=60), "y")
    assert found.model_.training.huber_threshold == (1.35 * robust_scale(y, np.ones(200))[1],)
