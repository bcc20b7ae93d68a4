"""No input ever goes beyond what the tables prove; planted violations are found; exact cases are decided."""

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from nae._typing import Array
from nae.certificates import Tables, attack
from nae.certificates import tables_of as read_tables
from nae.certificates.slots import SlotRows, contributions
from nae.encoding import Category, Cells, Columns, Number, Schema
from nae.links import LINKS
from nae.tables import GateTables, TableModel
from nae.tables.gates import GATES
from nae.tables.routing import EqualRouting, SoftmaxRouting
from tests.certificates.planted import VIOLATIONS, monotone_model, own_terms
from tests.laws.drawn import models, models_with_tables
from tests.laws.models import make_model, make_table

SUMMING = [gate for gate in GATES if gate != "diagonal"]


def tables_of(model: TableModel) -> Tables:
    """Return the tables for the first output."""
    return read_tables(model, np.eye(model.n_outputs)[0])


def in_double_precision(model: TableModel) -> TableModel:
    """Return the same model, with tables that compute without loss."""
    arrays: dict[str, Any] = {name: array.astype(np.float64) for name, array in model.gate.arrays.items()}
    return replace(
        model,
        experts=model.experts.astype(np.float64),
        gate=replace(model.gate, **arrays),
        clamps=None if model.clamps is None else model.clamps.astype(np.float64),
    )


def assert_within(found: float, bound: float, tables: Tables) -> None:
    """Assert that what was found does not exceed a bound."""
    assert found <= bound + 1e-9 * max(tables.spread, 1.0), (found, bound)


def moved_rows(tables: Tables, table: Columns, feature: int) -> Array:
    """Return the contributions of all rows with the feature at each of 40 places, ascending: (row, place, feature)."""
    model, random = in_double_precision(tables.model), np.random.default_rng(0)
    kind = model.schema.features[feature]
    cells = model.cells(table)
    found = []
    slots = tables.reachable[feature]
    if isinstance(kind, Category) or kind.is_empty:
        places = random.choice(slots, 40).astype(float)
    else:
        places = np.sort(random.uniform(slots[0], slots[-2], 40))
    for place in places:
        slot, fraction = cells.slot.copy(), cells.fraction.copy()
        slot[:, feature], fraction[:, feature] = int(place), place - int(place)
        found.append(model.contribute(Cells(slot, fraction)) @ tables.direction)
    return np.stack(found, axis=1)


@settings(max_examples=60)
@given(models_with_tables(may_clamp=True), st.data())
def test_no_row_goes_beyond_what_is_proven(drawn: tuple[TableModel, Columns], data: st.DataObject) -> None:
    model, table = drawn
    tables = read_tables(model, np.array([1.0, -1.0, 0.0])[: model.n_outputs])
    feature = data.draw(st.integers(0, model.n_features - 1))
    found = moved_rows(tables, table, feature)
    score = found.sum(axis=-1)
    others = np.delete(np.ptp(found, axis=1), feature, axis=1)
    assert_within(np.ptp(score, axis=1).max(), tables.effect(feature), tables)
    assert_within(others.max(initial=0.0), tables.changes(feature), tables)
    assert_within(np.ptp(found[:, :, feature], axis=0).max(), tables.changed(feature), tables)
    if not isinstance(model.schema.features[feature], Category):
        fall = (np.maximum.accumulate(score, axis=1) - score).max()
        rise = (score - np.minimum.accumulate(score, axis=1)).max()
        assert_within(fall, tables.drop(feature, 1), tables)
        assert_within(rise, tables.drop(feature, -1), tables)


@settings(max_examples=30)
@given(models(may_clamp=True), st.data())
def test_no_search_goes_beyond_what_is_proven(model: TableModel, data: st.DataObject) -> None:
    tables = tables_of(model)
    feature = data.draw(st.integers(0, model.n_features - 1))
    seed = data.draw(st.integers(0, 99))
    assert_within(attack(tables, feature, seed=seed).gap, tables.effect(feature), tables)
    assert_within(attack(tables, feature, seed=seed, by_others=True).gap, tables.changed(feature), tables)
    if model.n_features > 1:
        assert_within(attack(tables, feature, seed=seed, of_others=True).gap, tables.changes(feature), tables)
    if len(tables.knots(feature)) > 1 and not isinstance(model.schema.features[feature], Category):
        for sign in (1, -1):
            assert_within(attack(tables, feature, sign=sign, seed=seed).gap, tables.drop(feature, sign), tables)


@settings(max_examples=30)
@given(models(may_clamp=True), st.data())
def test_rows_of_slots_contribute_what_the_model_says(model: TableModel, data: st.DataObject) -> None:
    tables = tables_of(model)
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    rows = np.stack([random.choice(slots, 5) for slots in tables.reachable], axis=1)
    expected = in_double_precision(model).contribute(Cells(rows, np.zeros(rows.shape))) @ tables.direction
    close = {"rtol": 1e-9, "atol": 1e-9 * max(tables.spread, 1.0)}
    np.testing.assert_allclose(contributions(tables, rows), expected, **close)
    target, feature = data.draw(st.integers(0, model.n_features - 1)), data.draw(st.integers(0, model.n_features - 1))
    part = SlotRows.of(tables, np.array([target]))
    start = rows[0].copy()
    start[feature] = tables.reachable[feature][0]
    moved, hidden = part.moved(start, part.hidden(start[None])[0], feature, rows[:1, feature])
    np.testing.assert_array_equal(moved, rows[:1])
    np.testing.assert_allclose(part.contributions(moved, hidden)[:, 0], expected[:1, target], **close)


def test_a_bound_that_is_exceeded_is_noticed() -> None:
    tables = tables_of(monotone_model(np.random.default_rng(0), gate="additive"))
    with pytest.raises(AssertionError):
        assert_within(1.0, 0.999, tables)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize(
    ("routing", "n_active"), [("softmax", 3), ("softmax", 2), ("softmax", 1), ("equal", 3), ("equal", 2)]
)
def test_a_model_that_is_monotone_by_construction_is_proven(gate: str, routing: str, n_active: int) -> None:
    for seed in range(5):
        random = np.random.default_rng(seed)
        model = monotone_model(random, gate=gate, routing=routing, n_active=n_active)
        tables = tables_of(model)
        assert tables.drop(0, 1) <= 1e-12
        assert attack(tables, 0, sign=1, seed=seed).gap <= 1e-12
        score = moved_rows(tables, make_table(random, model.schema, 50), 0).sum(axis=-1)
        assert np.diff(score, axis=1).min() >= -1e-12
        assert np.ptp(score, axis=1).max() > 0.02


def test_the_order_of_the_experts_may_differ_between_features_and_members() -> None:
    model = monotone_model(np.random.default_rng(0), gate="additive")
    order, slots = [2, 0, 1], model.schema.slots(1)
    own = model.experts[slots, :, :, 0]
    own[:] = own[:, order]
    terms = model.gate.terms.reshape(len(model.experts), 3, 3, 2)
    terms[:, :, 1, 0] = terms[:, :, 1, 0][:, order]
    assert tables_of(model).order[:, 1].T.tolist() == [[1, 2, 0], [0, 1, 2]]
    assert tables_of(model).drop(0, 1) <= 1e-12


@pytest.mark.parametrize("gate", SUMMING)
@pytest.mark.parametrize("violation", VIOLATIONS)
@pytest.mark.parametrize("seed", range(3))
def test_a_planted_fall_is_found(gate: str, violation: str, seed: int) -> None:
    model = monotone_model(np.random.default_rng(seed), gate=gate)
    VIOLATIONS[violation](model)
    found = model.certify(monotone={"income": "+"})[0]
    assert found.verdict == "refuted"
    example = found.counterexample
    assert example is not None
    assert example.changed == ("income",)
    assert example.first[0] < example.second[0]
    one, two = (dict(zip(example.features, row, strict=True)) for row in (example.first, example.second))
    scores = model.decision_function([one, two])
    np.testing.assert_allclose(scores, example.scores, atol=1e-9)
    assert scores[0] - scores[1] == pytest.approx(example.violation)
    assert example.violation > found.tolerance
    assert model.certify(monotone={"income": "-"})[0].verdict == "refuted"


@pytest.mark.parametrize("gate", SUMMING)
def test_a_planted_effect_is_found(gate: str) -> None:
    model = monotone_model(np.random.default_rng(0), gate=gate)
    limit = model.certify(max_effect={"town": 0.0})[0].bound
    assert model.certify(max_effect={"town": limit})[0].verdict == "proven"
    model.experts[model.schema.offsets[2] + 1] += 2 * limit  # of a single level
    found = model.certify(max_effect={"town": limit})[0]
    assert found.verdict == "refuted"
    assert found.counterexample is not None
    assert "Köln" in (found.counterexample.first[2], found.counterexample.second[2])


@pytest.mark.parametrize("gate", SUMMING)
def test_a_feature_with_constant_gate_terms_is_isolated_until_one_differs(gate: str) -> None:
    model = monotone_model(np.random.default_rng(0), gate=gate)
    own_terms(model, 2)[:] = 0.3
    assert model.certify(isolated="town")[0].verdict == "proven"
    assert model.certify(isolated="town")[0].bound == 0
    own = own_terms(model, 2)
    own[3] += 3 * np.random.default_rng(1).standard_normal(
        own[3].shape
    )  # only a missing town changes the effects of the others
    found = model.certify(isolated="town")[0]
    assert found.verdict == "refuted"
    assert found.counterexample is not None
    assert found.counterexample.changed == ("town",)
    assert None in (found.counterexample.first[2], found.counterexample.second[2])
    assert found.counterexample.of in ("income", "age")


def test_a_feature_whose_experts_agree_is_changed_by_none_until_they_differ() -> None:
    model = monotone_model(np.random.default_rng(0), gate="additive")
    slots = model.schema.slots(2)
    model.experts[slots] = model.experts[slots][:, :1]
    assert model.certify(unchanged=["town"])[0].verdict == "proven"
    model.experts[slots.stop - 1, 0] -= 2.0  # at an unseen town
    found = model.certify(unchanged=["town"])[0]
    assert found.verdict == "refuted"
    assert found.counterexample is not None
    assert found.counterexample.first[2] == found.counterexample.second[2] == "unseen"
    assert "town" not in found.counterexample.changed


@pytest.mark.parametrize("routing", ["softmax", "equal"])
@pytest.mark.parametrize("n_experts", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_an_additive_model_is_always_decided(routing: str, n_experts: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    model = make_model(random, n_features=3, n_experts=n_experts, n_members=3, routing=routing)
    model = replace(model, gate=replace(model.gate, terms=np.zeros_like(model.gate.terms)))
    tables = tables_of(model)
    for i, feature in enumerate(model.schema.features):
        name = feature.name
        cells = np.tile([own[0] for own in tables.reachable], (len(tables.reachable[i]), 1))
        cells[:, i] = tables.reachable[i]
        curve = contributions(tables, cells)[:, i]
        exact = float(np.ptp(curve))
        assert tables.effect(i) == pytest.approx(exact)
        assert model.certify(max_effect={name: exact * 1.001})[0].verdict == "proven"
        if exact:
            assert model.certify(max_effect={name: exact * 0.999})[0].verdict == "refuted"
        found = model.certify(isolated=[name], unchanged=[name])
        assert found.all_proven
        if not isinstance(feature, Category):
            knots = curve[: len(tables.knots(i))]
            for sign in (1, -1):
                fall = float((np.maximum.accumulate(sign * knots) - sign * knots).max())
                assert tables.drop(i, sign) == pytest.approx(fall, abs=1e-12)
                verdict = model.certify(monotone={name: sign})[0].verdict
                assert verdict == ("refuted" if fall > tables.tolerance else "proven")


def test_a_jumping_routing_needs_an_exact_order() -> None:
    model = monotone_model(np.random.default_rng(0), gate="additive", n_active=2)
    assert model.certify(monotone={"income": 1}).all_proven
    slot = model.schema.offsets[1]
    model.experts[slot, 0] = model.experts[slot, 1] + 1e-3
    assert model.certify(monotone={"income": 1})[0].verdict != "proven"


def test_small_disorder_of_a_smooth_routing_costs_little() -> None:
    model = monotone_model(np.random.default_rng(0), gate="additive")
    slot = model.schema.offsets[1]
    model.experts[slot, 0] = model.experts[slot, 1] + 1e-9
    found = model.certify(monotone={"income": 1})[0]
    assert 0 <= found.bound < found.tolerance
    assert found.verdict == "proven"


def test_a_hidden_unit_that_never_fires_changes_nothing() -> None:
    model = monotone_model(np.random.default_rng(0), gate="deep")
    model.gate.bias[:] = -1e3
    assert model.certify(isolated=["income", "age", "town"]).all_proven


def test_a_present_number_is_never_unseen() -> None:
    number, empty = Number("a", np.array([0.0, 1.0])), Number("b", np.zeros(1), has_missing=True)
    schema = Schema((number, empty, Category("c", ("x",))))
    experts = np.zeros((schema.n_slots, 1, 1, 1))
    experts[3] = experts[4] = 100.0  # unseen a, and the knot of b that stands for no value
    gate = GateTables("additive", np.zeros((schema.n_slots, 3, 1)), np.zeros((3, 1)))
    model = TableModel(schema, experts, gate, SoftmaxRouting(1), np.zeros(1), LINKS["identity"])
    assert [own.tolist() for own in tables_of(model).reachable] == [[0, 1, 2], [5, 6], [7, 8, 9]]
    assert model.certify(max_effect={"a": 0.0, "b": 0.0}).all_proven


def test_rounding_covers_what_single_precision_loses() -> None:
    random = np.random.default_rng(0)
    for gate in GATES:
        model = make_model(random, n_features=4, n_experts=4, n_members=3, gate=gate, dtype=np.float32)
        tables = tables_of(model)
        table = make_table(random, model.schema, 200)
        cells = model.schema.locate(table)
        lost = np.abs(model.decision_function(cells) - in_double_precision(model).decision_function(cells)).max()
        assert 0 < lost <= tables.rounding < 0.05 * tables.spread


def test_equal_weights_for_all_experts_are_one_expert() -> None:
    model = make_model(np.random.default_rng(0), n_features=2, n_experts=3, routing="equal")
    assert isinstance(model.routing, EqualRouting)
    assert tables_of(model).is_fixed
    assert model.certify(isolated=["f0"], unchanged=["f0"]).all_proven


def test_steps_that_the_proofs_do_not_know_are_refused() -> None:
    class Other(SoftmaxRouting):
        pass

    model = replace(make_model(np.random.default_rng(0)), routing=Other(3))
    with pytest.raises(TypeError, match="know no step called Other"):
        tables_of(model)
