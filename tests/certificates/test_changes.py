"""No input changes more between two models than their tables prove; planted changes are found with the input."""

from collections.abc import Callable
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from nae._typing import Array
from nae.certificates import Changes, farthest
from nae.certificates.changes import _softmax_most
from nae.certificates.merged import merge
from nae.encoding import Category, Columns, Feature, Number
from nae.tables import Clamps, TableModel
from nae.tables.gates import GATES
from nae.tables.routing import ROUTINGS
from tests.laws.models import make_model, make_table, permuted

FEATURES = (
    Number("income", np.arange(5.0)),
    Number("age", np.array([0.0, 10.0, 30.0]), has_missing=True),
    Category("town", ("Ulm", "Köln", "Bonn"), ("Aalen", "Hof")),
)


def changes_of(first: TableModel, second: TableModel) -> Changes:
    """Return the changes of the first output."""
    return Changes.of(first, second, np.eye(first.n_outputs)[0])


def moved_between(first: TableModel, second: TableModel, table: Columns) -> Array:
    """Return the change of every contribution to the first output on the rows of a table, (row, feature)."""
    one, other = (
        model.contributions(table).values.reshape(table.n_rows, -1, model.n_outputs) for model in (first, second)
    )
    order = [second.feature_names.index(name) for name in first.feature_names]
    return np.asarray(other[:, order, 0].astype(float) - one[..., 0])


def assert_within(moved: Array, limits: Array, changes: Changes) -> None:
    """Assert that changes (row, number) lie within their limits (number, 2), but for rounding."""
    slack = 1e-9 + changes.rounding
    assert (moved <= limits[:, 1] + slack).all(), (moved.max(axis=0), limits[:, 1])
    assert (moved >= limits[:, 0] - slack).all(), (moved.min(axis=0), limits[:, 0])


def other_feature(random: np.random.Generator, feature: Feature) -> Feature:
    """Return the feature as another fit might have found it: with other knots, levels and rare levels."""
    if isinstance(feature, Category):
        levels = [*feature.levels, *feature.rare, "new 1", "new 2"]
        kept = random.permutation(levels)[: random.integers(1, len(levels) + 1)].tolist()
        n_rare = random.choice([0, 2]) if len(kept) > 3 else 0
        return Category(feature.name, tuple(kept[n_rare:]), tuple(kept[:n_rare]))
    if feature.is_boolean or random.integers(2):
        return feature
    low, high = feature.knots[0], feature.knots[-1]
    return Number(feature.name, np.unique(random.uniform(low - 1, high + 1, random.integers(1, 6))))


def sizes(draw: st.DrawFn) -> dict[str, object]:
    n_experts = draw(st.integers(1, 4))
    return {
        "n_experts": n_experts,
        "n_active": draw(st.integers(1, n_experts)),
        "n_members": draw(st.integers(1, 3)),
        "gate": draw(st.sampled_from(tuple(GATES))),
        "routing": draw(st.sampled_from(sorted(ROUTINGS))),
        "scale": draw(st.sampled_from([0.1, 1.0, 30.0])),
        "dtype": draw(st.sampled_from([np.float64, np.float32])),
        "is_clamped": draw(st.booleans()),
    }


def nudged(model: TableModel, random: np.random.Generator, size: float, *, of_gate: bool) -> TableModel:
    """Return the model with a part of its experts moved, and its gate if asked."""
    is_moved = random.uniform(size=model.experts.shape) < 0.3
    clamps = model.clamps
    if clamps is not None and random.integers(2):
        by = size * np.sign(random.standard_normal(clamps.lower.shape))
        model = replace(model, clamps=clamps.shifted(by))
    experts = model.experts + (size * is_moved * random.standard_normal(model.experts.shape)).astype(
        model.experts.dtype
    )
    found = replace(model, experts=experts, intercept=model.intercept + size)
    if not of_gate:
        return found
    arrays = {
        name: array + (size * random.standard_normal(array.shape)).astype(array.dtype)
        for name, array in model.gate.arrays.items()
    }
    return replace(found, gate=replace(model.gate, **arrays))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[TableModel, TableModel, Columns]:
    """Draw two models of the same features, from alike to unrelated, and rows that both can read."""
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    first = make_model(random, n_features=draw(st.integers(1, 4)), n_outputs=draw(st.integers(1, 2)), **sizes(draw))
    kind = draw(st.sampled_from(["experts", "gate", "other"]))
    if kind == "other":
        features = tuple(other_feature(random, feature) for feature in first.schema.features)
        second = make_model(random, features=features, n_outputs=first.n_outputs, **sizes(draw))
        second = permuted(second, random.permutation(second.n_features).tolist())
    else:
        second = nudged(first, random, draw(st.sampled_from([1e-3, 0.3])), of_gate=kind == "gate")
    schema = draw(st.sampled_from([first.schema, merge(first, second)[0].schema]))
    return first, second, make_table(random, schema, 30)


@settings(max_examples=80)
@given(pairs())
def test_no_row_changes_more_than_is_proven(drawn: tuple[TableModel, TableModel, Columns]) -> None:
    first, second, table = drawn
    changes = changes_of(first, second)
    moved = moved_between(first, second, table)
    assert_within(moved, changes.of_features, changes)
    assert_within(moved.sum(axis=1, keepdims=True) + changes.of_intercept, changes.of_score[None], changes)


@settings(max_examples=30)
@given(pairs(), st.integers(0, 99))
def test_no_search_finds_more_than_is_proven(drawn: tuple[TableModel, TableModel, Columns], seed: int) -> None:
    changes = changes_of(*drawn[:2])
    score, features = farthest(changes, seed=seed)
    assert_within(np.array([[score.change]]), changes.of_score[None], changes)
    assert_within(np.array([[one.change for one in features]]), changes.of_features, changes)


@settings(max_examples=40)
@given(pairs(), st.integers(0, 2**16))
def test_models_over_the_slots_of_both_answer_as_they_did(
    drawn: tuple[TableModel, TableModel, Columns], seed: int
) -> None:
    models = drawn[:2]
    if any(model.routing.n_active < model.n_experts for model in models):
        return  # equal logits may be rounded either way
    both = merge(*models)
    table = make_table(np.random.default_rng(seed), both[0].schema, 30)  # of levels that are alike, one is kept
    for model, merged in zip(models, both, strict=True):
        order = [model.feature_names.index(name) for name in merged.feature_names]
        expected = model.contributions(table).values[:, order]
        rounding = 1e-4 if model.experts.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(merged.contributions(table).values, expected, atol=rounding)


def test_a_bound_that_is_exceeded_is_noticed() -> None:
    model = make_model(np.random.default_rng(0), features=FEATURES)
    changes = changes_of(model, model)
    limits = np.array([[-1.0, 1.0]])
    assert_within(np.array([[1.0]]), limits, changes)
    for wrong in (1.01, -1.01):
        with pytest.raises(AssertionError):
            assert_within(np.array([[wrong]]), limits, changes)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("n_active", [1, 3])
def test_a_model_does_not_change_beside_itself(gate: str, n_active: int) -> None:
    model = make_model(np.random.default_rng(0), features=FEATURES, gate=gate, n_active=n_active, n_members=2)
    changes = changes_of(model, permuted(model, [2, 0, 1]))
    assert not changes.of_features.any()
    assert not changes.of_score.any()


def test_clamps_tighten_what_is_proven() -> None:
    """Clamps that leave one contribution at every slot leave one change."""
    random = np.random.default_rng(0)
    models, curves = [], []
    for _ in range(2):
        model = make_model(random, features=FEATURES, n_experts=4, n_outputs=2)
        curve = np.mean(model.slot_bounds, axis=0)
        models.append(replace(model, clamps=Clamps(curve, curve)))
        curves.append(curve)
    free = changes_of(*(replace(model, clamps=None) for model in models))
    changes = Changes.of(models[0], models[1], np.array([1.0, -1.0]))
    moved = (curves[1] - curves[0]) @ np.array([1.0, -1.0])
    per_output = (curves[1] - curves[0])[:, 0]
    for i, own in enumerate(changes.first.reachable):
        np.testing.assert_allclose(
            changes_of(models[0], models[1]).of_features[i], [per_output[own].min(), per_output[own].max()]
        )
        assert changes.of_features[i, 0] <= moved[own].min() <= moved[own].max() <= changes.of_features[i, 1]
    assert np.ptp(changes_of(models[0], models[1]).of_features, axis=1).sum() < np.ptp(free.of_features, axis=1).sum()


def test_moved_clamps_move_a_contribution_by_no_more() -> None:
    model = make_model(np.random.default_rng(0), features=FEATURES, is_clamped=True)
    by = np.zeros((len(model.experts), 1))
    by[model.schema.offsets[1]] = 0.25
    changes = changes_of(model, replace(model, clamps=model.clamps.shifted(by)))
    np.testing.assert_allclose(changes.of_features, [[0, 0], [0, 0.25], [0, 0]], atol=1e-12)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("n_active", [1, 3])
def test_with_the_same_gate_a_moved_slot_moves_the_score_by_as_much(gate: str, n_active: int) -> None:
    model = make_model(np.random.default_rng(0), features=FEATURES, gate=gate, n_active=n_active, n_members=2)
    slot = model.schema.offsets[1] + 1
    experts = model.experts.copy()
    experts[slot] += 0.25
    changes = changes_of(model, replace(model, experts=experts))
    np.testing.assert_allclose(changes.of_features, [[0, 0], [0, 0.25], [0, 0]], atol=1e-12)
    np.testing.assert_allclose(changes.of_score, [0, 0.25], atol=1e-12)


def _lower_unseen(model: TableModel) -> None:
    model.experts[-1] -= 9.0


def _raise_missing(model: TableModel) -> None:
    model.experts[model.schema.slots(1).stop - 2] += 9.0


def _raise_level(model: TableModel) -> None:
    model.experts[model.schema.slots(2).start + 1] += 9.0


LIES: dict[str, tuple[Callable[[TableModel], None], str, object]] = {
    "an unseen level": (_lower_unseen, "town", "unseen"),
    "a missing number": (_raise_missing, "age", None),
    "a level": (_raise_level, "town", "Köln"),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("gate", GATES)
def test_a_planted_change_is_found_with_its_input(lie: str, gate: str) -> None:
    plant, name, value = LIES[lie]
    model = make_model(np.random.default_rng(1), features=FEATURES, gate=gate, n_members=2)
    second = replace(model, experts=model.experts.copy())
    plant(second)
    changes = changes_of(model, second)
    score, features = farthest(changes)
    at = model.feature_names.index(name)
    assert abs(score.change) == pytest.approx(9.0)
    assert abs(features[at].change) == pytest.approx(9.0)
    merged = changes.first.model.schema
    slot = score.row[at] - merged.offsets[at]
    shown = {None: "missing"}.get(value, value)
    assert merged.features[at].labels[slot] == shown
    assert np.abs(changes.of_features[at]).max() == pytest.approx(9.0)


def test_an_additive_model_is_compared_exactly() -> None:
    random = np.random.default_rng(2)
    first = make_model(random, features=FEATURES, n_experts=1)
    features = (Number("income", np.array([0.5, 2.5])), FEATURES[1], Category("town", ("Hof", "Köln"), ("Ulm", "Jena")))
    changes = changes_of(first, make_model(random, features=features, n_experts=1, n_members=2))
    score, found = farthest(changes)
    np.testing.assert_allclose([abs(one.change) for one in found], np.abs(changes.of_features).max(axis=1))
    assert abs(score.change) == pytest.approx(np.abs(changes.of_score).max())


def test_a_column_that_was_empty_in_one_fit_is_compared() -> None:
    random = np.random.default_rng(3)
    empty = tuple(Number(feature.name, np.zeros(1), has_missing=True) for feature in FEATURES)
    first, second = (make_model(random, features=features) for features in (FEATURES, empty))
    changes = changes_of(first, second)
    table = Columns(
        (np.array([1.0, np.nan]), np.array([np.nan, 20.0]), np.array(["Ulm", None], dtype=object)),
        first.feature_names,
    )
    assert_within(moved_between(first, second, table), changes.of_features, changes)
    both = changes_of(second, make_model(random, features=empty))
    assert [len(own) for own in both.first.reachable] == [2, 2, 2]


@settings(max_examples=50)
@given(st.integers(0, 2**16), st.integers(1, 5))
def test_the_largest_mean_under_logits_in_a_range_is_the_largest(seed: int, n_experts: int) -> None:
    random = np.random.default_rng(seed)
    values, one, other = random.standard_normal((3, 2, n_experts, 2)) * np.array([1.0, 5.0, 5.0])[:, None, None, None]
    least, most = np.minimum(one, other), np.maximum(one, other)
    found = _softmax_most(values, least, most)
    corners = np.stack(np.meshgrid(*[[0, 1]] * n_experts), axis=-1).reshape(-1, n_experts)[:, None, :, None]
    weights = np.exp(np.where(corners, most, least))
    weights /= weights.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(found, (weights * values).sum(axis=2).max(axis=0))


def test_logits_that_are_far_apart_give_a_number() -> None:
    far = np.array([-1e15, 0.0, 1e15]).reshape(1, 3, 1)
    found = _softmax_most(np.array([1.0, 2.0, 3.0]).reshape(1, 3, 1), far, far)
    assert found.item() == pytest.approx(3.0)
    assert _softmax_most(np.array([3.0, 2.0, 1.0]).reshape(1, 3, 1), far, far).item() == pytest.approx(1.0)


def test_rare_levels_that_share_their_slots_are_one_level() -> None:
    rare = tuple(f"rare {i}" for i in range(1000))
    features = [(Category("town", ("Ulm",), rare),), (Category("town", ("Ulm", "rare 7"), rare[:7]),)]
    one, _ = merge(*(make_model(np.random.default_rng(0), features=own) for own in features))
    assert one.schema.features[0].levels == ("Ulm", "rare 0", "rare 7", "rare 8")
