"""No input is farther above a chord than what is proven; convex tables are proven, and planted bends are found."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from nae._typing import Array
from nae.certificates import Tables, find_bend, tables_of
from nae.certificates.chords import above_chords, places_of
from nae.certificates.slots import contributions
from nae.encoding import Category, Cells, Columns, Number
from nae.tables import Clamps, TableModel
from nae.tables.gates import GATES
from tests.certificates.test_proofs import assert_within, in_double_precision
from tests.laws.drawn import models, models_with_tables
from tests.laws.models import make_model, make_table

FEATURES = (
    Number("age", np.array([18.0, 20.0, 21.0, 40.0, 41.0, 90.0]), has_missing=True),
    Number("income", np.arange(4.0)),
    Category("town", ("Ulm", "Köln")),
)
N_KNOTS = FEATURES[0].n_values


def convex_model(random: np.random.Generator, *, gate: str = "additive", sign: int = 1) -> TableModel:
    """Return a model whose score is convex (concave for -1) in its first feature, which changes no weights."""
    model = make_model(random, features=FEATURES, gate=gate, n_members=2)
    knots = FEATURES[0].knots
    slopes = np.sort(random.standard_normal((N_KNOTS - 1, *model.experts.shape[1:])), axis=0)
    steps = slopes * np.diff(knots)[:, None, None, None] / 20
    model.experts[1:N_KNOTS] = model.experts[0] + np.cumsum(steps, axis=0)
    model.experts[:N_KNOTS] *= sign
    model.gate.terms[model.schema.slots(0)] = 0.2
    return model


def _plant_kink(model: TableModel) -> None:
    model.experts[2, 1] += 3.0  # of one expert at one knot


def _plant_modulation(model: TableModel) -> None:
    terms = model.gate.terms[model.schema.slots(0)]
    terms[:N_KNOTS:2] += 9 * np.random.default_rng(0).standard_normal(terms[0].shape)
    model.experts[model.schema.slots(1)] *= 30


VIOLATIONS: dict[str, Callable[[TableModel], None]] = {
    "a knot above the line": _plant_kink,
    "a feature whose weights change": _plant_modulation,
}


@given(st.integers(1, 9), st.integers(0, 999))
def test_the_envelope_finds_the_highest_point_above_any_chord(n: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    places = np.sort(random.uniform(size=n)).round(random.integers(1, 9))
    places += np.arange(n) * 1e-3
    values = random.standard_normal(n).round(1)
    found = above_chords(places, values)

    def gap(left: int, middle: int, right: int) -> float:
        share = (places[middle] - places[left]) / (places[right] - places[left])
        return float(values[middle] - (1 - share) * values[left] - share * values[right])

    best = max([0.0, *(gap(*three) for three in combinations(range(n), 3))])
    assert found.gap == pytest.approx(best, abs=1e-9)
    if found.gap > 1e-9:
        assert gap(found.left, found.middle, found.right) == pytest.approx(best)


@pytest.mark.parametrize("knots", [[-1.5e308, 0.0, 1.5e308], [3.0], [1e9, 1e9 + 1e-6, 1e9 + 4e-6], [0.0, 5e-324]])
def test_knots_of_any_size_have_places(knots: list[float]) -> None:
    found = places_of(np.array(knots))
    assert found[0] == 0
    assert (np.diff(found) > 0).all()
    assert found[-1] == (len(knots) > 1)


def curves(model: TableModel, tables: Tables, table: Columns, feature: int) -> tuple[Array, Array]:
    """Return 30 places of a number, at knots and between them, and the scores of all rows there: (row, place)."""
    number = model.schema.features[feature]
    assert isinstance(number, Number)
    n_knots, first = len(tables.knots(feature)), model.schema.offsets[feature]
    at = np.sort(np.concatenate([np.arange(n_knots), np.random.default_rng(0).uniform(0, n_knots - 1, 30)]))
    cells = model.cells(table)
    found = []
    for one in at:
        slot, fraction = cells.slot.copy(), cells.fraction.copy()
        slot[:, feature], fraction[:, feature] = first + int(one), one - int(one)
        found.append((model.contribute(Cells(slot, fraction)) @ tables.direction).sum(axis=1))
    return np.interp(at, np.arange(n_knots), places_of(number.knots)), np.stack(found, axis=1)


@settings(max_examples=60)
@given(models_with_tables(may_clamp=True), st.data())
def test_no_row_is_farther_above_a_chord_than_what_is_proven(
    drawn: tuple[TableModel, Columns], data: st.DataObject
) -> None:
    model, table = in_double_precision(drawn[0]), drawn[1]
    tables = tables_of(model, np.random.default_rng(data.draw(st.integers(0, 9))).standard_normal(model.n_outputs))
    numbers = [i for i, one in enumerate(model.schema.features) if isinstance(one, Number) and not one.is_empty]
    if not numbers:
        return
    feature = data.draw(st.sampled_from(numbers))
    if data.draw(st.booleans()):  # only the gate bends the curve
        number, slots = model.schema.features[feature], tables.knots(feature)
        assert isinstance(number, Number)
        slopes = data.draw(st.sampled_from([0.0, 5.0])) * np.arange(model.n_experts)[:, None, None]
        model.experts[slots] = places_of(number.knots)[:, None, None, None] * slopes
        tables = tables_of(model, tables.direction)
    places, scores = curves(model, tables, table, feature)
    for sign in (1, -1):
        rise = max(above_chords(places, sign * row).gap for row in scores)
        assert_within(rise, tables.bend(feature, sign), tables)


@pytest.mark.parametrize("gate", [gate for gate in GATES if gate != "diagonal"])
@pytest.mark.parametrize("seed", range(3))
def test_what_other_features_make_of_a_curve_counts(gate: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    model = make_model(random, features=FEATURES, gate=gate)
    model.experts[:N_KNOTS] = 0.0
    tables = tables_of(model, np.ones(1))
    places, scores = curves(model, tables, make_table(random, model.schema, 20), 0)
    rise = max(above_chords(places, row).gap for row in scores)
    assert rise > 1e-3
    assert_within(rise, tables.bend(0, 1), tables)


@settings(max_examples=30)
@given(models(may_clamp=True), st.data())
def test_no_search_finds_a_bend_beyond_what_is_proven(model: TableModel, data: st.DataObject) -> None:
    tables = tables_of(model, np.eye(model.n_outputs)[0])
    numbers = [i for i, one in enumerate(model.schema.features) if isinstance(one, Number) and not one.is_empty]
    for feature in numbers[:1]:
        sign = data.draw(st.sampled_from([1, -1]))
        found = find_bend(tables, feature, sign, seed=data.draw(st.integers(0, 99)))
        assert_within(found.gap, tables.bend(feature, sign), tables)
        scores = contributions(tables, found.rows).sum(axis=1)
        assert sign * (scores[1] - found.shares @ scores) == pytest.approx(found.gap, abs=1e-9 * max(tables.spread, 1))
        assert found.shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize(("sign", "shape", "other"), [(1, "convex", "concave"), (-1, "concave", "convex")])
def test_a_model_that_is_convex_by_construction_is_proven(gate: str, sign: int, shape: str, other: str) -> None:
    model = convex_model(np.random.default_rng(3), gate=gate, sign=sign)
    found = model.certify(curved={"age": shape})[0]
    assert found.verdict == "proven"
    assert found.bound <= 1e-12
    assert found.claim == f"Between 18 and 90, the score is a {shape} function of age."
    assert "For any input, the distance from the line is at most" in found.sentence
    refuted = model.certify(curved={"age": other})[0]
    assert refuted.verdict == "refuted"


@pytest.mark.parametrize("violation", VIOLATIONS)
@pytest.mark.parametrize("gate", [gate for gate in GATES if gate != "diagonal"])
def test_a_planted_bend_is_found(gate: str, violation: str) -> None:
    model = convex_model(np.random.default_rng(0), gate=gate)
    VIOLATIONS[violation](model)
    found = model.certify(curved={"age": "convex"})[0]
    assert found.verdict == "refuted"
    example = found.counterexample
    assert example is not None
    assert example.changed == ("age",)
    left, middle, right = (row[0] for row in example.inputs)
    assert 18 <= left < middle < right <= 90
    scores = model.decision_function([dict(zip(example.features, row, strict=True)) for row in example.inputs])
    np.testing.assert_allclose(scores, example.scores, atol=1e-9)
    line = np.interp(middle, [left, right], scores[[0, 2]])
    assert example.compared == pytest.approx((scores[1], line))
    assert example.violation == pytest.approx(scores[1] - line)
    assert example.violation > found.tolerance
    assert f"At age = {middle:.6g}, the score is {scores[1]:.6g}; on the straight line from" in found.sentence


def test_missing_values_are_outside_of_a_curve() -> None:
    model = convex_model(np.random.default_rng(0))
    model.experts[N_KNOTS] += 100.0
    assert model.certify(curved={"age": "convex"}).all_proven


def test_clamps_that_cut_a_convex_curve_are_not_proven() -> None:
    model = convex_model(np.random.default_rng(1))
    least, most = model.slot_bounds
    wide = replace(model, clamps=Clamps(least - 1, most + 1))
    assert wide.certify(curved={"age": "convex"}).all_proven
    upper = (most + 1).copy()
    upper[:N_KNOTS] = least[:N_KNOTS].mean()
    cut = replace(model, clamps=Clamps(np.minimum(least - 1, upper), upper))
    assert cut.certify(curved={"age": "convex"})[0].verdict == "refuted"


def test_knots_close_to_each_other_may_be_rounded() -> None:
    knots = np.cumsum(np.array([1e-7, 1.0] * 20))
    model = make_model(np.random.default_rng(0), features=(Number("x", knots),), n_experts=1, dtype=np.float32)
    model.experts[:40, 0, 0, 0] = np.square(knots)
    assert model.certify(curved={"x": "convex"}).all_proven
    slopes = np.diff(model.experts[:40, 0, 0, 0].astype(float)) / np.diff(knots)
    assert (np.diff(slopes) < -1e-3).any()
