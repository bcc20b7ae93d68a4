"""Theorem 3: with lambda the spread of the experts falls, and in the limit the model is additive.

What is proved is that the spread does not rise and that additivity tends to one; that additivity itself rises all the
way is not, so it is not asked here.
"""

from itertools import pairwise

import numpy as np
import pytest

from nae import NAERegressor, datasets, metrics

pytestmark = pytest.mark.slow
STRENGTHS = (0.0, 0.1, 1.0, 10.0, 100.0)


@pytest.fixture(scope="module")
def path() -> list[tuple[float, NAERegressor]]:
    """Return models of a wave that a second feature turns over, along a path of variation penalties."""
    X, y = datasets.multimodal(1000, seed=1)
    small = {"n_members": 1, "n_experts": 4, "hidden_dim": 16, "max_epochs": 100, "batch_size": 250, "n_jobs": 1}
    return [
        (strength, NAERegressor(variation_penalty=strength, random_state=0, **small).fit(X, y))
        for strength in STRENGTHS
    ]


def spread_of(model: NAERegressor) -> float:
    X, y = datasets.multimodal(1000, seed=1)
    experts = model.contributions(X, with_experts=True).experts  # (row, feature, member, expert, output)
    return float(experts.var(axis=3).mean() / y.var())


def test_the_spread_of_the_experts_falls_along_the_path(path: list[tuple[float, NAERegressor]]) -> None:
    spreads = [spread_of(model) for _, model in path]
    assert all(later < 0.95 * earlier for earlier, later in pairwise(spreads))
    assert spreads[-1] < 0.01 * spreads[0]


def test_the_spread_is_at_most_the_loss_of_an_additive_model_over_lambda(
    path: list[tuple[float, NAERegressor]],
) -> None:
    for strength, model in path[1:]:
        assert spread_of(model) <= 1.0 / strength  # a constant is additive, and its loss is one


def test_additivity_tends_to_one_and_the_gate_stops_mattering(path: list[tuple[float, NAERegressor]]) -> None:
    X, _ = datasets.multimodal(1000, seed=1)
    first, last = path[0][1], path[-1][1]
    assert float(metrics.additivity(first, X)) < 0.6
    assert float(metrics.additivity(last, X)) > 0.95
    turned = X | {"x2": -X["x2"]}
    moved = np.abs(last.contributions(turned).feature("x1") - last.contributions(X).feature("x1"))
    assert moved.max() < 0.1
    before = np.abs(first.contributions(turned).feature("x1") - first.contributions(X).feature("x1"))
    assert before.max() > 0.5
