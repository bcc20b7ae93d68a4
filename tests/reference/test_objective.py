"""The objective, additivity and tightness equal the paper's definitions."""

from itertools import product

import numpy as np
import pytest
import torch

from nae import metrics
from nae.encoding import Columns, build_schema
from nae.engines.torch.losses import loss_per_row
from nae.engines.torch.penalties import variation_penalty, weighted_mean
from nae.links import Identity
from nae.tables import TableModel
from nae.tables.gates import GateTables
from nae.tables.routing import SoftmaxRouting
from nae.training import make_loss
from tests.configs import network_config
from tests.reference import equations
from tests.reference.bridge import make_setting, oracle_models


def test_the_objective_is_equation_7() -> None:
    config = network_config(n_experts=4, n_active=3, hidden_dim=5)
    setting = make_setting(config, n_outputs=1)
    targets = np.random.default_rng(2).normal(size=len(setting.rows))
    weight = torch.ones(len(targets), dtype=torch.float64)
    with torch.no_grad():
        routed = setting.network(setting.cells)
        loss = loss_per_row(make_loss("squared"))(routed.score, torch.as_tensor(targets)[:, None])
        value = weighted_mean(loss, weight) + 0.7 * variation_penalty(routed.experts, weight)
    (model,) = oracle_models(setting)
    outcomes = [equations.run(model, row) for row in setting.rows]
    assert float(value) == pytest.approx(equations.objective(outcomes, list(targets), 0.7), abs=1e-10)


def test_the_spread_of_the_experts_divides_by_their_number() -> None:
    outcome = equations.Outcome(np.zeros(1), [], [np.array([[0.0], [2.0]])], [], [], [])
    assert equations.spread([outcome]) == 1.0  # with K - 1 it would be 2
    experts = torch.tensor([0.0, 2.0]).view(1, 2, 1, 1, 1)
    assert float(variation_penalty(experts, torch.ones(1))) == 1.0


def grid_model() -> tuple[TableModel, np.ndarray]:
    """Return random tables over a grid of values, and every combination of the values."""
    random = np.random.default_rng(4)
    rows = np.array(list(product(range(5), range(4), range(3))), dtype=float)
    columns = Columns(tuple(rows.T), ("a", "b", "c"))
    schema = build_schema(columns, [("number", "")] * 3, np.ones(len(rows)), n_knots=10)
    gate = GateTables("additive", random.normal(size=(schema.n_slots, 9, 1)), random.normal(size=(9, 1)))
    experts = random.normal(size=(schema.n_slots, 3, 1, 1))
    return TableModel(schema, experts, gate, SoftmaxRouting(3), np.zeros(1), Identity()), rows


def test_additivity_is_equation_15() -> None:
    model, rows = grid_model()
    values = model.contributions(rows).values
    delta = 1e-6 * values.sum(axis=1).var()
    expected = equations.additivity(values, rows, delta)
    # A value with few rows draws on its neighbours'; with many it keeps its own mean.
    found = metrics.additivity(model, np.tile(rows, (500, 1)))
    np.testing.assert_allclose(list(found.per_feature.values()), expected, atol=2e-3)
    assert float(found) == pytest.approx(np.mean(expected), abs=2e-3)
    assert 0.05 < np.mean(expected) < 0.95  # the example is neither additive nor noise


def test_tightness_is_equation_18() -> None:
    model, rows = grid_model()
    found = model.contributions(rows)
    delta = 1e-6 * found.score.std()
    expected = equations.tightness(found.values, found.lower, found.upper, rows, delta)
    np.testing.assert_allclose(list(metrics.tightness(model, rows).per_feature.values()), expected, atol=1e-10)
    assert 0.05 < np.mean(expected) < 0.95


def test_one_expert_is_additive_and_tight() -> None:
    model, rows = grid_model()
    single = TableModel(model.schema, model.experts[:, :1], model.gate, SoftmaxRouting(1), model.intercept, Identity())
    values = single.contributions(rows)
    assert equations.additivity(values.values, rows, 0.0) == pytest.approx([1.0] * 3)
    assert float(metrics.additivity(single, rows)) == pytest.approx(1.0, abs=1e-9)
    assert equations.tightness(values.values, values.lower, values.upper, rows, 1e-9) == pytest.approx([1.0] * 3)
    assert float(metrics.tightness(single, rows)) == pytest.approx(1.0, abs=1e-9)
