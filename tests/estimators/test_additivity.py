"""The dial: additivity is asked for."""

import numpy as np
import pytest

from nae import NAEClassifier, NAERegressor, metrics

FAST = {"n_members": 1, "n_experts": 4, "hidden_dim": 16, "random_state": 0}


@pytest.fixture(name="X", scope="module")
def table() -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (600, 3))


@pytest.fixture(scope="module")
def y(X) -> np.ndarray:
    return X[:, 0] + np.where(X[:, 1] > 0, X[:, 2], -X[:, 2])


@pytest.mark.parametrize("estimator", [NAERegressor, NAEClassifier])
def test_full_additivity_is_a_generalized_additive_model(X, y, estimator):
    target = y > 0 if estimator is NAEClassifier else y
    model = estimator(additivity=1.0, max_epochs=10, **FAST).fit(X, target)
    found = model.contributions(X)
    np.testing.assert_array_equal(found.lower, found.upper)
    assert float(metrics.additivity(model, X)) == pytest.approx(1, abs=1e-6)
    moved = X.copy()
    moved[:, 1] = 0.0
    np.testing.assert_array_equal(model.contributions(moved).values[:, [0, 2]], found.values[:, [0, 2]])


@pytest.mark.filterwarnings("ignore:additivity=.* was asked for")
def test_more_additivity_is_measured_where_more_is_asked_for(X, y):
    found = {}
    for target in (None, 0.7, 0.95):
        model = NAERegressor(additivity=target, max_epochs=60, batch_size=128, **FAST).fit(X, y)
        found[target] = float(metrics.additivity(model, X))
    assert found[None] < found[0.95]
    assert found[0.95] > 0.85
    assert found[0.7] > 0.6


@pytest.mark.filterwarnings("ignore:additivity=0.9 was asked for")
def test_the_dial_prefers_epochs_that_reached_the_target(X, y):
    history = NAERegressor(additivity=0.9, max_epochs=60, batch_size=128, **FAST).fit(X, y).history_
    reached = [epoch.epoch for epoch in history if epoch.additivity >= 0.88 and epoch.validation is not None]
    if reached:
        assert history.best_epoch in reached
    else:
        assert history.best_epoch == len(history)


def test_the_variation_penalty_draws_experts_together(X, y):
    def spread(penalty: float) -> float:
        model = NAERegressor(variation_penalty=penalty, context_penalty=0.0, max_epochs=40, **FAST).fit(
            X[:200], y[:200]
        )
        return float(model.model_.experts.var(axis=1).mean())

    assert spread(30.0) < 0.3 * spread(0.0)


def test_the_output_penalty_shrinks_contributions(X, y):
    def size(penalty: float) -> float:
        model = NAERegressor(output_penalty=penalty, max_epochs=40, **FAST).fit(X[:200], y[:200])
        return float((model.contributions(X).values ** 2).mean())

    assert size(10.0) < 0.3 * size(0.0)
