"""The laws of any model, on models that were trained: all variants, regression and classes, odd rows."""

import numpy as np
import pandas as pd
import pytest

from nae import NAEClassifier, NAERegressor, load
from nae.tables import save
from tests.laws.assertions import assert_additive, assert_bounded, assert_same_model, assert_simplex
from tests.laws.attack import climb
from tests.laws.models import make_table

FAST = {"n_members": 2, "n_experts": 4, "hidden_dim": 8, "max_epochs": 15, "random_state": 0, "learning_rate": 1e-2}
MODELS = {
    "nae": NAERegressor(**FAST),
    "nae-e": NAERegressor(variant="nae-e", **FAST),
    "nae-d": NAERegressor(variant="nae-d", **FAST),
    "deep": NAERegressor(gate="deep", **FAST),
    "low-rank": NAERegressor(gate="low-rank", gate_rank=3, n_active=2, **FAST),
    "mlp": NAERegressor(encoder="mlp", **FAST),
    "poisson": NAERegressor("poisson", **FAST),
    "binary": NAEClassifier(**FAST),
    "classes": NAEClassifier(**FAST),
    "several": NAERegressor(**FAST),
}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "number": random.normal(size=300),
            "gaps": np.where(random.uniform(size=300) < 0.2, np.nan, random.integers(0, 40, 300)),
            "level": random.choice(["a", "b", "c", None], 300),
        }
    )


@pytest.fixture(scope="module", params=MODELS)
def fitted(request, table: pd.DataFrame) -> NAERegressor | NAEClassifier:
    score = (table["number"] * np.where(table["level"] == "a", 2, -1) + table["gaps"].fillna(20) / 20).to_numpy()
    targets = {
        "poisson": np.round(np.exp(score / 3)),
        "binary": np.where(score > 0, "yes", "no"),
        "classes": np.digitize(score, [0, 1]),
        "several": np.stack([score, -score, score**2], axis=1),
    }
    return MODELS[request.param].fit(table, targets.get(request.param, score))


def test_odd_rows_stay_within_their_bounds(fitted):
    model = fitted.model_
    rows = make_table(np.random.default_rng(1), model.schema, 500)
    found = model.contributions(rows, with_experts=True)
    assert_bounded(found)
    assert_additive(found, model.decision_function(rows))
    assert_simplex(found.routing, n_active=model.routing.n_active, axis=3)


def test_no_context_breaks_a_bound_known_before(fitted, table):
    model = fitted.model_
    shape = (1, model.n_features, model.n_outputs)
    rounding = 8 * np.finfo(model.experts.dtype).eps * np.abs(model.experts).max()
    for row in (0, 1):
        start = model.cells(table.iloc[[row]])
        before = model.contributions(start)
        for feature in range(model.n_features):
            for sign in (1.0, -1.0):
                after = model.contributions(climb(model, start, feature, sign=sign))
                assert_bounded(after)
                value, lower, upper = (
                    part.reshape(shape)[0, feature, 0] for part in (after.values, before.lower, before.upper)
                )
                assert lower - rounding <= value <= upper + rounding


def test_predictions_are_the_inverse_link_of_the_sum(fitted, table):
    found = fitted.contributions(table)
    mean = fitted.model_.link.inverse(found.score)
    if isinstance(fitted, NAEClassifier):
        proba = fitted.predict_proba(table)
        np.testing.assert_allclose(proba[:, 1] if mean.ndim == 1 else proba, mean, rtol=1e-9)
    else:
        np.testing.assert_allclose(fitted.predict(table), mean, rtol=1e-9)


def test_a_saved_model_is_the_same_to_the_last_bit(fitted, table, tmp_path):
    save(fitted.model_, tmp_path / "model.nae")
    again = load(tmp_path / "model.nae")
    assert_same_model(again, fitted.model_)
    np.testing.assert_array_equal(again.decision_function(table), fitted.model_.decision_function(table))
