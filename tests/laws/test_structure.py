"""Laws of any model: additivity, isolation, simplex, limits, equivariance, round trip."""

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from nae.encoding import Columns, Schema
from nae.tables import TableModel, load, save
from nae.tables.gates import GATES
from nae.tables.routing import ROUTINGS
from tests.laws.assertions import (
    assert_additive,
    assert_bounded,
    assert_close,
    assert_same_contributions,
    assert_same_model,
    assert_simplex,
    assert_tight,
)
from tests.laws.drawn import models, models_with_tables
from tests.laws.models import make_model, make_table, permuted

GRID = [(gate, routing) for gate in GATES for routing in ROUTINGS]


def with_column(table: Columns, feature: int, other: Columns) -> Columns:
    """Return the table with one column taken from another."""
    arrays = list(table.arrays)
    arrays[feature] = other.arrays[feature]
    return Columns(tuple(arrays), table.names)


@given(models_with_tables(may_clamp=True))
def test_contributions_and_intercept_make_up_the_score(drawn: tuple[TableModel, Columns]):
    model, table = drawn
    contributions = model.contributions(table)
    score = model.decision_function(table)
    assert_additive(contributions, score)
    assert_close(contributions.score, score)
    if model.classes:
        assert_close(model.predict_proba(table), model.link.inverse(score))
    else:
        assert_close(model.predict(table), model.link.inverse(score))


@given(models_with_tables(may_clamp=True), st.data())
def test_a_column_never_changes_experts_or_bounds_of_another_feature(drawn: tuple[TableModel, Columns], data):
    model, table = drawn
    changed = data.draw(st.integers(0, model.n_features - 1))
    random = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    other = with_column(table, changed, make_table(random, model.schema, table.n_rows))
    before, after = (model.contributions(rows, with_experts=True) for rows in (table, other))
    untouched = [i for i in range(model.n_features) if i != changed]
    np.testing.assert_array_equal(after.experts[:, untouched], before.experts[:, untouched])
    for name in ("lower", "upper", *(("values",) if model.gate.kind == "diagonal" else ())):
        assert_close(
            getattr(after, name)[:, untouched], getattr(before, name)[:, untouched], dtype=model.experts.dtype.type
        )


@given(models_with_tables(may_clamp=True))
def test_routing_weights_lie_on_the_simplex(drawn: tuple[TableModel, Columns]):
    model, table = drawn
    found = model.contributions(table, with_experts=True)
    n_active = 1 if model.n_experts == 1 else model.routing.n_active
    assert_simplex(found.routing, n_active=n_active, axis=3)
    if model.routing.name == "equal":
        used = found.routing[found.routing > 0]
        np.testing.assert_allclose(used, 1 / n_active, rtol=1e-6)


@given(models_with_tables(may_clamp=True))
def test_expert_values_and_weights_explain_the_contribution(drawn: tuple[TableModel, Columns]):
    model, table = drawn
    found = model.contributions(table, with_experts=True)
    mixed = np.einsum("bfmko,bfmk->bfmo", found.experts, found.routing).mean(axis=2)
    if model.clamps is not None:
        mixed = model.clamps.clip(mixed, model.cells(table))
    assert_close(mixed.reshape(found.values.shape), found.values, dtype=model.experts.dtype.type)


@given(models_with_tables(max_experts=1, may_clamp=True), st.data())
def test_one_expert_is_a_generalized_additive_model(drawn: tuple[TableModel, Columns], data):
    model, table = drawn
    found = model.contributions(table)
    assert_tight(found)
    changed = data.draw(st.integers(0, model.n_features - 1))
    random = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    other = model.contributions(with_column(table, changed, make_table(random, model.schema, table.n_rows)))
    untouched = [i for i in range(model.n_features) if i != changed]
    np.testing.assert_array_equal(other.values[:, untouched], found.values[:, untouched])


@given(models_with_tables(may_clamp=True))
def test_equal_experts_leave_no_spread(drawn: tuple[TableModel, Columns]):
    model, table = drawn
    alike = replace(model, experts=np.repeat(model.experts[:, :1], model.n_experts, axis=1))
    assert_tight(alike.contributions(table))


@given(models_with_tables(may_clamp=True), st.randoms(use_true_random=False))
def test_rows_in_another_order_give_the_same_rows(drawn: tuple[TableModel, Columns], shuffle):
    model, table = drawn
    order = list(range(table.n_rows))
    shuffle.shuffle(order)
    moved = model.contributions(table.take(np.array(order)))
    found = model.contributions(table)
    expected = replace(found, values=found.values[order], lower=found.lower[order], upper=found.upper[order])
    assert_same_contributions(moved, expected, dtype=model.experts.dtype.type)


@given(models_with_tables(may_clamp=True), st.data())
def test_features_in_another_order_give_the_same_model(drawn: tuple[TableModel, Columns], data):
    model, table = drawn
    order = data.draw(st.permutations(range(model.n_features)))
    found, moved = model.contributions(table), permuted(model, order).contributions(table)
    assert moved.feature_names == tuple(found.feature_names[i] for i in order)
    for name in ("values", "lower", "upper"):
        assert_close(getattr(moved, name), getattr(found, name)[:, order], dtype=model.experts.dtype.type)


@given(models_with_tables(may_clamp=True), st.data())
def test_columns_in_another_order_are_matched_by_name(drawn: tuple[TableModel, Columns], data):
    model, table = drawn
    order = data.draw(st.permutations(range(model.n_features)))
    moved = Columns(tuple(table.arrays[i] for i in order), tuple(table.names[i] for i in order))
    np.testing.assert_array_equal(model.decision_function(moved), model.decision_function(table))


@given(models_with_tables(may_clamp=True))
def test_the_batch_size_does_not_matter(drawn: tuple[TableModel, Columns]):
    model, table = drawn
    found = model.contributions(table)
    for row in range(table.n_rows):
        one = model.contributions(table.take(np.array([row])))
        for name in ("values", "lower", "upper"):
            assert_close(getattr(one, name)[0], getattr(found, name)[row], dtype=model.experts.dtype.type)


@pytest.mark.parametrize(("gate", "routing"), GRID)
def test_chunks_of_rows_do_not_matter(gate, routing, monkeypatch):
    random = np.random.default_rng(1)
    model = make_model(random, gate=gate, routing=routing, n_active=2, n_members=2, n_outputs=2)
    table = make_table(random, model.schema, 50)
    whole = model.contributions(table, with_experts=True)
    monkeypatch.setattr("nae.tables.model._CHUNK", 7 * model.n_features * model.n_experts * 2 * 4)
    assert len(list(model.iterate(model.cells(table)))) > 5
    parts = model.contributions(table, with_experts=True)
    assert_same_contributions(parts, whole)
    assert_close(parts.experts, whole.experts)
    assert_close(parts.routing, whole.routing)
    assert_close(model.decision_function(table), whole.score)


@given(models())
def test_a_model_without_rows_answers_with_none(model: TableModel):
    empty = make_table(np.random.default_rng(0), model.schema, 0)
    found = model.contributions(empty, with_experts=True)
    assert found.values.shape[:2] == (0, model.n_features)
    assert len(found.experts) == len(found.routing) == len(model.predict(empty)) == 0


@given(models_with_tables(may_clamp=True))
def test_a_saved_model_is_the_same_to_the_last_bit(tmp_path_factory, drawn: tuple[TableModel, Columns]):
    model, table = drawn
    path = tmp_path_factory.mktemp("model") / "model.nae"
    save(model, path)
    again = load(path)
    assert_same_model(again, model)
    np.testing.assert_array_equal(again.decision_function(table), model.decision_function(table))


@given(models_with_tables(may_clamp=True))
def test_slot_bounds_hold_for_every_input(drawn: tuple[TableModel, Columns]):
    model, table = drawn
    found = model.contributions(table)
    assert_bounded(found)
    lower, upper = model.slot_bounds
    shape = (table.n_rows, model.n_features, model.n_outputs)
    for i in range(model.n_features):
        own, slots = found.values.reshape(shape)[:, i], model.schema.slots(i)
        room = 1e-5 * np.abs(model.experts).max()
        assert np.all(own >= lower[slots].min(axis=0) - room)
        assert np.all(own <= upper[slots].max(axis=0) + room)


def test_the_permutation_used_here_changes_the_tables():
    model = make_model(np.random.default_rng(2), gate="additive")
    moved = permuted(model, [2, 0, 1])
    assert isinstance(moved.schema, Schema)
    assert moved.feature_names == ("f2", "f0", "f1")
    with pytest.raises(AssertionError):
        assert_same_model(moved, model)
