"""Every kind of fit leaves the residuals of the rows that its members held out, or says that there are none."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import nae
from nae import NAEClassifier, NAERegressor
from nae._typing import Array
from nae.errors import DataError, UserError
from nae.training.workers import Alone
from tests.uncertainty.conftest import SETTINGS, draw_rows

SHORT: dict[str, Any] = SETTINGS | {"max_epochs": 8, "validation_size": 0.25}


def share_within(found: nae.uncertainty.PredictionInterval, y: Array) -> Any:
    """Return the share of the targets that lie in their interval, per output."""
    return np.mean((found.lower <= y) & (y <= found.upper), axis=0)


def same_residuals(one: Any, other: Any) -> bool:
    """Return whether two models keep the same residuals, up to rounding."""
    first, second = (model.model_.residuals.to_arrays() for model in (one, other))
    return all(np.allclose(array, second[name], rtol=0, atol=1e-12) for name, array in first.items())


def test_an_offset_moves_the_interval_with_the_prediction() -> None:
    X, _ = draw_rows(0, 400)
    random = np.random.default_rng(0)
    exposure = random.uniform(0.5, 4.0, 2400)
    more, _ = draw_rows(1, 2000)
    rates = [np.exp(2 * rows["slope"]) for rows in (X, more)]
    counts = [random.poisson(rate * own) for rate, own in zip(rates, (exposure[:400], exposure[400:]), strict=True)]
    model = NAERegressor("poisson", **SHORT | {"max_epochs": 60}).fit(X, counts[0], offset=np.log(exposure[:400]))
    found = model.predict_interval(more, offset=np.log(exposure[400:]))
    assert found.basis.is_whole
    assert 0.86 < share_within(found, counts[1]) < 0.96
    assert model.predict_interval(more).width.mean() < found.width.mean()


def test_several_targets_have_intervals_of_their_own() -> None:
    X, y = draw_rows(0, 600)
    both = np.stack([y, 10 * X["slope"] + np.random.default_rng(0).standard_normal(600)], axis=1)
    model = NAERegressor(**SHORT | {"max_epochs": 60}).fit(X, both)
    more, truth = draw_rows(1, 2000)
    found = model.predict_interval(more)
    assert found.lower.shape == (2000, 2)
    assert abs(share_within(found, np.stack([truth, truth], axis=1))[0] - 0.9) < 0.03
    assert [name.split(" of ")[0] for name in found.columns] == ["prediction", "lower", "upper"] * 2
    assert {curve.output for curve in model.interval_model.curves} == set(model.model_.outputs)


def test_several_quantiles_have_intervals_of_the_target_each() -> None:
    X, y = draw_rows(0, 600)
    model = NAERegressor("quantile", quantile=[0.2, 0.5, 0.8], **SHORT | {"max_epochs": 60}).fit(X, y)
    more, truth = draw_rows(1, 2000)
    found = model.predict_interval(more)
    assert np.abs(share_within(found, truth[:, None]) - 0.9).max() < 0.04


@pytest.mark.parametrize("loss", ["absolute", "huber", "gamma", "tweedie"])
def test_every_loss_has_intervals(loss: str) -> None:
    X, y = draw_rows(0, 300)
    more, truth = draw_rows(1, 1000)
    y, truth = (np.exp(own / 2) if loss in ("gamma", "tweedie") else own for own in (y, truth))
    found = NAERegressor(loss, **SHORT | {"max_epochs": 40}).fit(X, y).predict_interval(more)
    assert abs(share_within(found, truth) - 0.9) < 0.06


def test_whole_weights_are_repetitions() -> None:
    X, y = draw_rows(0, 150)
    weight = np.arange(150) % 2 + 1
    rows = np.repeat(np.arange(150), weight)
    twice = {name: column[rows] for name, column in X.items()}
    one = NAERegressor(**SHORT).fit(X, y, sample_weight=weight)
    other = NAERegressor(**SHORT).fit(twice, y[rows])
    assert same_residuals(one, other)


def test_class_weights_do_not_change_whose_residuals_count() -> None:
    X, y = draw_rows(0, 400)
    more, truth = draw_rows(1, 3000)
    model = NAEClassifier(class_weight={True: 5.0, False: 1.0}, **SHORT | {"max_epochs": 40}).fit(X, y > 2)
    found = model.predict_set(more, allow_empty=True)
    assert abs(found.contains[np.arange(3000), (truth > 2).astype(int)].mean() - 0.9) < 0.03


def test_a_scan_leaves_what_a_table_leaves(tmp_path: Any) -> None:
    X, y = draw_rows(0, 300)
    pa.parquet.write_table(pa.table(X | {"y": y}), tmp_path / "rows.parquet")
    scan = nae.scan(tmp_path / "rows.parquet")
    one, other = NAERegressor(**SHORT).fit(X, y), NAERegressor(**SHORT).fit(scan, "y")
    assert same_residuals(one, other)


class Twins(Alone):
    """A worker whose twin has the same rows."""

    def gather(self, value: Any) -> list[Any]:
        return [value, value] if isinstance(value, dict) and "by_member" in value else [value]


def test_workers_put_their_residuals_together(tmp_path: Any) -> None:
    X, y = draw_rows(0, 300)
    pa.parquet.write_table(pa.table(X | {"y": y}), tmp_path / "rows.parquet")
    model = NAERegressor(**SHORT).fit_share(nae.scan(tmp_path / "rows.parquet"), "y", workers=Twins())
    assert model.predict_interval(X).basis.n_rows == 600


@pytest.mark.parametrize("settings", [{"n_members": 1}, {"validation": range(60)}], ids=["one member", "rows"])
def test_members_that_hold_out_the_same_rows_leave_none(settings: dict[str, Any]) -> None:
    X, y = draw_rows(0, 300)
    model = NAERegressor(**SHORT | settings).fit(X, y)
    with pytest.raises(UserError, match="the model has none"):
        model.predict_interval(X)


def test_a_second_fit_that_goes_on_with_the_first_leaves_none() -> None:
    X, y = draw_rows(0, 300)
    model = NAERegressor(warm_start=True, **SHORT).fit(X, y)
    assert model.predict_interval(X).basis.n_rows == 300
    model.fit(X, y)
    with pytest.raises(UserError, match="the model has none"):
        model.predict_interval(X)


def test_few_rows_leave_none() -> None:
    X, y = draw_rows(0, 30)
    model = NAERegressor(**SHORT).fit(X, y)
    with pytest.raises(UserError, match=r"the model has none\. Pass calibrate_on"):
        model.predict_interval(X)


def test_a_constant_target_has_no_intervals() -> None:
    X, _ = draw_rows(0, 100)
    model = NAERegressor(**SHORT).fit(X, np.ones(100))
    with pytest.raises(UserError, match="the model has none"):
        model.predict_interval(X)


def test_a_target_without_noise_has_intervals_of_hardly_any_width() -> None:
    X, _ = draw_rows(0, 300)
    found = NAERegressor(**SHORT | {"max_epochs": 200}).fit(X, 3 * X["slope"]).predict_interval(X)
    assert found.width.max() < 0.5


def test_additive_models_and_searches_have_intervals() -> None:
    X, y = draw_rows(0, 300)
    for additivity in (1.0, "auto"):
        model = NAERegressor(additivity=additivity, **SHORT).fit(X, y)
        assert model.predict_interval(X).basis.n_rows == 300


@pytest.mark.parametrize("kind", ["number", "classes", "first class"])
def test_training_rows_are_no_rows_to_calibrate_on(kind: str) -> None:
    X, y = draw_rows(0, 120)
    if kind == "number":
        model: Any = NAERegressor(**SHORT).fit(X, y)
    else:
        y = np.where(y > 2, "b", "a")
        model = NAEClassifier(positive_class="a" if kind == "first class" else None, **SHORT).fit(X, y)
    with pytest.raises(DataError, match="that the fit has not seen; these are its training rows"):
        model.calibrated(X, y)
