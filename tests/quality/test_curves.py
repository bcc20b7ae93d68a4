"""Reliability curves: true probabilities are seldom called wrong, and wrong ones are found and described."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression

from nae import NAEClassifier, NAERegressor, quality
from nae._typing import Array
from nae.errors import ConfigError, UserError
from nae.quality import Reliability
from nae.quality.curves import _curve
from nae.quality.slopes import fit_slope, fit_temperature


def drawn(random: np.random.Generator, n_rows: int, *, slope: float = 1.0, shift: float = 0.0) -> tuple[Array, Array]:
    """Return probabilities whose log-odds are calibrated as ``slope * log-odds + shift``, and what happened."""
    score = random.normal(size=n_rows) * 1.5 - 1
    truth = random.uniform(size=n_rows) < 1 / (1 + np.exp(-slope * score - shift))
    return 1 / (1 + np.exp(-score)), truth.astype(float)


def curve(chance: Array, truth: Array, n_bins: int = 10) -> Reliability:
    return _curve("yes", chance, truth, np.ones(len(chance)), n_bins)


def test_true_probabilities_are_seldom_called_wrong() -> None:
    random = np.random.default_rng(0)
    found = [curve(*drawn(random, 400)) for _ in range(200)]
    assert np.mean([not one.is_calibrated for one in found]) < 0.1
    assert np.mean([one.slope_interval[0] < 1 < one.slope_interval[1] for one in found]) == pytest.approx(
        0.95, abs=0.04
    )
    assert np.mean([one.error for one in found]) == pytest.approx(
        np.mean([one.error_by_chance for one in found]), rel=0.1
    )
    held = [(one.lower <= one.predicted) & (one.predicted <= one.upper) for one in found]
    assert np.mean(np.concatenate(held)) == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize(
    ("slope", "shift", "words"),
    [
        (0.5, 0.0, "is too extreme, slope 0.49 (0.4"),
        (1.7, 0.0, "is too cautious, slope 1."),
        (1.0, 0.8, "is too low by 0.1"),
        (1.0, 0.0, "as far as 4,000 rows can tell, the probability of 'yes' is calibrated."),
    ],
)
def test_the_sentence_says_what_is_wrong(slope: float, shift: float, words: str) -> None:
    found = curve(*drawn(np.random.default_rng(1), 4000, slope=slope, shift=shift))
    assert words in found.sentence
    assert found.slope == pytest.approx(slope, abs=0.15)


def test_bins_are_those_of_scikit_learn() -> None:
    chance, truth = drawn(np.random.default_rng(2), 1000)
    found = curve(chance, truth, 8)
    share, mean = calibration_curve(truth, chance, n_bins=8, strategy="quantile")
    np.testing.assert_allclose(found.actual, share)
    np.testing.assert_allclose(found.predicted, mean)
    assert found.rows.tolist() == [125] * 8


def test_the_slope_is_that_of_a_logistic_regression() -> None:
    random = np.random.default_rng(3)
    score = random.normal(size=(300, 1))
    truth = random.uniform(size=300) < 1 / (1 + np.exp(-2 * score[:, 0] + 1))
    expected = LogisticRegression(C=np.inf, tol=1e-10).fit(score, truth)
    slope, shift = fit_slope(score[:, 0], truth.astype(float), np.ones(300))
    assert (slope, shift) == (
        pytest.approx(expected.coef_[0, 0], rel=1e-4),
        pytest.approx(expected.intercept_[0], rel=1e-4),
    )
    assert np.isfinite(fit_slope(np.arange(10.0), (np.arange(10) > 4).astype(float), np.ones(10))).all()


def test_weight_two_is_the_row_twice() -> None:
    chance, truth = drawn(np.random.default_rng(4), 200)
    weight = np.random.default_rng(5).integers(1, 3, 200).astype(float)
    at = np.repeat(np.arange(200), weight.astype(int))
    one, other = _curve("a", chance, truth, weight, 1), curve(chance[at], truth[at], 1)
    assert (one.error, one.slope) == (pytest.approx(other.error), pytest.approx(other.slope))


def test_a_classifier_is_asked_by_class() -> None:
    random = np.random.default_rng(6)
    X = random.uniform(size=(400, 2))
    few = {"n_members": 1, "max_epochs": 5, "random_state": 0}
    y = np.array(["a", "b", "c"])[(3 * X[:, 0]).astype(int)]
    model = NAEClassifier(**few).fit(X, y)
    found = quality.reliability(model, X, y, label="c")
    chance = model.predict_proba(X)[:, 2]
    assert found.rows @ found.predicted == pytest.approx(chance.sum())
    chosen = quality.reliability(model, X, y)
    assert chosen.what == "probability of the chosen class"
    assert chosen.rows @ chosen.actual == pytest.approx((model.predict(X) == y).sum())
    assert Reliability.from_json(found.to_json()).to_json() == found.to_json()
    assert len(found.to_frame()) == len(found)
    assert repr(found).startswith("Reliability(probability of 'c', 400 rows, calibration error")
    with pytest.raises(ConfigError, match=r"label must be one of the classes \['a', 'b', 'c'\]; got 'd'"):
        quality.reliability(model, X, y, label="d")
    with pytest.raises(ConfigError, match="n_bins must be at least 1; got 0"):
        quality.reliability(model, X, y, n_bins=0)
    with pytest.raises(UserError, match="this model predicts numbers"):
        quality.reliability(NAERegressor(**few).fit(X, X[:, 0]), X, X[:, 0])


def test_the_temperature_has_the_smallest_loss() -> None:
    random = np.random.default_rng(7)
    score, base = random.normal(size=(2000, 4)), random.normal(size=(1, 4))
    chance = np.exp(0.7 * score + base)
    chance /= chance.sum(axis=1, keepdims=True)
    codes = (random.uniform(size=2000)[:, None] > np.cumsum(chance, axis=1)).sum(axis=1).clip(0, 3)

    def loss(slope: float) -> float:
        logits = slope * score + base
        return float((np.logaddexp.reduce(logits, axis=1) - logits[np.arange(2000), codes]).sum())

    slope = fit_temperature(score, codes, np.ones(2000), base=base)
    assert slope == pytest.approx(0.7, abs=0.1)
    assert loss(slope) < min(loss(slope - 0.01), loss(slope + 0.01))
