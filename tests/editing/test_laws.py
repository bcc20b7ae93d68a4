"""What was edited is proven, what was not stays, and nothing changes by more than is proven; for every gate."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings

import nae
from nae._typing import Array
from nae.editing import Editor
from nae.editing.directions import monotone_together
from nae.editing.part import Part, slot_weight
from nae.encoding import Category, Cells, Columns, Number
from nae.errors import ConfigError
from nae.tables import TableModel
from nae.tables.gates import GATES
from tests.laws.drawn import models
from tests.laws.models import make_model, make_table

SIGNED = {"who": "risk team", "why": "agreed limit"}
FEATURES = (
    Number("income", np.arange(6.0)),
    Number("age", np.array([0.0, 10.0, 15.0, 30.0]), has_missing=True),
    Category("town", ("Ulm", "Köln"), ("Aalen", "Bonn")),
)
JUMPS = [("softmax", 3), ("softmax", 2), ("equal", 3), ("equal", 2)]


def editor(model: TableModel) -> Editor:
    return nae.edit(model, **SIGNED)


def values_of(model: TableModel, table: Columns | Cells) -> Array:
    """Return the contributions of rows, (row, feature, output)."""
    found = model.contributions(table)
    return found.values.reshape(len(found), model.n_features, model.n_outputs)


def numbers(model: TableModel, least: int = 1) -> list[str]:
    """Return the numbers with at least so many knots."""
    return [
        one.name
        for one in model.schema.features
        if isinstance(one, Number) and not one.is_empty and one.n_values >= least
    ]


def assert_close(found: Array, expected: Array, model: TableModel) -> None:
    size = max(float(np.abs(model.experts).max()), 1.0)
    np.testing.assert_allclose(found, expected, atol=(2e-4 if model.experts.dtype == np.float32 else 1e-9) * size)


def test_values_that_differ_are_noticed() -> None:
    model = make_model(np.random.default_rng(0), features=FEATURES)
    with pytest.raises(AssertionError):
        assert_close(np.zeros(1), np.array([1e-3]), model)


def is_smooth(model: TableModel) -> bool:
    """Return whether no weight jumps, so that rounding changes little."""
    return model.routing.n_active >= model.n_experts


def value_at(model: TableModel, table: Columns, feature: int) -> Any:
    """Return a value of the first row that a feature can be pinned at."""
    kind, value = model.schema.features[feature], table.arrays[feature][0]
    if isinstance(kind, Category):
        return value if value in (*kind.levels, *kind.rare) else None
    return float(value) if np.isfinite(value) else None


@settings(max_examples=25)
@given(models(may_clamp=True), st.data())
def test_a_pinned_feature_answers_as_at_one_value(model: TableModel, data: st.DataObject) -> None:
    assume(is_smooth(model))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    table = make_table(random, model.schema, 20)
    feature = data.draw(st.integers(0, model.n_features - 1))
    value = value_at(model, table, feature)
    name = model.feature_names[feature]
    edited = editor(model).pin(name, at=value).model
    arrays = list(table.arrays)
    arrays[feature] = np.full(
        20,
        np.nan if value is None and isinstance(model.schema.features[feature], Number) else value,
        dtype=arrays[feature].dtype,
    )
    pinned = Columns(tuple(arrays), table.names)
    assert_close(values_of(edited, table), values_of(model, pinned), model)
    assert_close(edited.decision_function(table), model.decision_function(pinned), model)
    assert edited.certify(isolated=[name]).all_proven
    assert np.ptp(values_of(edited, table)[:, feature], axis=0).max() < 1e9


@settings(max_examples=20)
@given(models(may_clamp=True), st.data())
def test_what_is_dropped_adds_nothing_and_changes_nothing(model: TableModel, data: st.DataObject) -> None:
    feature = data.draw(st.integers(0, model.n_features - 1))
    name = model.feature_names[feature]
    edited = editor(model).drop(name).model
    random = np.random.default_rng(0)
    table, other = (make_table(random, model.schema, 20) for _ in range(2))
    arrays = list(table.arrays)
    arrays[feature] = other.arrays[feature]
    assert not values_of(edited, table)[:, feature].any()
    moved = Columns(tuple(arrays), table.names)
    if is_smooth(model):
        assert_close(edited.decision_function(table), edited.decision_function(moved), model)
    assert edited.certify(isolated=[name], unchanged=[name]).all_proven
    if model.n_outputs < 3:
        assert edited.certify(max_effect={name: 0}).all_proven


@settings(max_examples=25)
@given(models(may_clamp=True), st.data())
def test_a_cap_is_proven(model: TableModel, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(model.feature_names))
    limit = data.draw(st.sampled_from([0.0, 0.05, 1.0, 1e3]))
    edited = editor(model).cap(name, limit).model
    assert edited.training.constraints == {"max_effect": {name: limit}}
    assert edited.certify().all_proven
    for output in model.outputs if model.n_outputs > 2 else [None]:
        assert edited.certify(max_effect={name: limit}, output=output).all_proven


@pytest.mark.parametrize("gate", GATES)
def test_what_holds_already_changes_nothing(gate: str) -> None:
    model = make_model(np.random.default_rng(0), features=FEATURES, gate=gate, n_members=2)
    once = editor(model).cap("town", 1.0).monotone("income")
    twice = once.cap("town", 1.0).monotone("income").cap("town", 1.5)
    assert [one.bound for one in twice.record[2:]] == [0, 0, 0]
    assert twice.record[-1].after == once.record[-1].after
    assert twice.model.training.constraints == once.model.training.constraints
    free = editor(model).cap("town", 1e3).model
    assert free.experts is model.experts
    assert free.training.intercept_shift == model.training.intercept_shift


def test_a_cap_leaves_what_lies_within_it() -> None:
    model = make_model(np.random.default_rng(0), features=FEATURES, n_experts=1)
    slots = model.schema.slots(2)
    model.experts[slots, 0, 0, 0] = [0.0, 0.2, 0.4, 0.7, -0.1]
    found = editor(model).cap("town", 0.6).model.experts[slots, 0, 0, 0]
    assert found.max() - found.min() == pytest.approx(0.6)
    kept = (model.experts[slots, 0, 0, 0] > found.min()) & (model.experts[slots, 0, 0, 0] < found.max())
    assert kept.sum() >= 2
    np.testing.assert_array_equal(found[kept], model.experts[slots, 0, 0, 0][kept])


@settings(max_examples=20)
@given(models(may_clamp=True), st.data())
def test_a_level_has_the_value_that_was_set_and_all_other_rows_keep_theirs(
    model: TableModel, data: st.DataObject
) -> None:
    feature = data.draw(st.integers(0, model.n_features - 1))
    kind = model.schema.features[feature]
    levels = [None, *(kind.levels if isinstance(kind, Category) else ())]
    level = data.draw(st.sampled_from(levels))
    value = data.draw(st.sampled_from([0.0, -0.25, 3.5]))
    edited = editor(model).set_level(kind.name, level, value).model
    table = make_table(np.random.default_rng(1), model.schema, 40)
    cells = model.cells(table)
    slot = model.schema.offsets[feature] + (kind.n_values if level is None else kind.labels.index(level))
    is_there = cells.slot[:, feature] == slot
    found, before = edited.contributions(table), model.contributions(table)
    for array in (found.values, found.lower, found.upper):
        np.testing.assert_allclose(array.reshape(40, model.n_features, -1)[is_there, feature], value, atol=1e-6)
    np.testing.assert_array_equal(found.values[~is_there], before.values[~is_there])
    others = np.delete(np.arange(model.n_features), feature)
    np.testing.assert_array_equal(found.values[:, others], before.values[:, others])


def monotone_cases() -> list[Any]:
    """Return every gate, routing and form; those that differ least from others are slow."""
    cases = product(GATES, JUMPS, (True, False, None))
    return [
        pytest.param(
            gate, *jumps, keep, marks=[pytest.mark.slow] * (jumps in JUMPS[1:3] or (keep is None and jumps != JUMPS[0]))
        )
        for gate, jumps, keep in cases
    ]


@pytest.mark.parametrize(("gate", "routing", "n_active", "keep"), monotone_cases())
def test_a_direction_is_proven(gate: str, routing: str, n_active: int, keep: bool | None) -> None:
    for seed, sign in ((0, "+"), (1, "-")):
        random = np.random.default_rng(seed)
        dtype = (np.float32, np.float64)[seed]
        shape = {"n_experts": 3, "n_active": n_active, "n_members": 2, "n_outputs": 1 + seed}
        model = make_model(random, features=FEATURES, gate=gate, routing=routing, dtype=dtype, **shape)
        if keep and gate in ("deep", "diagonal"):
            with pytest.raises(ConfigError, match=f"keep_interactions=True needs a gate .* this {gate} gate has none"):
                editor(model).monotone("income", sign, keep_interactions=keep)
            continue
        edited = editor(model).monotone("income", sign, keep_interactions=keep).model
        assert edited.certify(monotone={"income": sign}).all_proven
        assert edited.training.constraints == {"monotone": {"income": sign}}
        assert not model.certify(monotone={"income": sign}).all_proven
        again = editor(edited).monotone("age", sign, keep_interactions=keep).model
        assert again.certify(monotone={"age": sign}).all_proven


@pytest.mark.parametrize("gate", ["additive", "low-rank"])
def test_a_direction_can_leave_interactions(gate: str) -> None:
    model = make_model(np.random.default_rng(0), features=FEATURES, gate=gate, n_members=2)
    together = editor(model).monotone("income", keep_interactions=True).model
    alone = editor(model).monotone("income", keep_interactions=False).model
    assert together.certify(isolated=["income"])[0].verdict == "refuted"
    assert alone.certify(isolated=["income"])[0].verdict == "proven"


def test_a_monotone_model_is_hardly_changed_by_its_direction() -> None:
    from tests.certificates.planted import monotone_model

    model = monotone_model(np.random.default_rng(0), gate="additive")
    found = monotone_together(Part(model, 0, slot_weight(model)), sign=1).model
    assert nae.compare(model, found).certificate().bound < 1e-4 * np.ptp(model.experts)


@settings(max_examples=20)
@given(models(may_clamp=True), st.data())
def test_a_smooth_curve_has_no_wider_bounds(model: TableModel, data: st.DataObject) -> None:
    names = numbers(model, least=3)
    assume(names)
    name = data.draw(st.sampled_from(names))
    strength = data.draw(st.sampled_from([0.01, 1.0, 1e4]))
    edited = editor(model).smooth(name, strength).model
    slots = model.schema.slots(model.schema.index(name))
    for extreme, sign in ((np.min, -1), (np.max, 1)):
        before, after = (extreme(one.experts[slots], axis=(0, 1)) for one in (model, edited))
        assert (sign * (after - before) <= 1e-5 * np.abs(model.experts).max()).all()
    others = np.delete(np.arange(len(model.experts)), np.arange(slots.start, slots.stop - 2))
    np.testing.assert_array_equal(edited.experts[others], model.experts[others])


def test_a_straight_line_stays_and_a_rough_one_becomes_smooth() -> None:
    knots = np.array([0.0, 1.0, 1.5, 4.0, 9.0, 10.0])
    model = make_model(np.random.default_rng(0), features=(Number("x", knots), FEATURES[0]), n_experts=1)
    model.experts[:6, 0, 0, 0] = 2 * knots
    np.testing.assert_allclose(editor(model).smooth("x", 9.0).model.experts[:6, 0, 0, 0], 2 * knots, atol=1e-12)
    model.experts[:6, 0, 0, 0] += np.array([0.0, 1.0, -1.0, 1.0, -1.0, 0.0])

    def roughness(one: TableModel) -> float:
        slopes = np.diff(one.experts[:6, 0, 0, 0]) / np.diff(knots)
        return float(np.abs(np.diff(slopes)).sum())

    found = [roughness(model), *(roughness(editor(model).smooth("x", power).model) for power in (0.1, 1.0, 10.0))]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.2 * found[0]


@pytest.mark.parametrize("strength", [0.1, 3.0, 1e3])
@pytest.mark.parametrize("gate", [gate for gate in GATES if gate != "diagonal"])
def test_smoothing_keeps_a_direction(gate: str, strength: float) -> None:
    from tests.certificates.planted import monotone_model

    model = monotone_model(np.random.default_rng(0), gate=gate)
    assert editor(model).smooth("income", strength).model.certify(monotone={"income": "+"}).all_proven


@settings(max_examples=20)
@given(st.integers(0, 2**16), st.sampled_from([0.1, 10.0]))
def test_smoothing_keeps_a_convex_curve(seed: int, strength: float) -> None:
    random = np.random.default_rng(seed)
    knots = np.cumsum(10.0 ** random.uniform(-2, 2, 9))
    model = make_model(random, features=(Number("x", knots), FEATURES[0]), n_experts=1)
    slopes = np.sort(random.standard_normal(8))
    model.experts[:9, 0, 0, 0] = np.append(0.0, np.cumsum(slopes * np.diff(knots)))
    found = editor(model).smooth("x", strength).model.experts[:9, 0, 0, 0]
    assert (np.diff(np.diff(found) / np.diff(knots)) >= -1e-9 * np.abs(slopes).max()).all()


EDITS: dict[str, Callable[[Editor], Editor]] = {
    "pin": lambda one: one.pin("income", at=2.5),
    "drop": lambda one: one.drop("age"),
    "cap": lambda one: one.cap("town", 0.05),
    "set_level": lambda one: one.set_level("town", "Ulm", 0.5),
    "smooth": lambda one: one.smooth("income", 2.0),
    "monotone": lambda one: one.monotone("income", "-"),
    "monotone alone": lambda one: one.monotone("age", keep_interactions=False),
}


@pytest.mark.parametrize("what", EDITS)
@pytest.mark.parametrize(("gate", "is_clamped"), [*((gate, False) for gate in GATES), ("low-rank", True)])
def test_no_row_changes_more_than_the_record_says(what: str, gate: str, is_clamped: bool) -> None:
    random = np.random.default_rng(0)
    model = make_model(random, features=FEATURES, gate=gate, n_members=2, is_clamped=is_clamped)
    found = EDITS[what](editor(model))
    table = make_table(random, model.schema, 200)
    moved = np.abs(found.model.decision_function(table) - model.decision_function(table)).max()
    entry = found.record[-1]
    assert moved <= entry.bound + 1e-9
    assert 0 < entry.found <= entry.bound + 1e-9
    assert moved <= found.certificate().bound + 1e-9


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_changes_neither_the_model_nor_the_editor(what: str) -> None:
    model = make_model(np.random.default_rng(0), features=FEATURES, is_clamped=True)
    arrays = [model.experts, *model.gate.arrays.values(), model.clamps.lower, model.clamps.upper, model.intercept]
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    first = editor(model)
    second = EDITS[what](first)
    for array, before in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, before)
    assert (len(first.record), len(second.record)) == (0, 1)
    assert first.model is model is second.original
    assert model.training.edits is None


def test_clamps_stay_in_order() -> None:
    for seed in range(2):
        model = make_model(np.random.default_rng(seed), features=FEATURES, is_clamped=True)
        for change in EDITS.values():
            clamps = change(editor(model)).model.clamps
            assert (clamps.lower <= clamps.upper).all()
    rising = editor(model).monotone("income").model.clamps
    assert (np.diff(rising.lower[:6], axis=0) >= 0).all()
    assert (np.diff(rising.upper[:6], axis=0) >= 0).all()
    assert replace(model, clamps=None).clamps is None
