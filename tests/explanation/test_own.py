"""The own effect has one definition: what is shown, what a row is told and what additivity says are the same curve."""

import numpy as np
import pytest

from nae import NAERegressor, metrics
from nae._typing import Array
from nae.encoding import Category, Columns, Number, Schema
from nae.explanation import GlobalExplanation, with_statistics
from nae.links import LINKS
from nae.tables import GateTables, SoftmaxRouting, TableModel
from nae.tables.lookup import interpolate
from tests.explanation.examples import explained_model
from tests.laws.models import make_model, make_table

LEVELS = tuple("abcdefghijklmnopqrstuvwxy")


def spread(values: Array, weights: Array) -> Array:
    share = weights / weights.sum()
    return np.asarray(np.tensordot(share, (values - np.tensordot(share, values, axes=1)) ** 2, axes=1))


@pytest.mark.parametrize("n_rows", [7, 300])
@pytest.mark.parametrize("gate", ["additive", "low-rank", "deep", "diagonal"])
@pytest.mark.parametrize("shape", [{"n_outputs": 1, "n_members": 2}, {"n_outputs": 3}, {"n_experts": 1}])
def test_the_variance_of_the_local_shifts_is_the_stored_residual(gate: str, shape: dict, n_rows: int) -> None:
    random = np.random.default_rng(0)
    model = make_model(random, n_features=4, gate=gate, **shape)
    rows, weights = make_table(random, model.schema, n_rows), random.integers(0, 4, n_rows) / 8
    model = with_statistics(model, rows, sample_weight=weights)
    local, statistics = model.explain_local(rows), model.statistics
    assert statistics is not None
    exact = {"rtol": 1e-9, "atol": 1e-18}
    np.testing.assert_allclose(spread(local.values, weights), statistics.variance, **exact)
    np.testing.assert_allclose(spread(local.shift, weights), statistics.residual, **exact)
    np.testing.assert_allclose(spread(local.shift.sum(axis=1), weights), statistics.additive_variance, **exact)


def test_the_law_holds_for_a_fitted_model_on_its_own_rows() -> None:
    random = np.random.default_rng(1)
    X, weights = random.uniform(-1, 1, (400, 3)), random.uniform(0.5, 2, 400)
    model = NAERegressor(n_members=2, max_epochs=15, hidden_dim=8, random_state=0)
    model.fit(X, X[:, 0] * X[:, 1] + X[:, 2], sample_weight=weights)
    statistics = model.model_.statistics
    assert statistics is not None
    assert statistics.residual.max() > 1e-3
    shift = model.explain_local(X).shift
    np.testing.assert_allclose(spread(shift, weights), statistics.residual, rtol=1e-5, atol=1e-9)
    additivity = metrics.additivity(model, X, sample_weight=weights)
    assert float(additivity) == pytest.approx(model.explain_global().additivity, rel=1e-5)


def test_additivity_of_other_rows_is_what_their_local_explanations_say() -> None:
    model, rows = explained_model(2, n_features=4, n_outputs=2)
    local, one = model.explain_local(rows), np.ones(12)
    delta = 1e-6 * spread(local.score, one)  # a contribution that hardly varies counts as additive
    ratio = 1 - spread(local.shift, one) / (spread(local.values, one) + delta)
    found = metrics.additivity(model, rows)
    np.testing.assert_allclose(list(found.per_feature.values()), ratio.clip(0, 1).mean(axis=1), rtol=1e-9)
    assert 0.1 < float(found) < 0.9


def test_without_statistics_the_rows_at_hand_give_the_curve() -> None:
    random = np.random.default_rng(3)
    model = make_model(random, n_features=4, n_members=2)
    rows, weights = make_table(random, model.schema, 90), random.integers(0, 3, 90).astype(float)
    expected = with_statistics(model, rows, sample_weight=weights).explain_global()
    found = metrics.additivity(model, rows, sample_weight=weights)
    assert float(found) == pytest.approx(expected.additivity, rel=1e-12)
    assert list(found.per_feature.values()) == pytest.approx([shape.additivity[0] for shape in expected.features])


def test_weighted_additivity_is_what_own_values_explain_of_all_the_variance() -> None:
    random = np.random.default_rng(5)
    model = make_model(random, n_features=5, n_outputs=3, n_members=2)
    rows = make_table(random, model.schema, 200)
    model = with_statistics(model, rows)
    local, one = model.explain_local(rows), np.ones(200)
    total, context = spread(local.values, one).sum(axis=0), spread(local.shift, one).sum(axis=0)
    found = model.explain_global()
    assert found.additivity_weighted == pytest.approx(np.mean(1 - context / total), abs=1e-5)
    assert found.additivity_weighted == pytest.approx(float(metrics.additivity_weighted(model, rows)), rel=1e-12)
    assert abs(found.additivity_weighted - found.additivity) > 0.01
    assert GlobalExplanation.from_json(found.to_json()).additivity_weighted == found.additivity_weighted


def turned_over(feature: Number | Category) -> TableModel:
    """Return a model in which ``other`` turns the effect of a feature over: it has no effect of its own."""
    schema = Schema((feature, Number("other", np.array([-1.0, 1.0]))))
    experts = np.zeros((schema.n_slots, 2, 1, 1))
    experts[: feature.n_values, 0], experts[: feature.n_values, 1] = 1.0, -1.0
    terms = np.zeros((schema.n_slots, 4, 1))
    terms[feature.n_slots : feature.n_slots + 2, 0, 0] = -1.0, 1.0  # the logit of the feature's first expert
    gate = GateTables("additive", terms, np.zeros((4, 1)))
    return TableModel(schema, experts, gate, SoftmaxRouting(2), np.zeros(1), LINKS["identity"])


@pytest.mark.parametrize(
    ("feature", "draw"),
    [
        (Number("value", np.linspace(0, 1, 125)), lambda random: random.uniform(size=500)),
        (Number("value", np.linspace(0, 1, 125)), lambda random: random.uniform(size=500) ** 4),
        (Category("value", LEVELS), lambda random: random.permuted(np.array(LEVELS * 4, dtype=object))),
    ],
    ids=["four rows a knot", "few rows at one end", "four rows a level"],
)
def test_few_rows_at_a_value_do_not_explain_themselves(feature: Number | Category, draw) -> None:
    found = []
    for seed in range(10):
        random = np.random.default_rng(seed)
        value = draw(random)
        table = Columns((value, random.choice([-1.0, 1.0], size=len(value))), ("value", "other"))
        model = with_statistics(turned_over(feature), table)
        found.append(float(model.explain_global().feature("value").additivity[0]))
    assert np.mean(found) < 0.08  # by themselves, four rows a value would explain a quarter


def test_a_level_with_rows_enough_keeps_their_mean() -> None:
    value = np.repeat(np.array(["a", "b"], dtype=object), 40)
    other = np.concatenate([np.ones(40), np.tile([1.0, -1.0], 20)])
    model = with_statistics(turned_over(Category("value", ("a", "b"))), Columns((value, other), ("value", "other")))
    shape = model.explain_global().feature("value")
    mean = dict(zip(shape.labels, shape.mean[:, 0], strict=True))
    assert mean["a"] == pytest.approx(np.tanh(0.5))
    assert mean["b"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("shape", [{"n_experts": 1}, {"gate": "diagonal"}, {"n_features": 1}])
def test_what_no_other_feature_can_change_is_exactly_additive(shape: dict) -> None:
    random = np.random.default_rng(4)
    model = make_model(random, **{"n_features": 3, "n_members": 2, **shape})
    rows = make_table(random, model.schema, 200)
    model = with_statistics(model, rows)
    assert float(metrics.additivity(model, rows)) == 1.0
    assert model.explain_global().additivity == model.explain_global().additivity_weighted == 1.0
    np.testing.assert_array_equal(model.explain_local(rows).shift, 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_mean_effect_leaves_less_than_the_mean_routing_that_training_steers_by(seed: int) -> None:
    random = np.random.default_rng(seed)
    model = make_model(random, n_features=4, n_experts=4)
    rows = make_table(random, model.schema, 2000)
    model = with_statistics(model, rows)
    assert model.statistics is not None
    cells = model.cells(rows)
    mean_routing = model.routing.weights(model.gate.logits(cells)).mean(axis=0)  # (expert, feature, member)
    own = np.einsum("bfkom,kfm->bfo", interpolate(model.experts, cells), mean_routing)
    left = ((model.explain_local(rows).values - own) ** 2).mean(axis=0)
    assert (model.statistics.residual <= left * 1.01 + 1e-12).all()
    assert model.statistics.residual.sum() < 0.95 * left.sum()
