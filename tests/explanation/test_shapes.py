from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from nae import metrics
from nae.encoding import Category, Columns, Number, Schema
from nae.errors import DataError, FormatError, UserError
from nae.explanation import GlobalExplanation, with_statistics
from nae.explanation.shapes import FeatureShape, value_order
from nae.tables import TableModel, load, save
from tests.explanation.examples import explained_model
from tests.laws.models import make_model, make_table


def assert_same_shape(one: FeatureShape, two: FeatureShape) -> None:
    for item in fields(one):
        a, b = getattr(one, item.name), getattr(two, item.name)
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)
        else:
            assert a == b


def test_two_different_shapes_are_not_the_same() -> None:
    model, _ = explained_model()
    one, two = model.explain_global().features[:2]
    with pytest.raises(AssertionError):
        assert_same_shape(one, two)


@pytest.mark.parametrize("gate", ["additive", "low-rank", "deep", "diagonal"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_mean_effects_and_quantiles_lie_between_the_bounds(gate: str, n_outputs: int) -> None:
    model, _ = explained_model(1, n_features=5, gate=gate, n_outputs=n_outputs, n_members=2)
    for shape in model.explain_global().features:
        for values in (shape.mean, shape.quantiles):
            assert np.all(shape.lower - 1e-12 <= values)
            assert np.all(values <= shape.upper + 1e-12)


def test_the_mean_effect_of_an_additive_model_is_its_expert() -> None:
    model, _ = explained_model(2, n_features=4, n_experts=1, n_members=2)
    for i, shape in enumerate(model.explain_global().features):
        order = value_order(model.schema.features[i], model.experts[model.schema.slots(i)][:, 0].mean(axis=-1))
        expected = model.experts[model.schema.slots(i)][:, 0, 0].mean(axis=-1)[order]
        np.testing.assert_allclose(shape.mean[:, 0], expected)
        np.testing.assert_allclose(shape.lower, shape.upper)
        np.testing.assert_allclose(shape.additivity, 1.0)


def test_missing_and_unseen_are_the_last_two_values() -> None:
    model, _ = explained_model(3, n_features=6)
    assert model.statistics is not None
    for i, shape in enumerate(model.explain_global().features):
        assert shape.roles[-2:] == ("missing", "unseen")
        assert shape.labels[-2:] == ("missing", "unseen")
        np.testing.assert_array_equal(shape.mean[-2:], model.statistics.mean[model.schema.slots(i)][-2:])


def test_numbers_per_feature_agree_with_the_metrics() -> None:
    random = np.random.default_rng(4)
    model = make_model(random, n_features=4, n_members=3)
    train = make_table(random, model.schema, 200)
    model = with_statistics(model, train)
    found = model.explain_global()
    values = model.contributions(train).values
    additivity = metrics.additivity(model, train)
    stability = metrics.stability(model, train)
    for i, shape in enumerate(found.features):
        assert shape.importance[0] == pytest.approx(values[:, i].std())
        assert shape.additivity[0] == pytest.approx(additivity.per_feature[shape.name], abs=1e-6)
        assert shape.stability is not None
        assert shape.stability[0] == pytest.approx(stability.per_feature[shape.name])
    assert found.additivity == pytest.approx(float(additivity), abs=1e-6)
    assert found.interaction_share == pytest.approx(float(metrics.interaction_share(model, train)))
    assert found.cancellation == pytest.approx(float(metrics.cancellation(model, train)))
    assert found.stability == pytest.approx(float(stability))


def test_weights_are_shares_of_the_rows() -> None:
    schema = Schema((Number("x", np.array([0.0, 1.0]), has_missing=True), Category("c", ("a", "b"))))
    model = _with_schema(schema)
    rows = {"x": [0.0, 0.25, None, 1.0], "c": ["a", "a", "b", "a"]}
    shapes = with_statistics(model, rows).explain_global()
    np.testing.assert_allclose(shapes.feature("x").weight, [1.75 / 4, 1.25 / 4, 0.25, 0.0])
    assert dict(zip(shapes.feature("c").labels, shapes.feature("c").weight, strict=True))["a"] == 0.75
    assert shapes.feature("x").has_missing
    assert not shapes.feature("c").has_missing


def _with_schema(schema: Schema, n_outputs: int = 1) -> TableModel:
    model = make_model(np.random.default_rng(0), n_features=len(schema), n_outputs=n_outputs, n_experts=1)
    random = np.random.default_rng(1)
    experts = random.standard_normal((schema.n_slots, 1, n_outputs, 1))
    terms = np.zeros((schema.n_slots, len(schema), 1))
    return replace(model, schema=schema, experts=experts, gate=replace(model.gate, terms=terms))


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (("10", "9", "-1", "2.5"), ("-1", "2.5", "9", "10")),
        (("40-49", "18-29", "30-39", "50+"), ("18-29", "30-39", "40-49", "50+")),
        ((">5", "<5", "5"), ("<5", "5", ">5")),
        (("may", "jan", "dec", "apr"), ("jan", "apr", "may", "dec")),
        (("Sunday", "Monday", "Friday"), ("Monday", "Friday", "Sunday")),
    ],
)
def test_levels_with_an_order_of_their_own_keep_it(levels: tuple[str, ...], expected: tuple[str, ...]) -> None:
    feature = Category("c", levels)
    order = value_order(feature, np.zeros((feature.n_slots, 1)))
    assert tuple(feature.labels[i] for i in order) == (*expected, "missing", "unseen")


def test_other_levels_are_ordered_by_effect_and_with_several_outputs_by_frequency() -> None:
    feature = Category("c", ("often", "rarely", "marked"), rare=("x", "y"))
    mean = np.array([[0.3], [-1.0], [0.1], [9.0], [0.0], [0.0]])
    one = [feature.labels[i] for i in value_order(feature, mean)]
    assert one == ["rarely", "marked", "often", "other", "missing", "unseen"]
    several = [feature.labels[i] for i in value_order(feature, np.repeat(mean, 2, axis=1))]
    assert several == ["often", "rarely", "marked", "other", "missing", "unseen"]


def test_the_members_spread_is_that_of_their_centred_effects() -> None:
    model, _ = explained_model(5, n_features=3, n_experts=1, n_members=4)
    assert model.statistics is not None
    moved = model.experts + np.arange(4.0)  # a constant between members is no disagreement
    one, two = model.explain_global(), replace(model, experts=moved).explain_global()
    for first, second in zip(one.features, two.features, strict=True):
        np.testing.assert_allclose(first.member_spread, second.member_spread, atol=1e-9)
    assert max(shape.member_spread.max() for shape in one.features) > 0.1


def test_a_single_member_has_no_stability() -> None:
    model, _ = explained_model(n_members=1)
    found = model.explain_global()
    assert found.stability is None
    assert found.features[0].stability is None


def test_dots_are_the_contributions_of_the_given_rows() -> None:
    model, table = explained_model(6, n_features=5)
    found = model.explain_global(table)
    values = model.contributions(table).values
    for i, shape in enumerate(found.features):
        assert shape.dots is not None
        assert shape.dots_at is not None
        np.testing.assert_array_equal(shape.dots[:, 0], values[:, i])
        column = table.arrays[i]
        if shape.kind == "category":
            labels = [shape.labels[int(at)] for at in shape.dots_at]
            known = {level: level for level in model.schema.features[i].labels}
            rare = getattr(model.schema.features[i], "rare", ())
            expected = ["missing" if v is None else "other" if v in rare else known.get(v, "unseen") for v in column]
            assert labels == expected
        else:
            numbers = column.astype(float)
            knots = shape.numbers[:-2]
            np.testing.assert_allclose(shape.dots_at, np.clip(numbers, knots[0], knots[-1]), rtol=1e-9)


def test_many_rows_leave_a_thousand_dots() -> None:
    model, _ = explained_model(6)
    many = make_table(np.random.default_rng(0), model.schema, 3000)
    dots = model.explain_global(many).features[0].dots
    assert dots is not None
    assert len(dots) == 1000


def test_an_explanation_survives_json_saving_and_loading(tmp_path: Path) -> None:
    model, table = explained_model(7, n_features=5, n_outputs=3, n_members=2, dtype=np.float32)
    found = model.explain_global(table)
    again = GlobalExplanation.from_json(found.to_json())
    for one, two in zip(found.features, again.features, strict=True):
        assert_same_shape(one, two)
    assert again.to_dict() == found.to_dict()
    save(model, tmp_path / "m.nae")
    assert load(tmp_path / "m.nae").explain_global(table).to_json() == found.to_json()


def test_a_broken_file_is_refused() -> None:
    model, _ = explained_model()
    content = model.explain_global().to_dict()
    with pytest.raises(FormatError, match="Expected type 'global' in format 1; got 'local'"):
        GlobalExplanation.from_dict(content | {"type": "local"})
    with pytest.raises(FormatError, match="'surprise' is too much or absent"):
        GlobalExplanation.from_dict(content | {"surprise": 1})
    with pytest.raises(FormatError, match="GlobalExplanation cannot be rebuilt"):
        GlobalExplanation.from_dict(content | {"intercept": ["a"]})


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_frames_hold_every_value_and_every_feature(backend: str) -> None:
    model, _ = explained_model(8, n_features=4, n_outputs=2)
    found = model.explain_global()
    values = found.to_frame(backend)
    assert type(values).__module__.startswith(backend)
    assert len(values) == 2 * model.schema.n_slots
    np.testing.assert_allclose(
        np.asarray(values["upper"]), np.concatenate([shape.upper.ravel() for shape in found.features])
    )
    assert {"q05", "q50", "q95", "member_spread"} <= set(values.columns)
    features = found.to_frame(backend, level="features")
    assert list(features["feature"]) == [f"f{i}" for i in range(4) for _ in range(2)]
    with pytest.raises(UserError, match="level must be 'values' or 'features'; got 'rows'"):
        found.to_frame(backend, level="rows")
    with pytest.raises(ValueError, match="backend must be 'pandas' or 'polars'; got 'dask'"):
        found.to_frame("dask")


def test_features_are_ranked_by_importance() -> None:
    model, _ = explained_model(9, n_features=5, n_outputs=3)
    found = model.explain_global()
    overall = [float(np.sqrt(np.mean(shape.importance**2))) for shape in found.ranked()]
    assert overall == sorted(overall, reverse=True)
    one = [float(shape.importance[1]) for shape in found.ranked(1)]
    assert one == sorted(one, reverse=True)
    with pytest.raises(UserError, match="No feature is called 'f7'"):
        found.feature("f7")


def test_wide_tables_are_explained() -> None:
    model, _ = explained_model(10, n_features=280, n_experts=2, gate="low-rank", dtype=np.float32)
    assert len(model.explain_global().features) == 280


def test_statistics_can_be_those_of_other_rows() -> None:
    model, table = explained_model(11)
    twice = with_statistics(model, table, sample_weight=np.full(12, 2.0))
    once = with_statistics(model, table)
    assert twice.statistics is not None
    assert once.statistics is not None
    np.testing.assert_allclose(twice.statistics.mean, once.statistics.mean)
    np.testing.assert_allclose(twice.statistics.weight, 2 * once.statistics.weight)
    np.testing.assert_allclose(twice.statistics.influence, once.statistics.influence)
    with pytest.raises(DataError, match=r"got 12 rows and weights of shape \(3,\)"):
        with_statistics(model, table, sample_weight=[1, 2, 3])
    with pytest.raises(DataError, match="Statistics need rows"):
        with_statistics(model, Columns(tuple(array[:0] for array in table.arrays), table.names))


def test_the_mean_effect_of_a_level_is_the_mean_contribution_of_its_rows() -> None:
    random = np.random.default_rng(12)
    model = make_model(random, n_features=6, n_members=2)
    train = make_table(random, model.schema, 300)
    index = next(i for i, feature in enumerate(model.schema.features) if feature.kind == "category")
    shape = with_statistics(model, train).explain_global().features[index]
    values = model.contributions(train).values[:, index]
    for level in model.schema.features[index].labels[:2]:
        rows = train.arrays[index] == level
        assert rows.sum() > 10
        assert shape.mean[shape.labels.index(level), 0] == pytest.approx(values[rows].mean())
