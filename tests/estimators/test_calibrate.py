"""``calibrate``: the score is multiplied by one number, and everything that a model promises still holds."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nae import NAEClassifier, load
from nae._typing import Array
from nae.errors import ConfigError, DataError
from nae.estimators import calibrating
from nae.estimators.heldout import held_out
from nae.tables.scaled import scaled

FEW = {"n_members": 4, "max_epochs": 6, "random_state": 0}


def table(n_rows: int = 500) -> tuple[Array, Array]:
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, 3))
    return X, random.uniform(size=n_rows) < 1 / (1 + np.exp(-2 * X[:, 0] - X[:, 1]))


def fitted(calibrate: Any, y: Any = None, **settings: Any) -> NAEClassifier:
    X, truth = table()
    return NAEClassifier(calibrate=calibrate, **FEW | settings).fit(X, truth if y is None else y)


def test_contributions_are_those_without_calibration_times_the_slope(tmp_path: Any) -> None:
    X, y = table()
    plain, found = fitted(False), fitted(True)
    entry = found.model_.training.calibration
    assert entry is not None
    assert entry["slope"] != 1
    one, other = (model.contributions(X) for model in (found, plain))
    for name in ("values", "lower", "upper"):
        np.testing.assert_allclose(getattr(one, name), entry["slope"] * getattr(other, name), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.predict_proba(X)[:, 1].mean(), y.mean(), rtol=1e-9)  # totals still balance
    assert plain.model_.training.calibration is None
    found.save(tmp_path / "m.nae")
    again = load(tmp_path / "m.nae")
    assert again.training.calibration == entry
    np.testing.assert_array_equal(again.predict_proba(X), found.predict_proba(X))


def test_the_slope_is_the_best_one_for_rows_that_members_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def watched(*given: Any, **options: Any) -> Any:
        seen.append(held_out(*given, **options))
        return seen[-1]

    monkeypatch.setattr(calibrating, "held_out", watched)
    entry = fitted(True).model_.training.calibration
    assert entry is not None
    (rows,) = seen

    def loss(slope: float) -> float:
        shifts = np.linspace(-0.5, 0.5, 201)
        score = slope * rows.score[:, 0] + shifts[:, None]
        truth = rows.truth[:, 0]
        return float((np.logaddexp(0, score) - truth * score).mean(axis=1).min())

    assert loss(entry["slope"]) <= min(loss(entry["slope"] + step) for step in (-0.02, 0.02))


def test_auto_keeps_only_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrating, "_gain", lambda _: (0.001, 0.002))
    plain, kept = fitted(False), fitted("auto")
    np.testing.assert_array_equal(plain.model_.experts, kept.model_.experts)
    assert kept.model_.training.calibration == {"slope": 1.0, "gain": 0.001, "standard_error": 0.002}
    monkeypatch.setattr(calibrating, "_gain", lambda _: (0.003, 0.002))
    np.testing.assert_array_equal(fitted("auto").model_.experts, fitted(True).model_.experts)


def test_an_overconfident_score_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_extreme(model: Any, fit: Any, prepared: Any, **_: Any) -> Any:
        return held_out(scaled(model, 3.0), replace(fit, intercepts=3 * fit.intercepts), prepared)

    usual = fitted(True).model_.training.calibration
    monkeypatch.setattr(calibrating, "held_out", too_extreme)
    found = fitted("auto").model_.training.calibration
    assert usual is not None
    assert found is not None
    assert found["slope"] == pytest.approx(usual["slope"] / 3, rel=0.05)
    assert found["gain"] > 3 * found["standard_error"]


@pytest.mark.parametrize("settings", [{}, {"class_weight": "balanced"}, {"positive_class": "b"}])
def test_classes_weights_and_sides_are_calibrated(settings: dict[str, Any]) -> None:
    X, truth = table()
    y = (
        np.where(truth, "b", "c")
        if "positive_class" in settings
        else np.where(X[:, 2] > 1, "a", np.where(truth, "b", "c"))
    )
    found = fitted(True, y, **settings)
    assert found.model_.training.calibration is not None
    shares = np.array([(y == label).mean() for label in found.classes_])
    np.testing.assert_allclose(found.predict_proba(X).mean(axis=0), shares, rtol=1e-6)


def test_a_promised_limit_does_not_grow() -> None:
    found = fitted(True, max_effect={"x0": 0.8})
    assert found.model_.training.calibration is not None
    assert found.model_.training.calibration["slope"] <= 1
    assert found.model_.verify().all_proven


def test_without_held_out_rows_there_is_no_slope() -> None:
    X, y = table()
    with pytest.raises(DataError, match="calibrate=True needs rows that members held out of their training"):
        NAEClassifier(calibrate=True, **FEW).fit(X, y, eval_set=(X, y))
    assert NAEClassifier(calibrate="auto", **FEW).fit(X, y, eval_set=(X, y)).model_.training.calibration is None
    with pytest.raises(ConfigError, match="calibrate must be False, True or 'auto'; got 'yes'"):
        fitted("yes")
