"""Prediction intervals hold the share of new rows that they state, on estimators and on files."""

import itertools
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nae
from nae import NAERegressor
from nae.errors import ConfigError, DataError, UserError
from nae.tables import TableModel
from tests.uncertainty.conftest import SETTINGS, draw_rows

LEVELS = (0.8, 0.9, 0.95)


def share_within(found: nae.uncertainty.PredictionInterval, y: np.ndarray) -> float:
    """Return the share of the targets that lie in their interval."""
    return float(np.mean((found.lower <= y) & (y <= found.upper)))


@pytest.mark.parametrize("coverage", LEVELS)
def test_as_many_new_rows_lie_in_their_interval_as_asked_for(regressor: NAERegressor, coverage: float) -> None:
    X, y = draw_rows(1, 4000)
    found = regressor.predict_interval(X, coverage)
    assert abs(share_within(found, y) - coverage) < 0.03
    assert found.basis.measured == pytest.approx(coverage, abs=0.02)
    assert not found.basis.is_guaranteed
    np.testing.assert_array_equal(found.prediction, regressor.predict(X))


def test_a_file_has_the_same_intervals_as_the_estimator(regressor: NAERegressor, tmp_path: Path) -> None:
    regressor.save(tmp_path / "m.nae")
    X, _ = draw_rows(1, 50)
    expected = regressor.predict_interval(X)
    for model in (nae.load(tmp_path / "m.nae"), NAERegressor.load(tmp_path / "m.nae")):
        assert model.predict_interval(X).to_json() == expected.to_json()


def test_intervals_can_be_read_back_from_json(regressor: NAERegressor) -> None:
    found = regressor.predict_interval(draw_rows(1, 3)[0])
    assert type(found).from_json(found.to_json()).to_json() == found.to_json()
    assert list(found.to_frame().columns) == ["prediction", "lower", "upper"]
    assert "0.9, from 600 out-of-fold rows, measured 0." in repr(found)


def test_a_file_holds_fewer_numbers_than_rows(regressor: NAERegressor) -> None:
    residuals = regressor.model_.residuals
    assert residuals is not None
    assert residuals.quantiles.shape == (300, 1)


def test_wider_coverage_gives_wider_intervals_around_narrower_ones(regressor: NAERegressor) -> None:
    X, _ = draw_rows(1, 20)
    found = [regressor.predict_interval(X, level) for level in (0.5, 0.8, 0.9, 0.95)]
    for narrow, wide in itertools.pairwise(found):
        assert (wide.lower <= narrow.lower).all()
        assert (narrow.upper <= wide.upper).all()


def test_rows_kept_apart_guarantee_the_coverage(line: TableModel) -> None:
    """Over many draws, the mean share is at least the one asked for, and hardly more."""
    random = np.random.default_rng(0)
    shares = []
    for _ in range(300):
        x = random.uniform(size=(2, 200))
        y = x + random.standard_exponential((2, 200))
        found = line.predict_interval({"x": x[0]}, 0.9, calibrate_on=({"x": x[1]}, y[1]))
        assert found.basis.is_guaranteed
        shares.append(share_within(found, y[0]))
    assert 0.9 - 2 * np.std(shares) / np.sqrt(300) <= np.mean(shares) < 0.93


def test_a_calibrated_model_has_the_intervals_of_its_rows(line: TableModel, tmp_path: Path) -> None:
    x = np.linspace(0, 1, 100)
    rows = {"x": x}, x + np.sin(np.arange(100))
    line.calibrated(*rows).save(tmp_path / "m.nae")
    found = nae.load(tmp_path / "m.nae").predict_interval({"x": x[:5]})
    assert found.to_json() == line.predict_interval({"x": x[:5]}, calibrate_on=rows).to_json()


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
def test_the_intervals_of_counts_and_amounts_are_never_negative(line: TableModel, loss: str) -> None:
    random = np.random.default_rng(1)
    model = replace(line.with_training(loss=loss), link=nae.links.LINKS["log"])
    x = random.uniform(size=(2, 3000))
    y = random.gamma(0.5, 2 * np.exp(x)) if loss == "gamma" else random.poisson(np.exp(x)).astype(float)
    found = model.predict_interval({"x": x[0]}, calibrate_on=({"x": x[1]}, y[1]))
    assert (found.lower >= 0).all()
    assert 0.88 < share_within(found, y[0]) < 0.95


def test_amounts_to_calibrate_on_are_positive_and_large_scores_have_infinite_ends(line: TableModel) -> None:
    model = replace(line.with_training(loss="gamma"), link=nae.links.LINKS["log"])
    x, y = np.linspace(0, 1, 100), np.exp(np.sin(np.arange(100)))
    with pytest.raises(DataError, match="This loss needs a positive target; got 0"):
        model.calibrated({"x": x}, y - y.min())
    found = model.predict_interval({"x": x[:1]}, calibrate_on=({"x": x}, y), offset=np.array([1e4]))
    assert found.upper.tolist() == [np.inf]


def test_without_folds_a_model_refuses() -> None:
    X, y = draw_rows(0, 60)
    model = NAERegressor(**SETTINGS).fit(X, y, eval_set=draw_rows(1, 60))
    with pytest.raises(UserError, match=r"rows that members held out, .* the model has none\. Pass calibrate_on"):
        model.predict_interval(X)
    assert model.predict_interval(X, calibrate_on=draw_rows(1, 60)).basis.n_rows == 60


def test_an_edited_model_refuses(regressor: NAERegressor) -> None:
    model = nae.edit(regressor).drop("idle", who="me", why="test").model
    with pytest.raises(UserError, match=r"the model was edited after its fit\. Pass calibrate_on"):
        model.predict_interval(draw_rows(1, 3)[0])


def test_what_cannot_be_told_is_refused(regressor: NAERegressor) -> None:
    X, y = draw_rows(1, 30)
    with pytest.raises(ConfigError, match=r"coverage must be in \(0, 1\); got 90"):
        regressor.predict_interval(X, 90)
    with pytest.raises(DataError, match=r"coverage must be at most 0\.993, since 300 quantiles"):
        regressor.predict_interval(X, 0.999)
    with pytest.raises(DataError, match="residuals of at least 39 rows; got 30"):
        regressor.predict_interval(X, calibrate_on=(X, y))
    with pytest.raises(UserError, match=r"predict_set needs a classifier; .* Use predict_interval"):
        regressor.predict_set(X)


@pytest.mark.slow
@pytest.mark.skipif("NAE_DATA" not in os.environ, reason="NAE_DATA does not name the folder with the tables")
def test_the_example_of_the_page_says_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "decisions_with_models.md").read_text()
    section = page.partition("## How sure")[2].partition("\n## ")[0]
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE):
        exec(compile(block, "page", "exec"), names)  # noqa: S102
    assert abs(share_within(names["found"], names["truth"]) - 0.9) < 0.02
    assert names["model"].interval_model.curves[0].feature == "(score)"
    is_in = [own in one for own, one in zip(names["y"][5000:], names["sets"].sets, strict=True)]
    assert abs(np.mean(is_in) - 0.9) < 0.02
