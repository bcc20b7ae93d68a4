"""The clamps of a fit: they leave the rows they were measured on alone, and break no promise."""

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from nae.certificates import tables_of
from nae.encoding import Cells, Columns
from nae.tables import TableModel
from nae.training.clamping import Guards, clamped
from tests.certificates.planted import monotone_model
from tests.laws.drawn import models_with_tables
from tests.laws.models import make_model, make_table


def measured(model: TableModel, cells: Cells, weights: np.ndarray | None = None, **guards: object) -> TableModel:
    """Return the model with the clamps of some rows."""
    weights = np.ones(len(cells)) if weights is None else weights
    return clamped(model, cells, weights, replace(Guards.none(model.n_features), **guards))


def rounding(model: TableModel) -> float:
    return float(64 * np.finfo(np.float32).eps * np.abs(model.experts).max())


def assert_same_clamps(one: TableModel, other: TableModel) -> None:
    for first, second in zip(one.clamps.to_arrays().values(), other.clamps.to_arrays().values(), strict=True):
        np.testing.assert_array_equal(first, second)


def test_clamps_that_differ_are_noticed(fitted):
    model, cells = fitted
    with pytest.raises(AssertionError):
        assert_same_clamps(measured(model, cells), measured(model, cells.take(slice(0, 50))))


@given(models_with_tables())
def test_rows_that_were_measured_stay_as_they_are(drawn: tuple[TableModel, Columns]):
    model, table = drawn
    found = measured(model, model.cells(table))
    np.testing.assert_allclose(
        found.contributions(table).values, model.contributions(table).values, rtol=0, atol=rounding(model)
    )


@given(models_with_tables(), st.integers(0, 99))
def test_clamps_never_leave_the_bounds_of_the_experts(drawn: tuple[TableModel, Columns], seed: int):
    model, table = drawn
    found = measured(model, model.cells(table))
    if found.clamps is None:
        assert model.n_experts == 1
        return
    least, most = model.slot_bounds
    assert np.all(found.clamps.lower >= least - rounding(model))
    assert np.all(found.clamps.upper <= most + rounding(model))
    assert np.all(found.clamps.lower <= found.clamps.upper)
    other = make_table(np.random.default_rng(seed), model.schema, 30)
    free, kept = model.contributions(other), found.contributions(other)
    assert np.all(kept.lower >= free.lower - rounding(model))
    assert np.all(kept.upper <= free.upper + rounding(model))


@pytest.fixture
def fitted() -> tuple[TableModel, Cells]:
    """Return a model whose clamps are narrower than its bounds, and rows for it."""
    random = np.random.default_rng(0)
    model = make_model(random, n_features=5, n_experts=6, n_members=3, gate="low-rank")
    return model, model.cells(make_table(random, model.schema, 3000))


def test_clamps_are_narrower_than_the_bounds(fitted):
    model, cells = fitted
    free, found = model.contributions(cells), measured(model, cells).contributions(cells)
    assert (found.upper - found.lower).sum() < 0.9 * (free.upper - free.lower).sum()


def test_rows_that_were_not_measured_stay_nearly_all_as_they_are(fitted):
    model, cells = fitted
    found = measured(model, cells.take(slice(0, 1500)))
    others = cells.take(slice(1500, None))
    moved = np.abs(found.contributions(others).values - model.contributions(others).values)
    assert (moved > rounding(model)).mean() < 0.005


def test_a_slot_without_rows_keeps_the_bounds_of_the_experts(fitted):
    model, cells = fitted
    empty = np.setdiff1d(np.arange(model.schema.n_slots), np.concatenate([cells.slot, cells.upper]))
    assert len(empty) > 0
    free = replace(model, clamps=None).slot_bounds
    np.testing.assert_array_equal(np.stack(measured(model, cells).slot_bounds)[:, empty], np.stack(free)[:, empty])


def test_chunks_and_the_order_of_the_rows_do_not_matter(fitted, monkeypatch):
    model, cells = fitted
    found = measured(model, cells)
    assert_same_clamps(measured(model, cells.take(np.random.default_rng(1).permutation(len(cells)))), found)
    monkeypatch.setattr("nae.tables.model._CHUNK", 5000)
    chunked = measured(model, cells)
    np.testing.assert_allclose(chunked.clamps.lower, found.clamps.lower, atol=1e-12)


def test_weights_are_rows_that_are_repeated(fitted):
    model, cells = fitted
    weights = np.random.default_rng(1).integers(0, 4, len(cells))
    repeated = cells.take(np.repeat(np.arange(len(cells)), weights))
    assert_same_clamps(measured(model, cells, weights.astype(float)), measured(model, repeated))


def test_a_row_without_weight_counts_for_nothing(fitted):
    model, cells = fitted
    weights = np.zeros(len(cells))
    weights[:700] = 1.0
    assert_same_clamps(measured(model, cells, weights), measured(model, cells.take(slice(0, 700))))


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("gate", ["additive", "low-rank"])
@pytest.mark.parametrize("seed", range(4))
def test_a_monotone_model_stays_monotone(gate, direction, seed):
    random = np.random.default_rng(seed)
    model = monotone_model(random, gate=gate)
    model = model if direction > 0 else replace(model, experts=-model.experts)
    cells = model.cells(make_table(random, model.schema, 200))
    guards = {"direction": np.array([direction, 0, 0]), "n_ordered": np.array([6, 1, 1])}
    found = measured(model, cells, **guards)
    assert np.all(direction * np.diff(found.clamps.lower[:6], axis=0) >= 0)
    assert np.all(direction * np.diff(found.clamps.upper[:6], axis=0) >= 0)
    assert tables_of(found, np.ones(1)).drop(0, direction) <= 1e-12
    plain = measured(model, cells).clamps
    assert np.all(found.clamps.lower <= plain.lower)
    assert np.all(found.clamps.upper >= plain.upper)


def test_without_a_direction_clamps_may_fall():
    random = np.random.default_rng(0)
    falls = []
    for seed in range(8):
        model = monotone_model(np.random.default_rng(seed), gate="additive")
        lower = measured(model, model.cells(make_table(random, model.schema, 60))).clamps.lower[:6]
        falls.append(bool((np.diff(lower, axis=0) < 0).any()))
    assert any(falls)


@settings(max_examples=20)
@given(models_with_tables())
def test_a_curved_feature_is_left_alone(drawn: tuple[TableModel, Columns]):
    model, table = drawn
    is_free = np.arange(model.n_features) == 0
    found = measured(model, model.cells(table), is_free=is_free)
    if found.clamps is None:
        return
    own, (least, most) = model.schema.slots(0), model.slot_bounds
    assert np.all(found.clamps.lower[own] <= least[own])
    assert np.all(found.clamps.upper[own] >= most[own])


@settings(max_examples=20)
@given(models_with_tables())
def test_clamps_of_ordered_outputs_are_ordered(drawn: tuple[TableModel, Columns]):
    model, table = drawn
    model = replace(model, experts=np.sort(model.experts, axis=2))
    found = measured(model, model.cells(table), is_ordered=True)
    if found.clamps is not None:
        assert np.all(np.diff(found.clamps.lower, axis=1) >= 0)
        assert np.all(np.diff(found.clamps.upper, axis=1) >= 0)
        values = found.contributions(table).values.reshape(table.n_rows, model.n_features, -1)
        assert np.diff(values, axis=2).min(initial=0.0) >= -rounding(model)
