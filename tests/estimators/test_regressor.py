"""Regression: every loss, offsets, several outputs."""

import numpy as np
import pandas as pd
import pytest

from nae import NAERegressor
from nae.errors import ConfigError, DataError, NAEWarning

FAST = {"n_members": 1, "n_experts": 3, "hidden_dim": 16, "max_epochs": 100, "random_state": 0}


@pytest.fixture(name="X", scope="module")
def rows() -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (150, 2))


def log_mean(X: np.ndarray) -> np.ndarray:
    return X[:, 0] * np.sign(X[:, 1]) + 0.5 * X[:, 1]


def pinball(quantile: float):
    return lambda y, p: np.maximum(quantile * (y - p), (quantile - 1) * (y - p)).mean()


def tweedie(y: np.ndarray, p: np.ndarray, power: float = 1.5) -> float:
    return (p ** (2 - power) / (2 - power) - y * p ** (1 - power) / (1 - power)).mean()


LOSSES = {
    "squared": lambda y, p: ((y - p) ** 2).mean(),
    "absolute": lambda y, p: np.abs(y - p).mean(),
    "huber": lambda y, p: np.abs(y - p).mean(),
    "quantile": pinball(0.5),
    "poisson": lambda y, p: (p - y * np.log(p)).mean(),
    "gamma": lambda y, p: (np.log(p) + y / p).mean(),
    "tweedie": tweedie,
}


def target(loss: str, X: np.ndarray) -> np.ndarray:
    random = np.random.default_rng(1)
    mean = np.exp(log_mean(X))
    if loss in ("poisson", "tweedie"):
        return random.poisson(3 * mean).astype(float)
    if loss == "gamma":
        return random.gamma(20, mean / 20)
    return 5 * log_mean(X) + 0.2 * random.normal(size=len(X))


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_beats_the_best_constant_on_new_rows(X, loss):
    y = target(loss, X)
    model = NAERegressor(loss, **FAST).fit(X[:110], y[:110])
    predicted, held_out = model.predict(X[110:]), y[110:]
    constant = np.median(y[:110]) if loss in ("absolute", "huber", "quantile") else y[:110].mean()
    found, best = LOSSES[loss](held_out, predicted), LOSSES[loss](held_out, np.full(40, constant))
    assert found < best - 0.03 * abs(best)
    if loss in ("poisson", "gamma", "tweedie"):
        assert predicted.min() > 0
        np.testing.assert_allclose(predicted, np.exp(model.contributions(X[110:]).score))
    else:
        np.testing.assert_allclose(predicted, model.contributions(X[110:]).score)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_quantiles_cover_what_they_say(quantile):
    random = np.random.default_rng(2)
    X = random.uniform(-1, 1, (250, 1))
    y = X[:, 0] + random.normal(size=250) * (1 + X[:, 0])
    model = NAERegressor("quantile", quantile=quantile, **FAST | {"n_experts": 1}).fit(X, y)
    covered = (y < model.predict(X)).mean()
    assert covered == pytest.approx(quantile, abs=0.08)


def test_quantiles_are_ordered():
    random = np.random.default_rng(3)
    X = random.uniform(-1, 1, (200, 1))
    y = X[:, 0] + random.normal(size=200)
    low, high = (NAERegressor("quantile", quantile=q, **FAST).fit(X, y).predict(X) for q in (0.1, 0.9))
    assert (low < high).mean() > 0.98


def test_absolute_loss_is_not_moved_by_outliers(X):
    y = 5 * log_mean(X)
    wild = y.copy()
    wild[::10] += 1000
    clean = NAERegressor("absolute", **FAST).fit(X, wild).predict(X)
    assert np.median(np.abs(clean - y)) < 5
    assert np.median(np.abs(NAERegressor("squared", **FAST).fit(X, wild).predict(X) - y)) > 10


def test_twice_the_exposure_is_twice_the_prediction(X):
    exposure = np.random.default_rng(4).uniform(0.5, 5, 150)
    y = np.random.default_rng(5).poisson(exposure * np.exp(log_mean(X)))
    model = NAERegressor("poisson", **FAST).fit(X, y, offset=np.log(exposure))
    base = model.predict(X)
    np.testing.assert_allclose(model.predict(X, offset=np.log(exposure)), base * exposure)
    np.testing.assert_allclose(model.predict(X, offset=np.full(150, np.log(2))), 2 * base)
    assert np.corrcoef(np.log(base), log_mean(X))[0, 1] > 0.7
    assert base.mean() == pytest.approx(np.exp(log_mean(X)).mean(), rel=0.25)


def test_an_offset_is_not_explained_by_the_features():
    X = np.random.default_rng(6).uniform(-1, 1, (1100, 2))  # parts of a small table depend on what the target holds
    shift = 10 * X[:, 0]
    params = FAST | {"max_epochs": 10, "n_jobs": 1}
    model = NAERegressor(**params).fit(X, shift + log_mean(X), offset=shift)
    without = NAERegressor(**params).fit(X, log_mean(X))
    np.testing.assert_allclose(model.predict(X), without.predict(X), atol=1e-4)  # training is in single precision


def test_several_targets_have_contributions_of_their_own(X):
    Y = pd.DataFrame({"first": log_mean(X), "second": -3 * X[:, 1] + 100, "third": 0 * X[:, 0]})
    model = NAERegressor(**FAST).fit(X, Y)
    predicted = model.predict(X)
    assert predicted.shape == (150, 3)
    assert np.abs(predicted - Y.to_numpy()).mean(axis=0).max() < 0.35
    found = model.contributions(X)
    assert found.values.shape == (150, 2, 3)
    assert found.output_names == ("first", "second", "third")
    np.testing.assert_allclose(found.score, predicted)
    assert model.intercept_.shape == (3,)
    assert model.score(X, Y) > -10


def test_one_target_in_a_column_predicts_a_row(X):
    assert NAERegressor(**FAST | {"max_epochs": 2}).fit(X, log_mean(X)[:, None]).predict(X).shape == (150,)


def test_targets_of_any_scale_are_learned(X):
    for scale, shift in ((1e-8, 0.0), (1e8, 1e9)):
        y = scale * log_mean(X) + shift
        assert NAERegressor(**FAST).fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize("loss", ["poisson", "tweedie"])
def test_targets_of_nothing_but_zeros_are_fitted(X, loss):
    assert NAERegressor(loss, **FAST | {"max_epochs": 3}).fit(X, np.zeros(150)).predict(X).max() < 1e-3


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_rows", [1, 150, 400])
def test_a_constant_target_is_predicted_after_one_epoch(loss, n_rows):
    X = np.random.default_rng(0).uniform(-1, 1, (n_rows, 2))
    model = NAERegressor(loss, random_state=0).fit(X, np.full(n_rows, 0.1))
    assert repr(model.history_) == "History(1 epoch, the best is 1; the target is constant)"
    np.testing.assert_allclose(model.predict(3 * X), 0.1, rtol=0 if model.model_.link.name == "identity" else 1e-12)
    assert not np.signbit(model.contributions(X).upper).any()
    assert not model.contributions(X).upper.any()
    assert not model.explain_global(X).feature("x0").mean.any()


def test_a_constant_target_is_as_additive_as_one_can_ask(X):
    model = NAERegressor(additivity=0.9, **FAST).fit(X, np.full(len(X), 3.0))  # and warns of nothing
    assert model.model_.training.additivity["measured"] == 1.0


def test_what_an_offset_leaves_may_be_constant(X):
    offset = X[:, 0]
    model = NAERegressor(**FAST).fit(X, 2.0 + offset, offset=offset)
    assert len(model.history_) == 1
    np.testing.assert_allclose(model.predict(X, offset=offset), 2.0 + offset)


def test_a_constant_count_of_changing_exposures_is_learned(X):
    X = np.abs(X)
    for y, offset in ((np.ones(len(X)), X[:, 0]), (1 + X[:, 0], X[:, 0])):
        assert len(NAERegressor("poisson", **FAST).fit(X, y, offset=offset).history_) > 1


def test_a_constant_output_leaves_the_others_to_be_learned(X):
    y = np.column_stack([X[:, 0], np.full(len(X), 7.0)])
    predicted = NAERegressor(**FAST).fit(X, y).predict(X)
    np.testing.assert_allclose(predicted[:, 1], 7.0, rtol=1e-12)
    assert np.corrcoef(predicted[:, 0], X[:, 0])[0, 1] > 0.9


def test_losses_refuse_targets_they_cannot_take(X):
    with pytest.raises(DataError, match="This loss needs a target of at least 0; got -1"):
        NAERegressor("poisson").fit(X, np.full(150, -1.0))
    with pytest.raises(DataError, match="This loss needs a positive target; got 0"):
        NAERegressor("gamma").fit(X, np.zeros(150))


def test_an_unknown_loss_is_an_error_with_the_nearest_name(X):
    with pytest.raises(ConfigError, match=r"loss must be one of \['squared', .*; got 'square'. Did you mean 'squared'"):
        NAERegressor("square").fit(X, X[:, 0])
    with pytest.raises(ConfigError, match="got 'logistic'"):
        NAERegressor("logistic").fit(X, X[:, 0])


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"loss": "quantile", "quantile": 1.0}, r"quantile must be in \(0, 1\), .* got 1.0"),
        (
            {"loss": "tweedie", "tweedie_power": 2},
            r"tweedie_power must be in \(1, 2\); got 2. Use loss='poisson' for 1",
        ),
        ({"loss": "huber", "huber_delta": 0}, "huber_delta must be positive; got 0"),
    ],
)
def test_parameters_of_losses_are_checked(X, params, match):
    with pytest.raises(ConfigError, match=match):
        NAERegressor(**params).fit(X, X[:, 0])


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"quantile": 0.9}, r"quantile=0\.9 has no effect with loss='squared'; it belongs to loss='quantile'"),
        ({"huber_delta": 2.0}, r"huber_delta=2\.0 has no effect .* loss='huber'"),
        ({"loss": "poisson", "tweedie_power": 1.2}, r"tweedie_power=1\.2 has no effect with loss='poisson'"),
    ],
)
def test_a_parameter_of_another_loss_is_not_passed_over_in_silence(X, params, match):
    with pytest.warns(NAEWarning, match=match) as found:
        NAERegressor(**params, **FAST | {"max_epochs": 1}).fit(X, np.abs(X[:, 0]))
    assert [warning.filename for warning in found] == [__file__]  # it points at the call


def test_text_as_a_target_is_an_error_with_a_hint(X):
    with pytest.raises(
        DataError, match=r"The target of a regression must hold numbers; got text in row 0, 'a'. Use NAEClassifier"
    ):
        NAERegressor().fit(X, ["a"] * 150)


@pytest.mark.parametrize(
    ("offset", "match"),
    [
        (np.zeros(3), r"offset must have one value per row \(150\); got shape \(3,\)"),
        (0.0, r"offset must have one value per row \(150\); got shape \(\)"),
        (np.zeros((150, 2)), r"offset must have one column per output \(1\); got shape \(150, 2\)"),
        (np.where(np.arange(150) == 7, np.nan, 0), "offset must be finite; row 7 is not"),
        (["a"] * 150, "offset must hold numbers; got text in row 0, 'a'"),
    ],
)
def test_offsets_are_checked(X, offset, match):
    with pytest.raises(DataError, match=match):
        NAERegressor().fit(X, X[:, 0], offset=offset)


@pytest.mark.parametrize(
    ("weight", "match"),
    [
        (np.ones(3), r"sample_weight must have one value per row \(150\); got shape \(3,\)"),
        (np.ones((150, 1)), r"sample_weight must have one value per row \(150\); got shape \(150, 1\)"),
        (np.where(np.arange(150) == 7, -1, 1), "sample_weight must be finite and not negative; row 7 has -1"),
        (np.where(np.arange(150) == 7, np.inf, 1), "sample_weight must be finite and not negative; row 7 has inf"),
        (np.zeros(150), "At least one row must have a positive weight; all are zero"),
        (["a"] * 150, "sample_weight must hold numbers; got text in row 0, 'a'"),
    ],
)
def test_weights_are_checked(X, weight, match):
    with pytest.raises(DataError, match=match):
        NAERegressor().fit(X, X[:, 0], sample_weight=weight)
