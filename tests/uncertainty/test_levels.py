"""By a column, the coverage holds within each of its levels; counts have whole ends."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nae
from nae import NAEClassifier
from nae.errors import ConfigError, DataError, FormatError, UserError
from nae.links import LINKS
from nae.tables import TableModel
from nae.uncertainty.intervals import whole_within
from nae.uncertainty.levels import OTHER

SPREAD = {"calm": 0.2, "wild": 2.0, "rare": 1.0}


def draw(seed: int, n_rows: int) -> tuple[dict[str, Any], np.ndarray]:
    """Return rows whose noise has a size per level of ``mood``, which is no feature."""
    random = np.random.default_rng(seed)
    mood = random.choice(list(SPREAD), n_rows, p=[0.5, 0.47, 0.03])
    x = random.uniform(size=n_rows)
    return {"x": x, "mood": mood}, x + np.array([SPREAD[one] for one in mood]) * random.standard_normal(n_rows)


def shares(found: Any, X: dict[str, Any], y: np.ndarray) -> dict[str, float]:
    """Return the share of the rows of every level within their interval."""
    is_inside = (found.lower <= y) & (y <= found.upper)
    return {mood: float(is_inside[X["mood"] == mood].mean()) for mood in SPREAD}


def test_the_coverage_holds_within_every_level(line: TableModel) -> None:
    X, y = draw(1, 8000)
    rows = draw(2, 2000)
    together = shares(line.predict_interval(X, calibrate_on=rows), X, y)
    found = line.predict_interval(X, calibrate_on=rows, by="mood")
    apart = shares(found, X, y)
    assert abs(together["wild"] - 0.9) > 0.05
    assert all(abs(apart[mood] - 0.9) < 0.03 for mood in ("calm", "wild"))
    assert set(found.levels) == {"calm", "wild", OTHER}


def test_a_file_keeps_the_levels(line: TableModel, tmp_path: Path) -> None:
    X, _ = draw(1, 20)
    rows = draw(2, 2000)
    line.calibrated(*rows, by="mood").save(tmp_path / "m.nae")
    model = nae.load(tmp_path / "m.nae")
    found = model.predict_interval(X)
    assert found.to_json() == line.predict_interval(X, calibrate_on=rows, by="mood").to_json()
    assert model.predict_interval(X, by="mood").to_json() == found.to_json()
    with pytest.raises(DataError, match="X has no column 'mood'"):
        model.predict_interval({"x": X["x"]})


def test_levels_that_were_never_seen_have_the_residuals_of_the_rare_ones(line: TableModel) -> None:
    X, _ = draw(1, 3)
    found = line.predict_interval(X | {"mood": ["odd", None, "calm"]}, calibrate_on=draw(2, 2000), by="mood")
    assert found.levels == (OTHER, OTHER, "calm")
    assert found.width[:2].min() > found.width[2]


def test_sets_can_be_by_a_column(classifier: NAEClassifier) -> None:
    random = np.random.default_rng(0)

    def rows(n_rows: int) -> tuple[dict[str, Any], np.ndarray]:
        X = {name: random.uniform(size=n_rows) for name in ("slope", "noise", "idle")}
        size = np.where(X["noise"] > 0.5, 2.0, 0.1)
        y = np.digitize(3 * X["slope"] + size * random.standard_normal(n_rows), (1.0, 2.0))
        return X | {"is_noisy": X["noise"] > 0.5}, y

    (X, y), given = rows(6000), rows(2000)
    found = classifier.predict_set(X, calibrate_on=given, by="is_noisy", allow_empty=True)
    is_in = found.contains[np.arange(len(y)), y]
    for own in (X["is_noisy"], ~X["is_noisy"]):
        assert abs(is_in[own].mean() - 0.9) < 0.03


def test_levels_without_rows_are_refused(line: TableModel) -> None:
    X, y = draw(1, 100)
    with pytest.raises(UserError, match=r"Residuals by 'mood' need rows that the fit has not seen"):
        line.calibrated(X, y).predict_interval(X, by="mood")
    with pytest.raises(ConfigError, match=r"calibrate_on must be \(X, y\) or \(X, y, offset\); got dict"):
        line.predict_interval(X, calibrate_on=X)


def test_a_file_whose_levels_and_residuals_differ_is_refused(line: TableModel, tmp_path: Path) -> None:
    model = line.calibrated(*draw(2, 500), by="mood")
    assert model.residuals is not None
    wrong = replace(model, residuals=replace(model.residuals, by_level=None))
    with pytest.raises(FormatError, match=r"'residuals\.by_level' must come with the levels of a column"):
        wrong.save(tmp_path / "m.nae")


def test_the_ends_of_counts_are_whole(line: TableModel) -> None:
    random = np.random.default_rng(0)
    model = replace(line.with_training(loss="poisson"), link=LINKS["log"])
    x = random.uniform(size=(2, 3000))
    y = random.poisson(3 * np.exp(x) / np.e).astype(float)
    found = model.predict_interval({"x": x[0]}, calibrate_on=({"x": x[1]}, y[1]))
    assert found.basis.is_whole
    np.testing.assert_array_equal(found.lower, np.rint(found.lower))
    assert 0.88 < np.mean((found.lower <= y[0]) & (y[0] <= found.upper)) < 0.95
    half = model.predict_interval({"x": x[0]}, calibrate_on=({"x": x[1]}, y[1] + 0.5))
    assert not half.basis.is_whole


def test_an_interval_without_a_whole_number_has_the_nearest() -> None:
    lower, upper = whole_within(np.array([0.2, 0.0, 1.2]), np.array([0.4, 2.9, 1.9]))
    assert lower.tolist() == [0.0, 0.0, 2.0]
    assert upper.tolist() == [0.0, 2.0, 2.0]
