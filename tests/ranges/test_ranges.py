"""No completion of a row leaves its proven range; where the tables are additive, the range is exact."""

from dataclasses import replace
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from nae.encoding import Category, Columns, Number
from nae.errors import ConfigError, DataError
from nae.explanation import PredictionRange
from nae.ranges import whole
from nae.ranges.mixing import MIXINGS
from nae.tables import TableModel
from nae.tables.clamps import Clamps
from nae.tables.gates import GATES
from nae.tables.routing import ROUTINGS
from tests.laws.drawn import models_with_tables
from tests.laws.models import make_model, make_table
from tests.ranges.completions import assert_holds, climbed, every_vertex, random_completions

FEATURES = (
    Number("income", np.array([0.0, 10.0, 30.0])),
    Number("age", np.array([20.0, 40.0, 60.0, 80.0]), has_missing=True),
    Category("town", ("Ulm", "Köln", "Bonn"), ("Aalen", "Hof")),
)


def small(seed: int, **shape: object) -> tuple[TableModel, Columns]:
    random = np.random.default_rng(seed)
    model = make_model(random, features=FEATURES, **{"n_experts": 3, "n_members": 2} | shape)  # type: ignore[arg-type]
    return model, make_table(random, model.schema, 4)


@settings(max_examples=40)
@given(models_with_tables(may_clamp=True), st.data())
def test_no_completion_leaves_the_range(drawn: tuple[TableModel, Columns], data) -> None:
    model, table = drawn
    size = data.draw(st.integers(1, model.n_features))
    features = data.draw(st.permutations(range(model.n_features)))[:size]
    found = model.predict_range(
        table, unknown=[model.feature_names[i] for i in features], budget=data.draw(st.sampled_from([1, 2, 9, 40]))
    )
    filled = random_completions(np.random.default_rng(data.draw(st.integers(0, 2**16))), model, table, features, 40)
    assert_holds(found, model.decision_function(filled))
    shape = (table.n_rows, 40, -1)
    values = (model.predict_proba(filled) if model.classes else model.predict(filled)).reshape(shape)
    ends = (end.reshape(table.n_rows, 1, -1) for end in (found.lower_prediction, found.upper_prediction))
    lower, upper = ends
    assert np.all((lower <= values) & (values <= upper))
    if model.classes:
        chosen = model.predict(filled).reshape(table.n_rows, 40)
        sure = [(name, row) for name, row in zip(found.certain, chosen, strict=True) if name is not None]
        assert all((row == name).all() for name, row in sure)


@settings(max_examples=12)
@given(models_with_tables(may_clamp=True))
def test_no_climb_leaves_the_range(drawn: tuple[TableModel, Columns]) -> None:
    model, table = drawn
    table = table.take(np.arange(1))
    found = model.predict_range(table, unknown=model.feature_names, budget=20)
    domains = tuple(whole(model, i) for i in range(model.n_features))
    cells = model.cells(table)
    for output in range(model.n_outputs):
        ends = [climbed(model, cells, domains, output=output, sign=sign) for sign in (-1, 1)]
        assert found.lower.reshape(-1)[output] <= ends[0]
        assert ends[1] <= found.upper.reshape(-1)[output]


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("side", ["lower", "upper"])
def test_a_range_that_is_a_tenth_too_narrow_is_found_out(gate: str, side: str) -> None:
    model, table = small(0, gate=gate)
    domains = tuple(whole(model, i) for i in (0, 2))
    cells = model.cells(table)
    found = model.predict_range(table, unknown=["income", "town"], budget=2000)
    sign = {"lower": -1, "upper": 1}[side]
    reached = np.array([climbed(model, cells.take(np.array([row])), domains, sign=sign) for row in range(4)])
    assert_holds(found, reached)
    cut = replace(found, **{side: getattr(found, side) - sign * found.width / 10})
    with pytest.raises(AssertionError):
        assert_holds(cut, reached)


@pytest.mark.parametrize("route", [("softmax", 3), ("softmax", 2), ("equal", 3), ("equal", 2)])
@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("is_clamped", [False, True])
def test_a_large_budget_finds_what_brute_force_finds(route: tuple[str, int], gate: str, is_clamped: bool) -> None:
    model, table = small(1, gate=gate, routing=route[0], n_active=route[1], is_clamped=is_clamped)
    domains = tuple(whole(model, i) for i in (1, 2))
    found = model.predict_range(table, unknown=["age", "town"], budget=3000)
    for row in range(4):
        scores = every_vertex(model, model.cells(table.take(np.array([row]))), domains, parts=40)
        gap = (0.03 if route[1] == 3 else 0.15) * np.ptp(scores) + 1e-6  # where weights jump, boxes stay open
        assert found.lower[row] <= scores.min() <= found.lower[row] + gap
        assert found.upper[row] - gap <= scores.max() <= found.upper[row]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_clamped", [False, True])
def test_an_additive_model_has_an_exact_range(seed: int, is_clamped: bool) -> None:
    model, table = small(seed, n_outputs=2, routing=("softmax", "equal")[seed % 2], n_active=(3, 2)[seed // 3])
    model = replace(model, gate=replace(model.gate, terms=np.zeros_like(model.gate.terms)))
    if is_clamped:
        least, most = (model.contribute(model.cells(table)).min(axis=(0, 1)) + x for x in (0.1, 0.6))
        shape = (model.schema.n_slots, 2)
        model = replace(model, clamps=Clamps(*(np.broadcast_to(end, shape).copy() for end in (least, most))))
    domains = tuple(whole(model, i) for i in range(3))
    found = model.predict_range(table, unknown=model.feature_names, budget=1)
    scores = every_vertex(model, model.cells(table.take(np.array([0]))), domains)
    np.testing.assert_allclose(found.lower, np.tile(scores.min(axis=0), (4, 1)), atol=1e-9)
    np.testing.assert_allclose(found.upper, np.tile(scores.max(axis=0), (4, 1)), atol=1e-9)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("seed", range(3))
def test_a_range_shrinks_when_a_feature_becomes_known(gate: str, seed: int) -> None:
    model, table = small(seed, gate=gate, is_clamped=bool(seed % 2))
    both = model.predict_range(table, unknown=["income", "town"], budget=500)
    one = model.predict_range(table, unknown=["town"], budget=500)
    limited = model.predict_range(table, unknown=["town"], within={"income": (0, 30)}, budget=500)
    none = model.predict_range(table, within={"income": (7, 7)}, budget=500)
    assert np.all(limited.width <= both.width + 0.01)
    assert np.all(one.width <= both.width + 0.01)
    assert one.width.mean() < 0.9 * both.width.mean()
    assert np.all(none.width <= 2 * none.rounding + 1e-12)


@pytest.mark.parametrize("gate", GATES)
def test_a_larger_budget_never_widens_a_range(gate: str) -> None:
    model, table = small(2, gate=gate)
    widths = [model.predict_range(table, unknown=["income", "age"], budget=n).width for n in (1, 4, 16, 64)]
    assert all(np.all(after <= before) for before, after in pairwise(widths))
    assert widths[-1].mean() < 0.9 * widths[0].mean()


def test_unknown_means_any_value_and_within_means_its_limits() -> None:
    model, table = small(3, is_clamped=True)
    unknown = model.predict_range(table, unknown=["age", "town"])
    for age, town in ((None, None), (1e9, "nowhere"), (-5.0, "Hof"), (33.3, "Ulm")):
        rows = {"income": table.arrays[0], "age": [age] * 4, "town": [town] * 4}
        assert_holds(unknown, model.decision_function(rows))
    limits = model.predict_range(table, within={"age": (30, 50), "town": ["Ulm", "Hof", None]})
    assert np.all(limits.width < unknown.width)
    for age in np.linspace(30, 50, 9):
        for town in ("Ulm", "Hof", "Aalen", None):  # rare levels share a slot
            rows = {"income": table.arrays[0], "age": [age] * 4, "town": [town] * 4}
            assert_holds(limits, model.decision_function(rows))
    open_end = model.predict_range(table, within={"age": (None, 40.0), "town": "Ulm"})
    rows = {"income": table.arrays[0], "age": [-1e9] * 4, "town": ["Ulm"] * 4}
    assert_holds(open_end, model.decision_function(rows))


def test_unknown_columns_may_be_absent_or_hold_anything() -> None:
    model, table = small(4)
    whole_range = model.predict_range(table, unknown=["age"])
    rows = dict(zip(table.names or (), table.arrays, strict=True))
    absent = model.predict_range({name: rows[name] for name in ("town", "income")}, unknown="age")
    odd = model.predict_range(rows | {"age": ["old"] * 4}, unknown=["age"])
    for found in (absent, odd):
        np.testing.assert_array_equal(found.lower, whole_range.lower)
    with pytest.raises(DataError, match="must have the column 'town'"):
        model.predict_range({"income": [1.0]}, unknown=["age"])
    one = model.predict_range({"income": 1.0, "town": "Ulm"}, unknown=["age"])
    assert len(one) == 1


def test_rows_are_apart_and_few_or_many_make_no_difference() -> None:
    model, table = small(5, gate="low-rank")
    together = model.predict_range(table, unknown=["age"], budget=16)
    for row in range(4):
        alone = model.predict_range(table.take(np.array([row])), unknown=["age"], budget=16)
        assert alone.upper[0] == pytest.approx(together.upper[row], abs=0.05)
    assert len(model.predict_range(table.take(np.arange(0)), unknown=["age"])) == 0


def test_an_offset_moves_the_score() -> None:
    model, table = small(6, link="log")
    plain = model.predict_range(table, unknown=["age"])
    moved = model.predict_range(table, unknown=["age"], offset=[1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(moved.upper - plain.upper, [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(moved.upper_prediction, np.exp(moved.upper))


def test_a_class_is_certain_if_no_answer_changes_it() -> None:
    model, table = small(7, n_outputs=3)
    sure = replace(model, intercept=np.array([0.0, 100.0, 0.0]))
    assert sure.predict_range(table, unknown=["age"]).certain == ("class 1",) * 4
    even = replace(model, class_weight=(1e60, 1.0, 1.0))
    assert even.predict_range(table, unknown=["age"]).certain == ("class 0",) * 4
    every = model.predict_range(table, unknown=model.feature_names)
    assert every.certain == (None,) * 4
    assert np.all(every.lower_prediction < every.upper_prediction)


def test_the_result_is_a_frame_and_json() -> None:
    model, table = small(8, n_outputs=3)
    found = model.predict_range(table, unknown=["age"])
    assert list(found.to_frame().columns)[:3] == [
        "lower score of class 0",
        "upper score of class 0",
        "lower score of class 1",
    ]
    assert list(found.to_frame().columns)[-2:] == ["upper probability of class 2", "certain"]
    again = PredictionRange.from_json(found.to_json())
    np.testing.assert_array_equal(again.lower, found.lower)
    assert again.certain == found.certain
    assert "PredictionRange(4 rows, unknown: age)" in repr(found)


def test_every_routing_has_a_mixing() -> None:
    assert set(MIXINGS) == set(ROUTINGS.values())


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, "needs a feature that is unknown or within limits"),
        ({"unknown": ["agee"]}, "Did you mean 'age'"),
        ({"unknown": 3}, "must be a list of the names"),
        ({"unknown": ["age", "age"]}, "'age' is named twice"),
        ({"unknown": ["age"], "within": {"age": (1, 2)}}, "'age' is named twice"),
        ({"within": ["age"]}, "must be a dict"),
        ({"within": {"age": (2, 1)}}, r"must be a pair \(low, high\)"),
        ({"within": {"age": "old"}}, r"must be a pair \(low, high\)"),
        ({"within": {"town": ["Ulmm"]}}, "Did you mean 'Ulm'"),
        ({"within": {"town": []}}, "the list is empty"),
        ({"unknown": ["age"], "budget": 0}, "budget must be an integer of at least 1"),
        ({"unknown": ["age"], "budget": 2.5}, "budget must be an integer of at least 1"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(given: dict, error: str) -> None:
    model, table = small(9)
    with pytest.raises(ConfigError, match=error):
        model.predict_range(table, **given)
