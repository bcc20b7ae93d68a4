"""Losses against formulas written out, and against what they are minimised by."""

import numpy as np
import pytest

from nae.errors import ConfigError
from nae.links import LINKS
from nae.training.losses import LOSSES, make_loss

FORMULAS = {
    "squared": lambda s, y: (s - y) ** 2,
    "absolute": lambda s, y: np.abs(s - y),
    "huber": lambda s, y: np.where(np.abs(s - y) <= 1.35, 0.5 * (s - y) ** 2, 1.35 * (np.abs(s - y) - 0.675)),
    "quantile": lambda s, y: np.where(y > s, 0.3 * (y - s), 0.7 * (s - y)),
    "poisson": lambda s, y: np.exp(s) - y * s,
    "gamma": lambda s, y: s + y * np.exp(-s),
    "tweedie": lambda s, y: np.exp(0.5 * s) / 0.5 + y * np.exp(-0.5 * s) / 0.5,
    "logistic": lambda s, y: np.log1p(np.exp(s)) - y * s,
}


@pytest.fixture
def score() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(20, 2, 3)) * 2


@pytest.mark.parametrize("name", FORMULAS)
def test_a_loss_is_its_formula_averaged_over_outputs(name, score):
    target = np.random.default_rng(1).integers(0, 2, (20, 2)).astype(float)
    found = make_loss(name, quantile=0.3).per_row(score, target)
    expected = FORMULAS[name](score, target[:, :, None]).mean(axis=1)
    assert found.shape == (20, 3)
    np.testing.assert_allclose(found, expected)


def test_cross_entropy_is_the_negative_log_probability(score):
    target = np.random.default_rng(2).integers(0, 2, 20)
    found = make_loss("cross-entropy").per_row(score, target)
    proba = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, -np.log(proba[np.arange(20), target]))


def test_several_quantiles_are_the_mean_of_each_output_with_its_level(score):
    target = np.random.default_rng(1).normal(size=(20, 2))
    several = make_loss("quantile", quantile=[0.1, 0.7])
    alone = [make_loss("quantile", quantile=level) for level in (0.1, 0.7)]
    each = [one.per_row(score[:, [o]], target[:, [o]]) for o, one in enumerate(alone)]
    np.testing.assert_allclose(several.per_row(score, target), np.mean(each, axis=0))
    slopes = [one.derivatives(score[:, [o]], target[:, [o]])[0] / 2 for o, one in enumerate(alone)]
    np.testing.assert_allclose(several.derivatives(score, target)[0], np.concatenate(slopes, axis=1))
    excess = [one.excess(score[:, [o], 0], target[:, [o]])[0] for o, one in enumerate(alone)]
    np.testing.assert_allclose(several.excess(score[:, :, 0], target)[0], np.concatenate(excess, axis=1))
    assert several.levels == several.options(2) == (0.1, 0.7)
    assert alone[0].levels == ()
    assert alone[0].options(2) == (0.1, 0.1)


def test_a_list_of_one_quantile_is_that_quantile():
    assert make_loss("quantile", quantile=np.array([0.2])).option == ("quantile", 0.2)


@pytest.mark.parametrize("wrong", [[], [0.5, 0.1], [0.5, 0.5], [0.1, 1.0], [[0.1, 0.5]], "many", None, [0.1, np.nan]])
def test_quantiles_that_do_not_ascend_within_zero_and_one_are_refused(wrong):
    with pytest.raises(ConfigError, match=r"quantile must be in \(0, 1\), or a list of such numbers that ascend; got"):
        make_loss("quantile", quantile=wrong)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_has_a_link_that_exists(name):
    assert make_loss(name).link in LINKS
    assert make_loss(name).name == name


TARGETS = {
    "squared": ("mean", np.mean),
    "absolute": ("median", np.median),
    "quantile": ("quantile", lambda y: np.quantile(y, 0.3)),
    "poisson": ("mean", np.mean),
    "gamma": ("mean", np.mean),
    "tweedie": ("mean", np.mean),
    "logistic": ("mean", np.mean),
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_loss_is_least_at_the_prediction_it_stands_for(name):
    random = np.random.default_rng(3)
    y = random.integers(0, 2, 4001) if name == "logistic" else random.gamma(2.0, size=4001)
    loss = make_loss(name, quantile=0.3)
    grid = np.linspace(0.02, 0.98 if name == "logistic" else 6, 1500)
    score = LINKS[loss.link].link(grid)[:, None, None]
    target = y.astype(float)[:, None]
    mean = [float(loss.per_row(np.broadcast_to(one, (len(y), 1, 1)), target).mean()) for one in score]
    assert grid[int(np.argmin(mean))] == pytest.approx(TARGETS[name][1](y), abs=0.02)


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in ("gamma", "tweedie")])
def test_the_excess_is_the_slope_of_the_loss(name):
    random = np.random.default_rng(4)
    target = random.integers(0, 3 if name == "cross-entropy" else 2, 50)
    target = target if name == "cross-entropy" else target[:, None].astype(float)
    score = 2 * random.normal(size=(50, 3 if name == "cross-entropy" else 1))
    loss = make_loss(name, quantile=0.3)
    slope, _ = loss.derivatives(score[:, :, None], target)
    factor = 2.0 if name in ("squared", "absolute") else 1.0  # what is zero stays zero
    np.testing.assert_allclose(factor * loss.excess(score, target)[0], slope[:, :, 0], atol=1e-12)


@pytest.mark.parametrize("name", ["poisson", "gamma", "tweedie"])
def test_the_excess_beneath_a_logarithm_is_prediction_minus_target(name):
    score, target = np.array([[0.0], [1.0]]), np.array([[2.0], [0.5]])
    excess, slope = make_loss(name).excess(score, target)
    np.testing.assert_allclose(excess, np.exp(score) - target)
    np.testing.assert_allclose(slope, np.exp(score))


@pytest.mark.parametrize("name", ["squared", "huber", "poisson", "logistic"])
def test_the_slope_of_the_excess_is_its_derivative(name):
    score, target = np.linspace(-3, 3, 31)[:, None], np.ones((31, 1))
    excess = make_loss(name).excess
    step = (excess(score + 1e-6, target)[0] - excess(score - 1e-6, target)[0]) / 2e-6
    np.testing.assert_allclose(excess(score, target)[1], step, rtol=1e-5, atol=1e-8)


def test_extreme_scores_of_two_classes_do_not_overflow():
    score = np.array([-1e4, 1e4]).reshape(2, 1, 1)
    found = make_loss("logistic").per_row(score, np.array([[0.0], [1.0]]))
    assert found.ravel().tolist() == [0, 0]
    slope, curvature = make_loss("logistic").derivatives(score, np.array([[1.0], [0.0]]))
    assert slope.ravel().tolist() == [-1, 1]
    assert np.isfinite(curvature).all()


@pytest.mark.parametrize("name", LOSSES)
def test_curvature_is_never_so_small_that_a_step_has_no_end(name, score):
    target = np.random.default_rng(5).integers(0, 2, 20 if name == "cross-entropy" else (20, 2))
    target = target if name == "cross-entropy" else target.astype(float)
    slope, curvature = make_loss(name).derivatives(score, target)
    assert slope.shape == curvature.shape == score.shape
    assert (curvature >= 1e-4).all()


@pytest.mark.parametrize("name", ["squared", "huber", "poisson", "gamma", "tweedie", "logistic"])
def test_slope_and_curvature_are_those_of_the_formula(name):
    """At scores where the curvature is neither zero nor that of a corner."""
    score, target = np.linspace(-0.6, 0.7, 14)[:, None, None], np.full((14, 1), 0.25)
    step, formula = 1e-4, FORMULAS[name]
    above, here, below = (formula(score + shift, target[:, :, None]) for shift in (step, 0.0, -step))
    slope, curvature = make_loss(name).derivatives(score, target)
    np.testing.assert_allclose(slope, (above - below) / (2 * step), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(curvature, (above - 2 * here + below) / step**2, rtol=1e-4, atol=1e-4)


def test_where_a_loss_has_a_corner_a_parabola_with_its_slope_stands_for_it():
    score, target = np.array([-2.0, -0.5, 0.4, 3.0])[:, None, None], np.zeros((4, 1))
    for name, sizes in (("absolute", [1, 1, 1, 1]), ("quantile", [0.3, 0.3, 0.7, 0.7])):
        slope, curvature = make_loss(name, quantile=0.3).derivatives(score, target)
        np.testing.assert_allclose(np.abs(slope[:, 0, 0]), sizes)
        np.testing.assert_allclose(curvature * np.abs(score), np.abs(slope))  # its lowest point is the target


def test_targets_of_an_identity_link_are_standardised():
    assert [name for name in LOSSES if make_loss(name).is_scaled] == ["squared", "absolute", "huber", "quantile"]
    assert all(make_loss(name).link == "identity" for name in LOSSES if make_loss(name).is_scaled)


def test_an_unknown_loss_is_an_error_with_the_nearest_name():
    with pytest.raises(ConfigError, match=r"loss must be one of .*; got 'poison'. Did you mean 'poisson'"):
        make_loss("poison")


@pytest.mark.parametrize(
    ("name", "params", "match"),
    [
        ("quantile", {"quantile": 0.0}, r"quantile must be in \(0, 1\), .* got 0.0"),
        ("tweedie", {"power": 1.0}, r"tweedie_power must be in \(1, 2\); got 1.0. Use loss='poisson' for 1"),
        ("huber", {"delta": -1.0}, "huber_delta must be positive; got -1.0"),
    ],
)
def test_parameters_of_losses_are_checked(name, params, match):
    with pytest.raises(ConfigError, match=match):
        make_loss(name, **params)
