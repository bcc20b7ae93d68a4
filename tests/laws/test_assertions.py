"""Every assertion of the laws can fail."""

from dataclasses import replace

import numpy as np
import pytest

from nae import Contributions
from nae.tables import TrainingSummary
from tests.laws.assertions import (
    assert_additive,
    assert_bounded,
    assert_close,
    assert_same_contributions,
    assert_same_model,
    assert_simplex,
    assert_tight,
)
from tests.laws.models import make_model


@pytest.fixture
def contributions() -> Contributions:
    values = np.array([[1.0, -2.0], [0.5, 0.0]])
    return Contributions(values, values - 1, values + 1, np.array(3.0), ("a", "b"))


def test_close_arrays_pass_and_distant_or_misshapen_ones_fail():
    assert_close(np.ones(2), np.ones(2) + 1e-12)
    with pytest.raises(AssertionError):
        assert_close(np.ones(2), np.ones(2) + 1e-6)
    with pytest.raises(AssertionError):
        assert_close(np.ones(2), np.ones((2, 1)))


def test_a_score_that_is_not_the_sum_fails(contributions):
    assert_additive(contributions, np.array([2.0, 3.5]))
    with pytest.raises(AssertionError):
        assert_additive(contributions, np.array([2.0, 3.6]))


@pytest.mark.parametrize("name", ["lower", "upper"])
def test_a_contribution_beyond_a_bound_fails(contributions, name):
    assert_bounded(contributions)
    broken = getattr(contributions, name).copy()
    broken[1, 0] = 0.5 + (1e-15 if name == "lower" else -1e-15)
    with pytest.raises(AssertionError):
        assert_bounded(replace(contributions, **{name: broken}))


@pytest.mark.parametrize("name", ["values", "lower", "upper"])
def test_a_bound_that_is_no_number_fails(contributions, name):
    with pytest.raises(AssertionError):
        assert_bounded(replace(contributions, **{name: np.full((2, 2), np.nan)}))


def test_bounds_with_room_between_them_fail(contributions):
    assert_tight(replace(contributions, lower=contributions.values, upper=contributions.values))
    with pytest.raises(AssertionError):
        assert_tight(contributions)


@pytest.mark.parametrize(
    "weights",
    [
        pytest.param([0.5, 0.6, 0.0], id="sum"),
        pytest.param([1.5, -0.5, 0.0], id="sign"),
        pytest.param([0.5, 0.25, 0.25], id="count"),
    ],
)
def test_weights_off_the_simplex_fail(weights):
    assert_simplex(np.array([[0.5, 0.5, 0.0]]), n_active=2, axis=1)
    with pytest.raises(AssertionError):
        assert_simplex(np.array([weights]), n_active=2, axis=1)


@pytest.mark.parametrize("name", ["values", "lower", "upper", "intercept"])
def test_explanations_that_differ_fail(contributions, name):
    assert_same_contributions(contributions, contributions)
    other = replace(contributions, **{name: getattr(contributions, name) + 1e-6})
    with pytest.raises(AssertionError):
        assert_same_contributions(contributions, other)


def test_models_that_differ_in_one_bit_fail():
    model = make_model(np.random.default_rng(0), gate="low-rank")
    assert_same_model(model, replace(model, experts=model.experts.copy()))
    experts = model.experts.copy()
    experts[0, 0, 0, 0] = np.nextafter(experts[0, 0, 0, 0], np.inf)
    changes = [
        {"experts": experts},
        {"experts": model.experts.astype(np.float32)},
        {"gate": replace(model.gate, bias=model.gate.bias + 1)},
        {"gate": replace(model.gate, mix=None)},
        {"outputs": ("other",)},
        {"training": TrainingSummary(loss="squared")},
        {"schema": replace(model.schema, has_names=False)},
        {"schema": replace(model.schema, features=model.schema.features[:2])},
    ]
    for change in changes:
        with pytest.raises(AssertionError):
            assert_same_model(model, replace(model, **change))
