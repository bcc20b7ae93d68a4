"""Extreme scales: what is learned does not depend on the unit of the target, nor on what all offsets share."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import nae
from nae import NAERegressor
from nae.encoding.target import TargetMoments
from nae.errors import DataError, NAEWarning

FAST = {"n_members": 2, "n_experts": 2, "hidden_dim": 16, "max_epochs": 60, "random_state": 0}
N_ROWS = 400  # more than are learned in double precision


@pytest.fixture(scope="module")
def X() -> np.ndarray:  # noqa: N802
    return np.random.default_rng(0).uniform(-3, 3, (N_ROWS, 2))


@pytest.fixture(scope="module")
def y(X) -> np.ndarray:
    return np.sin(X[:, 0]) + 0.5 * X[:, 1]


def explained(found: np.ndarray, y: np.ndarray) -> float:
    return 1 - float(np.var(found - y) / np.var(y))


def test_predictions_that_are_wrong_explain_nothing(y):
    assert explained(np.zeros(N_ROWS), y) < 0.01


@pytest.mark.parametrize("scale", [1e90, 3e38, 1e-46, 1e-149])
def test_the_unit_of_the_target_does_not_matter(X, y, scale, tmp_path):
    model = NAERegressor(**FAST).fit(X, y * scale)
    model.save(tmp_path / "m.nae")
    for one in (model, nae.load(tmp_path / "m.nae")):
        found = one.predict(X)
        assert explained(found / scale, y) > 0.9
        np.testing.assert_allclose(found.sum() / scale, y.sum(), atol=1e-3)


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("scale", [1e-155, 1e-300])
def test_a_target_too_small_for_its_squares_is_refused(X, y, scale, loss):
    with pytest.raises(DataError, match=r"mean size of at least 1e-150; got .* Multiply y by a constant"):
        NAERegressor(loss, **FAST).fit(X, y * scale)


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
@pytest.mark.parametrize("scale", [1e-100, 1e-12, 1e36])
def test_counts_and_amounts_of_another_size_than_can_be_learned_are_refused(X, y, scale, loss):
    with pytest.raises(DataError, match=r"the mean of y must be 0, or lie in \[1e-08, 1e\+30\]"):
        NAERegressor(loss, **FAST).fit(X, np.exp(y) * scale)


@pytest.mark.parametrize(
    ("loss", "scale"), [("poisson", 1e-2), ("tweedie", 1e-2), ("gamma", 1e-7), ("poisson", 1e29), ("gamma", 1e29)]
)
def test_counts_and_amounts_may_be_small_and_large(X, y, scale, loss):
    target = np.exp(y) * scale
    found = NAERegressor(loss, **FAST).fit(X, target).predict(X)
    assert explained(np.log(found), y) > 0.8
    np.testing.assert_allclose(found.sum(), target.sum(), rtol=1e-6)


@pytest.mark.parametrize("loss", ["poisson", "tweedie"])
def test_counts_that_are_too_small_to_be_learned_well_are_warned_of(X, y, loss):
    with pytest.warns(NAEWarning, match="below 0.001 are learned slowly or not at all. Multiply y by a constant"):
        NAERegressor(loss, **FAST).fit(X, np.exp(y) * 1e-5)


def test_a_target_far_from_zero_is_no_constant(X, y):
    target = 1e14 + y
    model = NAERegressor(**FAST).fit(X, target)
    found = model.predict(X)
    assert explained(found - 1e14, target - 1e14) > 0.9
    assert abs(np.mean(found - target)) < 0.02  # a float's step there


def test_a_constant_stays_one_beside_offsets_of_any_size(X):
    for size in (1.0, 1e8, 1e14):
        offset = size * np.concatenate([X[:200, 0], -X[:200, 0]])  # in the mean it is nothing
        model = NAERegressor(**FAST).fit(X, 0.1 + offset, offset=offset)
        assert model.history_.stopped == "the target is constant"


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber", "quantile"])
def test_what_all_offsets_share_costs_nothing(X, y, loss):
    offset = 1e8 + X[:, 1]
    model = NAERegressor(loss, **FAST).fit(X, y + offset, offset=offset)
    assert explained(model.predict(X, offset=offset) - offset, y) > 0.9


def test_a_scan_takes_the_same_from_offsets(X, y):
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y, "base": 1e8 + X[:, 1]})
    rows = ds.dataset(pa.Table.from_pandas(frame))
    model = NAERegressor(**FAST).fit(nae.scan(rows, block_rows=150), "y", offset="base")
    found = model.predict(frame[["a", "b"]], offset=frame["base"])
    assert explained(found, y) > 0.9


def test_the_mean_of_large_numbers_is_exact_to_the_last_digits():
    values = 1e14 + np.random.default_rng(0).normal(size=(5000, 1)).round(1)
    moments = TargetMoments.of(values, np.zeros_like(values), np.ones(5000))
    exact = 1e14 + (values - 1e14).mean()
    assert abs(moments.mean[0] - exact) <= 0.02
    assert moments.base[0] == 0.0
