"""Every measure equals scikit-learn's where it has one: with weights, with ties, with rows of weight zero."""

from collections.abc import Callable

import numpy as np
import pytest
from sklearn import metrics

from nae.quality import Baseline, Criterion, measure_classes, measure_numbers
from nae.tables import TrainingSummary

RANDOM = np.random.default_rng(0)
N = 401
CHANCE = RANDOM.integers(0, 12, size=N) / 11  # many ties, and chances of nothing and of all
SECOND = (RANDOM.uniform(size=N) < 0.2 + 0.6 * CHANCE).astype(np.int64)
WEIGHTS = {"equal": None, "weights": RANDOM.integers(1, 4, size=N) * 0.5}


def numbers(truth: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None, **criterion: object) -> dict:
    found = measure_numbers(
        truth[:, None],
        predicted[:, None],
        criterion=Criterion.of(TrainingSummary.from_dict(criterion)),
        sample_weight=weight,
    )
    return {one.name: one.value for one in found}


def classes(codes: np.ndarray, chance: np.ndarray, weight: np.ndarray | None) -> dict:
    return {one.name: one.value for one in measure_classes(codes, chance, sample_weight=weight)}


@pytest.fixture(params=list(WEIGHTS))
def weight(request: pytest.FixtureRequest) -> np.ndarray | None:
    return WEIGHTS[request.param]


def test_two_classes_are_measured_as_scikit_learn_does(weight: np.ndarray | None) -> None:
    found = classes(SECOND, np.stack([1 - CHANCE, CHANCE], axis=1), weight)
    expected = {
        "AUC": metrics.roc_auc_score(SECOND, CHANCE, sample_weight=weight),
        "average precision": metrics.average_precision_score(SECOND, CHANCE, sample_weight=weight),
        "log loss": metrics.log_loss(SECOND, CHANCE, sample_weight=weight),
        "Brier score": metrics.brier_score_loss(SECOND, CHANCE, sample_weight=weight),
        "accuracy": metrics.accuracy_score(SECOND, CHANCE > 0.5, sample_weight=weight),
    }
    assert set(found) == {*expected, "calibration error"}
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-12)


def test_many_classes_are_measured_as_scikit_learn_does(weight: np.ndarray | None) -> None:
    codes, chance = RANDOM.integers(0, 3, size=N), RANDOM.dirichlet(np.ones(3), size=N)
    found = classes(codes, chance, weight)
    assert found["log loss"] == pytest.approx(metrics.log_loss(codes, chance, sample_weight=weight))
    assert found["accuracy"] == pytest.approx(
        metrics.accuracy_score(codes, chance.argmax(axis=1), sample_weight=weight)
    )
    squares = ((np.eye(3)[codes] - chance) ** 2).sum(axis=1)  # scikit-learn 1.6 has it for two classes alone
    assert found["Brier score"] == pytest.approx(np.average(squares, weights=weight))
    assert set(found) == {"log loss", "accuracy", "Brier score"}


@pytest.mark.parametrize(
    ("loss", "power", "deviance"),
    [
        ("poisson", 1, metrics.mean_poisson_deviance),
        ("gamma", 2, metrics.mean_gamma_deviance),
        ("tweedie", 1.3, lambda *a, **k: metrics.mean_tweedie_deviance(*a, power=1.3, **k)),
    ],
)
def test_deviances_are_those_of_scikit_learn(
    loss: str, power: float, deviance: Callable[..., float], weight: np.ndarray | None
) -> None:
    predicted = RANDOM.uniform(0.1, 4, size=N)
    truth = RANDOM.poisson(predicted) + (1.0 if loss == "gamma" else 0.0)
    found = numbers(truth, predicted, weight, loss=loss, tweedie_power=power)
    assert next(iter(found.values())) == pytest.approx(deviance(truth, predicted, sample_weight=weight))
    explained = metrics.d2_tweedie_score(truth, predicted, power=power, sample_weight=weight)
    assert found["D²"] == pytest.approx(explained)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_quantiles_are_measured_by_the_pinball_loss(level: float, weight: np.ndarray | None) -> None:
    truth, predicted = RANDOM.normal(size=N), RANDOM.normal(size=N)
    found = numbers(truth, predicted, weight, loss="quantile", quantile=level)
    loss = metrics.mean_pinball_loss(truth, predicted, alpha=level, sample_weight=weight)
    assert found["pinball loss"] == pytest.approx(loss)
    rows = np.repeat(truth, 1 if weight is None else (2 * weight).astype(int))  # 401 rows or more: no tie of quantiles
    constant = np.quantile(rows, level, method="averaged_inverted_cdf")
    least = metrics.mean_pinball_loss(truth, np.full(N, constant), alpha=level, sample_weight=weight)
    assert found["D²"] == pytest.approx(1 - loss / least)
    if weight is None:
        assert found["D²"] == pytest.approx(metrics.d2_pinball_score(truth, predicted, alpha=level), abs=2e-3)


def test_numbers_are_measured_as_scikit_learn_does(weight: np.ndarray | None) -> None:
    truth = RANDOM.normal(size=N)
    predicted = truth + RANDOM.normal(size=N)
    expected = {
        "RMSE": metrics.root_mean_squared_error(truth, predicted, sample_weight=weight),
        "mean absolute error": metrics.mean_absolute_error(truth, predicted, sample_weight=weight),
        "R²": metrics.r2_score(truth, predicted, sample_weight=weight),
    }
    assert numbers(truth, predicted, weight) == pytest.approx(expected)


def test_several_outputs_count_alike() -> None:
    truth = RANDOM.normal(size=(N, 2)) * [1, 10]
    predicted = truth + RANDOM.normal(size=(N, 2))
    found = measure_numbers(truth, predicted)
    assert found["RMSE"].value == pytest.approx(metrics.root_mean_squared_error(truth, predicted))
    assert found["R²"].value == pytest.approx(metrics.r2_score(truth, predicted))


def test_huber_s_loss_is_half_the_square_and_then_linear() -> None:
    found = numbers(np.zeros(2), np.array([1.0, 5.0]), None, loss="huber", huber_threshold=[2.0])
    assert found["Huber loss"] == pytest.approx((0.5 + 2 * (5 - 1)) / 2)


def test_the_gini_is_that_of_the_lorenz_curve_over_the_exposure(weight: np.ndarray | None) -> None:
    exposure, rate = RANDOM.uniform(0.2, 3, size=N), RANDOM.uniform(0.1, 2, size=N)
    truth = RANDOM.poisson(rate * exposure).astype(float)
    given = np.ones(N) if weight is None else weight

    def area(order: np.ndarray) -> float:
        x = np.concatenate([[0], np.cumsum((given * exposure)[order])])
        y = np.concatenate([[0], np.cumsum((given * truth)[order])])
        return 1 - 2 * metrics.auc(x / x[-1], y / y[-1])

    found = measure_numbers(
        truth[:, None],
        (rate * exposure)[:, None],
        criterion=Criterion.of(TrainingSummary(loss="poisson")),
        offset=np.log(exposure)[:, None],
        link="log",
        sample_weight=weight,
    )
    assert found["Gini"].value == pytest.approx(area(np.argsort(rate)) / area(np.argsort(truth / exposure)))
    assert found["Gini"].baseline == pytest.approx(0, abs=1e-12)


def test_with_an_exposure_d2_is_that_of_rates_weighted_by_it() -> None:
    exposure, rate = RANDOM.uniform(0.2, 3, size=N), RANDOM.uniform(0.1, 2, size=N)
    truth = RANDOM.poisson(rate * exposure).astype(float)
    offset = np.log(exposure)[:, None]
    found = measure_numbers(
        truth[:, None],
        (rate * exposure)[:, None],
        criterion=Criterion.of(TrainingSummary(loss="poisson")),
        offset=offset,
        link="log",
    )
    expected = metrics.d2_tweedie_score(truth / exposure, rate, power=1, sample_weight=exposure)
    assert found["D²"].value == pytest.approx(expected)
    constant = truth.sum() / exposure.sum() * exposure
    assert found["Poisson deviance"].baseline == pytest.approx(metrics.mean_poisson_deviance(truth, constant))
    assert found["D²"].baseline == 0
    assert found.baseline == "one rate for all"


def test_the_calibration_error_is_the_gap_between_chance_and_share() -> None:
    chance = np.repeat([0.15, 0.85], 100)
    codes = np.concatenate([np.arange(100) < 25, np.arange(100) < 80]).astype(np.int64)
    found = classes(codes, np.stack([1 - chance, chance], axis=1), None)
    assert found["calibration error"] == pytest.approx((0.10 + 0.05) / 2)


def test_a_row_of_weight_two_counts_as_two_rows() -> None:
    codes, chance = SECOND[:50], np.stack([1 - CHANCE, CHANCE], axis=1)[:50]
    weight = RANDOM.integers(0, 4, size=50).astype(float)
    rows = np.repeat(np.arange(50), weight.astype(int))
    assert classes(codes, chance, weight) == pytest.approx(classes(codes[rows], chance[rows], None))


def test_what_these_rows_do_not_define_is_left_out() -> None:
    found = classes(np.zeros(10, dtype=np.int64), np.tile([0.4, 0.6], (10, 1)), None)
    assert set(found) == {"log loss", "Brier score", "calibration error", "accuracy"}
    assert "Gini" not in numbers(np.full(9, 2.0), np.arange(1.0, 10.0), None, loss="poisson")


@pytest.mark.parametrize(("predicted", "expected"), [(np.full(5, 0.1), 1.0), (np.arange(5.0), 0.0)])
def test_a_truth_that_never_varies_is_explained_or_not(predicted: np.ndarray, expected: float) -> None:
    assert numbers(np.full(5, 0.1), predicted, None)["R²"] == expected == metrics.r2_score(np.full(5, 0.1), predicted)


def test_intervals_are_wide_as_the_standard_error_says_and_repeat() -> None:
    truth = RANDOM.normal(size=(2000, 1))
    zero = np.zeros_like(truth)
    found = measure_numbers(truth, zero, n_resamples=400, seed=1)["mean absolute error"]
    assert found.interval is not None
    low, high = found.interval
    assert high - low == pytest.approx(2 * 1.96 * np.abs(truth).std() / np.sqrt(2000), rel=0.15)
    assert low < found.value < high
    assert measure_numbers(truth, zero, n_resamples=400, seed=1)["mean absolute error"] == found
    assert measure_numbers(truth, zero, n_resamples=400, seed=2)["mean absolute error"] != found


def test_beyond_the_row_limit_there_is_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nae.quality.measuring.MOST_ROWS", 99)
    truth = RANDOM.normal(size=(100, 1))
    assert {one.interval for one in measure_numbers(truth, truth + 1, n_resamples=5)} == {None}
    assert None not in {one.interval for one in measure_numbers(truth[1:], truth[1:] * 2, n_resamples=5)}


def test_the_rule_is_given_or_that_of_the_rows() -> None:
    truth = np.array([[1.0], [2.0], [6.0]])
    assert measure_numbers(truth, truth)["RMSE"].baseline == pytest.approx(np.sqrt(14 / 3))
    assert measure_numbers(truth, truth, baseline=Baseline((0.0,)))["RMSE"].baseline == pytest.approx(np.sqrt(41 / 3))
    shares = measure_classes(np.array([0, 1, 1]), np.full((3, 2), 0.5))
    assert shares["accuracy"].baseline == pytest.approx(2 / 3)
    assert shares["AUC"].baseline == 0.5
    assert shares["average precision"].baseline == pytest.approx(2 / 3)
