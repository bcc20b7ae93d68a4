"""Bounds hold for any input: drawn, out of range, infinite, missing, unseen, and sought out to break them."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from nae.encoding import Cells, Columns, Number, Schema
from nae.links import LINKS
from nae.tables import GateTables, SoftmaxRouting, TableModel
from nae.tables.gates import GATES
from nae.tables.routing import ROUTINGS, EqualRouting, active_experts
from tests.laws.assertions import assert_bounded
from tests.laws.attack import climb, climb_smoothly
from tests.laws.drawn import models_with_tables
from tests.laws.models import make_model, make_table


def steerable_model() -> TableModel:
    """Return a model whose second feature chooses the expert of the first, almost alone."""
    features = (Number("told", np.array([0.0, 1.0])), Number("teller", np.array([0.0, 1.0, 2.0])))
    schema = Schema(features)
    experts = np.zeros((schema.n_slots, 3, 1, 1))
    experts[:4, :, 0, 0] = [[-1.0, 0.0, 1.0], [-2.0, 0.5, 3.0], [0, 0, 0], [0, 0, 0]]
    terms = np.zeros((schema.n_slots, 6, 1))
    for expert in range(3):
        terms[4 + expert, 2 * expert, 0] = 20.0  # knot k of the teller picks expert k of the told
    gate = GateTables("additive", terms, np.zeros((6, 1)))
    return TableModel(schema, experts, gate, SoftmaxRouting(3), np.zeros(1), LINKS["identity"])


@given(models_with_tables(may_clamp=True))
def test_contributions_stay_within_their_bounds(drawn: tuple[TableModel, Columns]):
    model, table = drawn
    assert_bounded(model.contributions(table))


@settings(max_examples=12)
@given(models_with_tables(may_clamp=True), st.sampled_from([1.0, -1.0]), st.data())
def test_no_context_found_by_coordinate_ascent_breaks_a_bound(drawn: tuple[TableModel, Columns], sign, data):
    model, table = drawn
    feature = data.draw(st.integers(0, model.n_features - 1))
    output = data.draw(st.integers(0, model.n_outputs - 1))
    start = model.cells(table.take(np.array([0])))
    before = model.contributions(start)
    after = model.contributions(climb(model, start, feature, output=output, sign=sign))
    assert_bounded(after)
    shape = (1, model.n_features, model.n_outputs)
    value, lower, upper = (
        part.reshape(shape)[0, feature, output] for part in (after.values, before.lower, before.upper)
    )
    rounding = 8 * np.finfo(model.experts.dtype).eps * np.abs(model.experts).max()
    assert lower - rounding <= value <= upper + rounding  # the bound was known before the context was


@settings(max_examples=8)
@given(models_with_tables(may_clamp=True), st.sampled_from([1.0, -1.0]), st.data())
def test_no_context_found_along_the_gradient_breaks_a_bound(drawn: tuple[TableModel, Columns], sign, data):
    model, table = drawn
    feature = data.draw(st.integers(0, model.n_features - 1))
    row = climb_smoothly(model, table.take(np.array([0])), feature, sign=sign, n_steps=12)
    assert_bounded(model.contributions(row))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("value", [0.0, 0.3, 1.0, 7.0, -np.inf])
def test_the_attack_reaches_a_bound_that_can_be_reached(sign, value):
    model = steerable_model()
    row = Columns((np.array([value]), np.array([1.2])), model.feature_names)
    start = model.contributions(row)
    bound = (start.upper if sign > 0 else start.lower)[0, 0]
    climbed = model.contributions(climb(model, model.cells(row), 0, sign=sign)).values[0, 0]
    assert climbed == pytest.approx(bound, abs=1e-6)
    assert abs(start.values[0, 0] - bound) > 0.1


def test_the_gradient_attack_climbs_too():
    model = steerable_model()
    row = Columns((np.array([1.0]), np.array([1.2])), model.feature_names)
    start = model.contributions(row)
    reached = model.contributions(climb_smoothly(model, row, 0))
    assert reached.values[0, 0] > start.values[0, 0] + 0.5 * (start.upper[0, 0] - start.values[0, 0])
    assert_bounded(reached)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("routing", sorted(ROUTINGS))
def test_bounds_hold_for_many_odd_rows(gate, routing):
    random = np.random.default_rng(11)
    for n_active in (1, 3, 5):
        model = make_model(random, n_experts=5, n_active=n_active, n_members=3, gate=gate, routing=routing, scale=5.0)
        assert_bounded(model.contributions(make_table(random, model.schema, 500)))


def test_equal_routing_bounds_are_the_extremes_over_all_choices_of_experts():
    random = np.random.default_rng(3)
    experts = random.standard_normal((40, 5))
    routing = EqualRouting(2)
    lower, upper = routing.bounds(experts, axis=1)
    pairs = [experts[:, [i, j]].mean(axis=1) for i in range(5) for j in range(i)]
    np.testing.assert_allclose(lower, np.min(pairs, axis=0))
    np.testing.assert_allclose(upper, np.max(pairs, axis=0))


def test_equal_routing_bounds_are_tighter_than_those_of_all_experts():
    experts = np.array([[0.0, 1.0, 5.0]])
    assert EqualRouting(2).bounds(experts, axis=1) == (np.array([0.5]), np.array([3.0]))
    assert SoftmaxRouting(2).bounds(experts, axis=1) == (np.array([0.0]), np.array([5.0]))


def test_of_equal_logits_the_first_expert_wins():
    logits = np.zeros((1, 4, 1, 1))
    assert active_experts(logits, 2)[0, :, 0, 0].tolist() == [True, True, False, False]


@given(models_with_tables(may_clamp=True))
def test_beyond_the_training_range_the_end_value_holds(drawn: tuple[TableModel, Columns]):
    model, table = drawn
    ends, beyond = list(table.arrays), list(table.arrays)
    for i, feature in enumerate(model.schema.features):
        if isinstance(feature, Number):
            ends[i] = np.resize([feature.knots[0], feature.knots[-1]], table.n_rows)
            beyond[i] = np.resize([-np.inf, np.inf], table.n_rows)
    found = [model.decision_function(Columns(tuple(arrays), table.names)) for arrays in (ends, beyond)]
    np.testing.assert_array_equal(found[0], found[1])


def test_cells_of_a_climb_belong_to_the_features_own_tables():
    model = make_model(np.random.default_rng(5), n_features=4, scale=3.0)
    start = model.cells(make_table(np.random.default_rng(6), model.schema, 1))
    found = climb(model, start, 1)
    assert isinstance(found, Cells)
    for i in range(model.n_features):
        slots = model.schema.slots(i)
        assert slots.start <= found.slot[0, i] < slots.stop
    assert found.slot[0, 1] == start.slot[0, 1]
    assert found.fraction[0, 1] == start.fraction[0, 1]
