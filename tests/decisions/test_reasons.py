"""Reasons are complete, turn round with the outcome, say ties, and promise no place that can be taken away."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from nae._typing import Array
from nae.decisions import Reasons
from nae.encoding import Category, Columns, Number
from nae.errors import UserError
from nae.links import LINKS
from nae.tables import TableModel, load
from tests.explanation.examples import explained_model, remembering
from tests.laws.drawn import models_with_tables
from tests.laws.models import make_model, make_table

UNITS = ("score", "response")


def with_classes(model: TableModel) -> TableModel:
    """Return the model as a classifier, as far as its outputs allow, with scores of moderate size."""
    model = replace(model, experts=model.experts / 4, intercept=model.intercept / 4, clamps=None)
    if model.n_outputs == 1:
        return replace(model, link=LINKS["logit"], classes=("no", "yes"), outputs=("yes",))
    return replace(model, link=LINKS["softmax"], classes=model.outputs)


def classifier(seed: int = 0, **shape: Any) -> tuple[TableModel, Columns]:
    model, table = explained_model(seed, **{"n_features": 5, "link": "logit", **shape})
    return replace(model, outputs=("yes",)), table


@settings(max_examples=40)
@given(models_with_tables(may_clamp=True), st.integers(0, 99), st.sampled_from(UNITS), st.sampled_from(["mean", "row"]))
def test_differences_sum_to_the_score_minus_that_of_the_reference(
    drawn: tuple[TableModel, Columns], seed: int, unit: str, kind: str
) -> None:
    model, table = remembering(with_classes(drawn[0]), seed, n_rows=30), drawn[1]
    reference = "mean" if kind == "mean" else table.take(np.array([0]))
    name = model.classes[-1]
    found = model.reasons(table, toward=name, unit=unit, reference=reference)
    np.testing.assert_allclose(
        found.differences.sum(axis=1), found.score - found.reference_score, rtol=0, atol=1e-9 * size_of(found)
    )
    share = model.predict_proba(table)[:, -1]
    np.testing.assert_allclose(found.prediction, share, rtol=0, atol=1e-6)
    if kind == "row":
        np.testing.assert_allclose(found.differences[0], 0.0, rtol=0, atol=1e-9 * size_of(found))
        np.testing.assert_allclose(found.reference_prediction, share[0], rtol=0, atol=1e-6)


@settings(max_examples=40)
@given(models_with_tables(may_clamp=True), st.integers(0, 99), st.sampled_from(UNITS))
def test_reasons_against_an_outcome_turn_those_toward_it_round(
    drawn: tuple[TableModel, Columns], seed: int, unit: str
) -> None:
    model, table = remembering(with_classes(drawn[0]), seed, n_rows=30), drawn[1]
    name = model.classes[0]
    one, other = model.reasons(table, toward=name, unit=unit), model.reasons(table, against=name, unit=unit)
    np.testing.assert_array_equal(one.differences, -other.differences)
    np.testing.assert_array_equal(one.own, -other.own)
    for row in range(len(one)):
        assert not set(one.names(row)) & set(other.names(row))
        signs = [one.differences[row, list(model.feature_names).index(name)] for name in one.names(row)]
        assert all(sign > 0 for sign in signs)


@settings(max_examples=40)
@given(models_with_tables(may_clamp=True), st.integers(0, 99), st.integers(1, 3))
def test_reasons_are_the_features_that_count_most_in_order(
    drawn: tuple[TableModel, Columns], seed: int, k: int
) -> None:
    model, table = remembering(with_classes(drawn[0]), seed, n_rows=30), drawn[1]
    found = model.reasons(table, toward=model.classes[-1], k=k)
    for row, differences in enumerate(found.differences):
        listed = [i for i in found.features[row] if i >= 0]
        counted = differences[listed]
        assert np.all(np.diff(counted) <= 0)
        rest = np.delete(differences, listed)
        if len(listed) < min(k, model.n_features):
            assert np.all(rest <= found.resolution[row])
        elif len(rest):
            assert rest.max() <= counted.min()
        margins = found.margin[row][: len(listed)]
        behind = np.append(counted[1:], max(0.0, rest.max(initial=0.0)))
        np.testing.assert_allclose(margins, counted - behind, atol=1e-12)


def size_of(found: Reasons) -> float:
    return 1.0 + float(np.abs(found.differences).max(initial=0.0))


def test_the_best_reference_leaves_no_difference_for_an_additive_model_at_its_best_values() -> None:
    model, table = classifier(n_experts=1)
    assert model.statistics is not None
    found = model.reasons(table, against="yes", reference="best", k=5)
    best = model.statistics.mean[model.statistics.weight > 0]
    assert np.isfinite(best).all()
    # Training rows have these values: none of them counts more against "yes" than the best value does for it.
    random = make_table(np.random.default_rng(0), model.schema, 60)
    trained = model.reasons(random, against="yes", reference="best", k=5)
    known = known_values(model, random)
    assert np.all(trained.differences[known] >= -1e-9)
    assert found.reference == "the best values"


def known_values(model: TableModel, table: Columns) -> Any:
    """Return which values are present and lie between seen knots, (row, feature)."""
    cells = model.cells(table)
    n_values = np.array([feature.n_values for feature in model.schema.features])
    assert model.statistics is not None
    is_seen = (model.statistics.weight[cells.slot] > 0) & (model.statistics.weight[cells.upper] > 0)
    return is_seen & (cells.slot - model.schema.offsets[:-1] < n_values)


@pytest.mark.parametrize("unit", ["score", "probability"])
def test_a_class_of_many_counts_as_much_as_its_log_odds_or_probability_changes(unit: str) -> None:
    model, table = explained_model(n_outputs=3, n_features=4)
    found = model.reasons(table, toward="class 1", against="class 2", unit=unit)
    proba = model.predict_proba(table)
    change = proba[:, 1] - proba[:, 2] if unit == "probability" else np.log(proba[:, 1] / proba[:, 2])
    np.testing.assert_allclose(found.score, change, atol=1e-9)
    np.testing.assert_allclose(found.differences.sum(axis=1), change - found.reference_score, atol=1e-9)


def test_an_offset_moves_row_and_reference_alike() -> None:
    model, table = explained_model(link="log")
    offset = np.linspace(-1, 1, 12)
    plain, found = (model.reasons(table, offset=given) for given in (None, offset))
    np.testing.assert_array_equal(plain.differences, found.differences)
    np.testing.assert_allclose(found.prediction, model.predict(table, offset=offset), rtol=1e-9)
    np.testing.assert_allclose(found.reference_prediction, plain.reference_prediction * np.exp(offset), rtol=1e-9)


# --- margins


def test_a_tie_is_said() -> None:
    model, _ = classifier(features=tuple(Number(name, np.array([0.0, 1.0])) for name in "ab"), n_experts=1)
    experts = model.experts.copy()
    experts[: model.schema.offsets[1]] = experts[model.schema.offsets[1] :]
    model = remembering(replace(model, experts=experts, clamps=None))
    found = model.reasons({"a": [0.0, 1.0], "b": [0.0, 1.0]}, reference={"a": [0.5], "b": [0.5]})
    assert found.tied[:, 0].sum() == 1
    row = int(np.flatnonzero(found.tied[:, 0])[0])
    assert found.sentences(row)[0].endswith("It is tied with b, so their order means nothing.")
    assert not found.tied[row, 1]
    alone = model.reasons({"a": [0.0, 1.0], "b": [0.0, 1.0]}, reference={"a": [0.5], "b": [0.5]}, k=1)
    assert "It is tied with b" in alone.sentences(row)[0]  # b is not listed


@settings(max_examples=30)
@given(models_with_tables(), st.integers(0, 99))
def test_the_differences_of_the_members_average_to_those_of_the_model(
    drawn: tuple[TableModel, Columns], seed: int
) -> None:
    model, table = remembering(with_classes(drawn[0]), seed, n_rows=30), drawn[1]
    name = model.classes[-1]
    for reference in ("mean", "best", table.take(np.array([0]))):
        pooled = model.reasons(table, toward=name, reference=reference)
        if model.n_members > 1:
            assert np.nanmax(pooled.places[..., 0] - pooled.margin, initial=0.0) <= 1e-5 * size_of(pooled)
            assert np.all(pooled.agreeing[pooled.features >= 0] <= model.n_members)
        else:
            assert np.isnan(pooled.places[..., 0]).all()


def alone(model: TableModel, member: int) -> TableModel:
    """Return one member of an additive gate as a model."""
    pick = slice(member, member + 1)
    gate = replace(model.gate, terms=model.gate.terms[..., pick], bias=model.gate.bias[..., pick])
    return replace(model, experts=model.experts[..., pick], gate=gate)


def test_a_reason_keeps_its_place_in_a_member_if_it_counts_most_there() -> None:
    model, table = classifier(n_members=4)
    reference = {name: array[:1] for name, array in zip(model.feature_names, table.arrays, strict=True)}
    found = model.reasons(table, toward="yes", reference=reference, k=5)
    singles = np.stack([alone(model, m).reasons(table, reference=reference, k=5).differences for m in range(4)])
    np.testing.assert_allclose(singles.mean(axis=0), found.differences, atol=1e-9)
    for row in range(1, len(found)):
        order = [i for i in found.features[row] if i >= 0]
        for at, feature in enumerate(order):
            behind = np.delete(singles[:, row], order[: at + 1], axis=1)
            margin = singles[:, row, feature] - np.maximum(behind.max(axis=1, initial=0.0), 0.0)
            assert found.places[row, at, 0] == pytest.approx(margin.min())
            assert found.agreeing[row, at] == (margin > 0).sum()


def margins_of(found: Reasons, order: list[int], differences: Array) -> Array:
    """Return by how much reasons keep their place with other differences (feature,)."""
    rest = [np.delete(differences, order[: at + 1]).max(initial=0.0) for at in range(len(order))]
    return np.asarray(differences[order] - np.maximum(rest, 0.0))


@settings(max_examples=30)
@given(models_with_tables(may_clamp=True), st.integers(0, 2**32 - 1))
def test_a_place_that_holds_in_any_context_is_kept_in_every_context(
    drawn: tuple[TableModel, Columns], seed: int
) -> None:
    model, table = remembering(with_classes(drawn[0]), 1, n_rows=30), drawn[1]
    found, random = model.reasons(table, toward=model.classes[-1], k=3), np.random.default_rng(seed)
    slack = 1e-5 * size_of(found)
    for row in range(len(found)):
        order = [int(i) for i in found.features[row] if i >= 0]
        others = make_table(random, model.schema, 20)
        own = table.take(np.full(20, row))
        for at, feature in enumerate(order):
            kept = [feature, *np.delete(np.arange(model.n_features), order[: at + 1])[:1]]
            arrays = [own.arrays[i] if i in kept else others.arrays[i] for i in range(model.n_features)]
            moved = model.reasons(Columns(tuple(arrays), table.names), toward=model.classes[-1]).differences
            ahead = moved[:, feature] - np.maximum(moved[:, kept[1:]].max(axis=1, initial=0.0), 0.0)
            assert ahead.min() >= found.places[row, at, 2] - slack


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["additive", "low-rank", "deep", "diagonal"]))
def test_a_place_that_holds_within_the_tolerance_is_kept_by_every_value_within_it(seed: int, gate: str) -> None:
    random = np.random.default_rng(seed)
    features = (*(Number(name, np.sort(random.normal(size=6))) for name in "abc"), Category("d", ("x", "y")))
    model = make_model(random, features=features, n_members=2, gate=gate, link="logit")
    model = remembering(replace(model, outputs=("yes",)), 0)
    rows = {name: random.normal(size=6) for name in "abc"} | {"d": random.choice(["x", "y"], 6)}
    tolerance = {"a": 0.2, "b": 0.1}
    found = model.reasons(rows, tolerance=tolerance, k=4)
    assert np.all(found.places[..., 1][found.features >= 0] <= found.found[found.features >= 0] + 1e-9)
    for _ in range(30):
        moved = {name: rows[name] + random.uniform(-1, 1, 6) * tolerance.get(name, 0.0) for name in "abc"}
        differences = model.reasons(moved | {"d": rows["d"]}).differences
        for row in range(6):
            order = [int(i) for i in found.features[row] if i >= 0]
            kept = margins_of(found, order, differences[row])
            assert np.all(kept >= found.places[row, : len(order), 1] - 1e-9)


def test_without_a_tolerance_nothing_is_said_about_noise() -> None:
    model, table = classifier()
    found = model.reasons(table)
    assert np.isnan(found.places[..., 1]).all()
    assert np.isnan(found.found).all()
    assert "tolerance" not in found.text


def test_an_additive_model_keeps_its_order_in_any_context() -> None:
    model, table = classifier(n_experts=1)
    found = model.reasons(table)
    is_reason = found.features >= 0
    np.testing.assert_allclose(found.places[..., 2][is_reason], found.margin[is_reason], atol=1e-9)
    assert "Its place holds in any context." in found.text


# --- what is shown


def test_a_frame_and_json_hold_everything(tmp_path: Path) -> None:
    model, table = classifier(n_members=2)
    found = model.reasons(table, k=2, tolerance=None)
    frame = found.to_frame("polars")
    assert frame["feature"].to_list() == [name for row in range(len(found)) for name in found.names(row)]
    assert frame["rank"].max() == 2
    back = Reasons.from_json(found.to_json())
    assert back.text == found.text
    np.testing.assert_array_equal(back.places, found.places)
    assert found[3].names(0) == found.names(3)
    assert found[[1, 2]].text.startswith("Row 2: the probability of yes is ")
    assert repr(found).startswith("Reasons(12 rows, towards yes, compared with the average row)")
    model.save(tmp_path / "m.nae")
    np.testing.assert_array_equal(load(tmp_path / "m.nae").reasons(table, k=2).differences, found.differences)


def test_words_are_those_of_the_file(tmp_path: Path) -> None:
    features = (Number("months", np.array([0.0, 24.0])), Category("plan", ("a", "b")))
    model, _ = classifier(features=features, n_experts=1)
    path = tmp_path / "reasons.toml"
    path.write_text(
        'sentence = "{feature}: {value}; {outcome}"\nremarks = false\nmissing = "not stated"\n'
        '[outcomes]\nyes = "a refusal"\n[features.months]\nname = "Time with us"\nunit = "months"\n'
        '[features.plan]\nsentence = "The plan, {value}, matters."\n[features.plan.values]\na = "the old one"\n'
    )
    other = {"months": [20.0], "plan": ["b"]}

    def lines(row: dict[str, Any]) -> set[str]:
        ways: tuple[dict[str, str], ...] = ({}, {"against": "yes"})
        return {
            line for way in ways for line in model.reasons(row, wording=path, reference=other, k=2, **way).sentences(0)
        }

    found = lines({"months": [3.0], "plan": ["a"]})
    assert len(found) == 2
    assert "The plan, the old one, matters." in found
    assert found & {"Time with us: 3 months; a refusal", "Time with us: 3 months; no"}
    assert "not stated" in "".join(lines({"months": [None], "plan": ["a"]}))


def test_a_feature_that_must_not_be_named_is_left_out_and_this_is_said() -> None:
    model, table = classifier()
    plain = model.reasons(table, k=5)
    row = next(row for row in range(12) if len(plain.names(row)) > 1)
    first, second = plain.names(row)[:2]
    found = model.reasons(table, k=1, wording={"features": {first: {"named": False}}})
    assert found.names(row) == (second,)
    assert found.unnamed(row) == (first,)
    assert "1 feature that counts as much must not be named." in found[row].text
    assert first not in found[row].text
    np.testing.assert_array_equal(found.differences, plain.differences)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": 0}, "k must be an integer of at least 1"),
        ({"toward": "maybe"}, "toward must be one of the model's outcomes; got 'maybe'"),
        ({"reference": "worst"}, "reference must be 'mean', 'best' or a row; got 'worst'"),
        ({"reference": {"a": [0.0, 1.0], "b": ["x", "y"]}}, "A reference must be a single row; got 2"),
        ({"tolerance": {"c": 1}}, "No feature is called 'c'"),
        ({"tolerance": {"b": 1}}, "a number may be off; 'b' is a category"),
        ({"tolerance": {"a": -1}}, "A tolerance must be a positive finite number; got -1 for 'a'"),
        ({"unit": "percent"}, "unit must be"),
        ({"wording": "nowhere.toml"}, r"must be a TOML file; 'nowhere\.toml'"),
        ({"wording": 3}, "must be a TOML file or a dict; got int"),
        ({"wording": {"phrase": "x"}}, "has no entry 'phrase'"),
        ({"wording": {"sentence": 3}}, "sentence must be a text; got 3"),
        ({"wording": {"sentence": "{feature.__class__}"}}, r"can have {feature}, .*; got {feature\.__class__}"),
        ({"wording": {"sentence": "{feature"}}, "must have pairs of braces"),
        ({"wording": {"features": {"z": {}}}}, "names a feature 'z', which the model does not have"),
        ({"wording": {"features": {"a": {"unnamed": True}}}}, "The wording of 'a' has no entry 'unnamed'"),
        (
            {"wording": {"features": {"a": {"named": False}, "b": {"named": False}}}},
            "at least one feature must be named",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused(given: dict[str, Any], message: str) -> None:
    model, _ = classifier(features=(Number("a", np.array([0.0, 1.0])), Category("b", ("x", "y"))))
    with pytest.raises(UserError, match=message):
        model.reasons({"a": [0.0], "b": ["x"]}, **given)
