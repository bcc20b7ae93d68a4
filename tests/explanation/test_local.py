from dataclasses import fields, replace
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from nae.encoding import Columns
from nae.errors import DataError, UserError
from nae.explanation import LocalExplanation, with_statistics
from nae.explanation.context import raw_parts
from nae.explanation.reference import MeanGate, mean_contributions
from nae.links import LINKS
from nae.plots.layouts.bars import lay_out_waterfall
from nae.tables import TableModel, load, save
from tests.explanation.examples import explained_model, raw_part_oracle, remembering
from tests.laws.drawn import models_with_tables
from tests.laws.models import make_model, make_table, permuted


def take_member(model: TableModel, member: int) -> TableModel:
    """Return one member alone, with that member's part of the statistics."""
    gate, statistics = model.gate, model.statistics
    assert statistics is not None
    pick = slice(member, member + 1)
    return replace(
        model,
        experts=model.experts[..., pick],
        gate=replace(
            gate,
            terms=gate.terms[..., pick],
            bias=gate.bias[..., pick],
            mix=None if gate.mix is None else gate.mix[pick],
            mix_bias=None if gate.mix_bias is None else gate.mix_bias[..., pick],
        ),
        statistics=replace(statistics, gate_mean=statistics.gate_mean[..., pick]),
    )


@settings(max_examples=40)
@given(models_with_tables(may_clamp=True), st.integers(0, 99), st.integers(1, 3))
def test_own_effect_parts_and_rest_sum_to_the_contribution(
    drawn: tuple[TableModel, Columns], seed: int, n_causes: int
) -> None:
    model, table = remembering(drawn[0], seed, n_rows=30), drawn[1]
    found = model.explain_local(table, n_causes=n_causes)
    scale = 1e-6 * (1 + np.abs(found.values).max())
    np.testing.assert_allclose(found.own + found.parts.sum(axis=-1) + found.rest, found.values, atol=scale)
    np.testing.assert_allclose(found.score, model.decision_function(table).reshape(found.score.shape), atol=scale)
    assert np.all(found.lower <= found.values)
    assert np.all(found.values <= found.upper)


@pytest.mark.parametrize("gate", ["additive", "low-rank", "deep"])
def test_a_feature_is_no_cause_of_its_own_shift(gate: str) -> None:
    model, table = explained_model(n_features=4, gate=gate)
    found = model.explain_local(table)
    assert found.causes.shape == (12, 4, 1, 3)
    for i in range(4):
        assert set(found.causes[:, i].ravel()) == set(range(4)) - {i}


@pytest.mark.parametrize("gate", ["additive", "low-rank", "deep"])
@pytest.mark.parametrize(("n_outputs", "n_members"), [(1, 1), (3, 2)])
def test_parts_are_integrated_gradients_along_the_gate(gate: str, n_outputs: int, n_members: int) -> None:
    model, table = explained_model(3, n_features=3, gate=gate, n_outputs=n_outputs, n_members=n_members)
    table = table.take(np.arange(3))
    assert model.statistics is not None
    parts, values, reference = raw_parts(MeanGate(model, model.statistics.gate_mean), model.cells(table))
    # A deep gate has kinks along the way, which eight points of quadrature meet less well than one smooth curve.
    np.testing.assert_allclose(parts, raw_part_oracle(model, table), atol=0.05 if gate == "deep" else 2e-3)
    np.testing.assert_allclose(parts.sum(axis=2), values - reference, atol=1e-9)
    assert np.abs(parts).max() > 0.1  # there is something to compare


@pytest.mark.parametrize("shape", [{"n_experts": 1}, {"gate": "diagonal"}, {"scale": 0.0}])
def test_an_additive_model_has_no_shift(shape: dict[str, object]) -> None:
    model, table = explained_model(1, n_features=4, n_members=2, **shape)
    found = model.explain_local(table)
    np.testing.assert_allclose(found.shift, 0.0, atol=1e-12)
    np.testing.assert_allclose(found.parts, 0.0, atol=1e-12)
    np.testing.assert_allclose(found.rest, 0.0, atol=1e-12)


def test_a_gate_that_listens_to_others_has_a_shift() -> None:
    model, table = explained_model(1, n_features=4)
    assert np.abs(model.explain_local(table).shift).max() > 0.1


def test_a_feature_that_no_gate_listens_to_causes_nothing() -> None:
    model, table = explained_model(2, n_features=4)
    terms = model.gate.terms.copy()
    terms[model.schema.slots(2)] = 0.7  # a constant is nobody's doing
    deaf = remembering(replace(model, gate=replace(model.gate, terms=terms)))
    found = deaf.explain_local(table)
    np.testing.assert_allclose(found.parts[found.causes == 2], 0.0, atol=1e-9)
    assert np.abs(found.parts).max() > 0.1


def test_the_usual_context_of_a_value_is_no_news() -> None:
    # Two copies of one column: each knows the other, so nothing about a row is a surprise.
    random = np.random.default_rng(0)
    model = make_model(random, n_features=6, n_experts=4)
    numbers = [i for i, f in enumerate(model.schema.features) if f.kind == "number"]
    feature = model.schema.features[numbers[0]]
    twins = replace(model.schema, features=(feature, replace(feature, name="twin")))
    slots = np.concatenate([np.arange(s.start, s.stop) for s in [model.schema.slots(numbers[0])] * 2])
    columns = [k * 6 + i for k in range(4) for i in numbers[:2]]
    tables = replace(
        model,
        schema=twins,
        experts=model.experts[slots],
        gate=replace(model.gate, terms=model.gate.terms[slots][:, columns], bias=model.gate.bias[columns]),
    )
    values = random.choice(feature.knots, 500)
    explained = with_statistics(tables, {feature.name: values, "twin": values})
    found = explained.explain_local({feature.name: values, "twin": values})
    np.testing.assert_allclose(found.shift, 0.0, atol=1e-9)
    np.testing.assert_allclose(found.parts, 0.0, atol=1e-9)
    strangers = explained.explain_local({feature.name: values, "twin": random.permutation(values)})
    assert np.abs(strangers.parts).max() > 0.05


def test_the_explanation_of_members_is_the_mean_of_theirs() -> None:
    model, table = explained_model(5, n_features=3, n_members=3, n_outputs=3)
    assert model.statistics is not None
    parts, _, reference = raw_parts(MeanGate(model, model.statistics.gate_mean), model.cells(table))
    each = []
    for member in range(3):
        alone = take_member(model, member)
        assert alone.statistics is not None
        each.append(raw_parts(MeanGate(alone, alone.statistics.gate_mean), alone.cells(table)))
    np.testing.assert_allclose(reference, np.mean([one[2] for one in each], axis=0), atol=1e-9)
    # What eight points of quadrature miss is put back for all members at once.
    np.testing.assert_allclose(parts, np.mean([one[0] for one in each], axis=0), atol=1e-3)
    values = np.mean([take_member(model, m).explain_local(table).values for m in range(3)], axis=0)
    np.testing.assert_allclose(model.explain_local(table).values, values, atol=1e-9)


@pytest.mark.parametrize("gate", ["additive", "low-rank", "deep", "diagonal"])
def test_the_order_of_the_columns_does_not_matter(gate: str) -> None:
    model, table = explained_model(4, n_features=4, gate=gate)
    order = [2, 0, 3, 1]
    other = permuted(model, order)
    assert table.names is not None
    moved = Columns(tuple(table.arrays[i] for i in order), tuple(table.names[i] for i in order))
    train = make_table(np.random.default_rng(9), model.schema, 50)
    model = with_statistics(model, train)
    other = with_statistics(other, Columns(tuple(train.arrays[i] for i in order), moved.names))
    one, two = model.explain_local(table), other.explain_local(moved)
    np.testing.assert_allclose(one.own[:, order], two.own, atol=1e-9)
    np.testing.assert_allclose(one.values[:, order], two.values, atol=1e-9)
    for i in range(4):
        for row in range(len(one)):
            by_name = {
                one.feature_names[c]: p for c, p in zip(one.causes[row, i, 0], one.parts[row, i, 0], strict=True)
            }
            at = order.index(i)
            for cause, part in zip(two.causes[row, at, 0], two.parts[row, at, 0], strict=True):
                assert by_name[two.feature_names[cause]] == pytest.approx(part, abs=1e-9)


def test_an_explanation_survives_saving_and_loading(tmp_path: Path) -> None:
    model, table = explained_model(6, n_features=4, n_members=2, n_outputs=3, dtype=np.float32)
    save(model, tmp_path / "m.nae")
    assert load(tmp_path / "m.nae").explain_local(table).to_json() == model.explain_local(table).to_json()


def test_an_explanation_survives_json() -> None:
    model, table = explained_model(7, n_features=5, n_outputs=2)
    found = model.explain_local(table, np.arange(12.0))
    again = LocalExplanation.from_json(found.to_json())
    for item in fields(found):
        one, two = getattr(found, item.name), getattr(again, item.name)
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, two)
        elif item.name != "columns":
            assert one == two
    for one, two in zip(found.columns, again.columns, strict=True):
        np.testing.assert_array_equal(one, two)


def test_no_rows_are_explained_and_written_too() -> None:
    model, table = explained_model(7, n_features=3)
    empty = model.explain_local(table.take(np.arange(0)))
    assert len(empty) == 0
    assert LocalExplanation.from_json(empty.to_json()).parts.shape == (0, 3, 1, 2)


def test_rows_can_be_taken_from_an_explanation() -> None:
    model, table = explained_model(8, n_features=3)
    found = model.explain_local(table, np.arange(12.0))
    one = found[4]
    assert len(one) == 1
    np.testing.assert_array_equal(one.parts[0], found.parts[4])
    assert one.target is not None
    assert one.target.tolist() == [4.0]
    np.testing.assert_array_equal(found[2:5].values, found.values[2:5])
    with pytest.raises(UserError, match=r"A row must be in \[0, 11\]; got 12\."):
        found[12]


def test_few_causes_leave_a_rest() -> None:
    model, table = explained_model(9, n_features=6)
    every, few = model.explain_local(table), model.explain_local(table, n_causes=2)
    assert few.parts.shape[-1] == 2
    np.testing.assert_allclose(few.parts, every.parts[..., :2])
    np.testing.assert_allclose(few.rest, every.parts[..., 2:].sum(axis=-1) + every.rest, atol=1e-12)
    sizes = np.abs(every.parts)
    assert np.all(sizes[..., :-1] >= sizes[..., 1:])


def test_wide_tables_name_ten_causes() -> None:
    model, table = explained_model(10, n_features=280, n_experts=2, gate="low-rank", dtype=np.float32)
    found = model.explain_local(table.take(np.arange(3)))
    assert found.parts.shape == (3, 280, 1, 10)
    np.testing.assert_allclose(found.own + found.parts.sum(axis=-1) + found.rest, found.values, atol=1e-6)


def test_missing_and_unseen_values_are_explained_as_values_of_their_own() -> None:
    model, _ = explained_model(3, n_features=6)
    index, feature = next((i, f) for i, f in enumerate(model.schema.features) if f.kind == "category")
    table = make_table(np.random.default_rng(0), model.schema, 2)
    column = np.array([None, "never seen"], dtype=object)
    arrays = tuple(column if i == index else array for i, array in enumerate(table.arrays))
    found = model.explain_local(Columns(arrays, table.names))
    assert model.statistics is not None
    own = model.statistics.mean[model.schema.slots(index)]
    np.testing.assert_allclose(found.own[:, index], own[-2:])
    frame = found.to_frame("polars")
    shown = frame.filter(frame["feature"] == feature.name)["value"].to_list()
    assert shown == [None, "never seen"]


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_frames_hold_every_contribution_and_every_part(backend: str) -> None:
    model, table = explained_model(7, n_features=3, n_outputs=2)
    found = model.explain_local(table)
    frame = found.to_frame(backend)
    assert type(frame).__module__.startswith(backend)
    assert len(frame) == 12 * 3 * 2
    np.testing.assert_array_equal(np.asarray(frame["contribution"]), found.values.ravel())
    assert list(frame["output"][:2]) == ["class 0", "class 1"]
    parts = found.to_frame(backend, level="causes")
    assert len(parts) == 12 * 3 * 2 * 3  # two causes and the rest
    np.testing.assert_allclose(np.asarray(parts["part"]).reshape(12, 3, 2, 3).sum(axis=-1), found.shift)
    with pytest.raises(UserError, match="level must be 'features' or 'causes'; got 'rows'"):
        found.to_frame(backend, level="rows")


def test_what_is_wrong_with_a_call_is_said() -> None:
    model, table = explained_model(7, n_features=3)
    with pytest.raises(DataError, match=r"y must have one value per row \(12\); got 3\."):
        model.explain_local(table, [1, 2, 3])
    with pytest.raises(UserError, match="n_causes must be at least 1; got 0"):
        model.explain_local(table, n_causes=0)
    with pytest.raises(DataError, match="this model was built without them"):
        replace(model, statistics=None).explain_local(table)
    with pytest.raises(UserError, match="No feature is called 'f9'"):
        model.explain_local(table).feature_index("f9")


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_an_offset_is_part_of_the_score_and_of_no_contribution(n_outputs: int) -> None:
    model, columns = explained_model(1, n_outputs=n_outputs)
    offset = np.arange(12.0)[:, None] * np.arange(1, n_outputs + 1)
    found, without = model.explain_local(columns, offset=offset), model.explain_local(columns)
    np.testing.assert_array_equal(found.values, without.values)
    np.testing.assert_allclose(found.score, without.score + offset)
    np.testing.assert_allclose(found.prediction, model.link.inverse(found.score))
    np.testing.assert_allclose(found[3].base, [model.intercept + offset[3]])
    again = LocalExplanation.from_json(found.to_json())
    np.testing.assert_array_equal(again.offset, offset)
    assert "offset 3" in repr(found[3])
    layout = lay_out_waterfall(found, 3, output=0)
    assert layout.steps[0].start == pytest.approx(model.intercept[0] + 3)
    assert layout.steps[-1].end == pytest.approx(found.score[3, 0])
    assert layout.base_name == "intercept and offset"
    data = found.data(3)["extra"]
    assert data["names"] == ["Intercept", "Offset"]
    assert np.ravel(data["scores"][1])[0] == 3


def test_an_explanation_written_before_there_were_offsets_is_read() -> None:
    model, columns = explained_model(1)
    content = model.explain_local(columns).to_dict()
    del content["offset"]
    assert LocalExplanation.from_dict(content).offset is None


def test_shap_starts_where_the_sum_does() -> None:
    pytest.importorskip("shap")
    model, columns = explained_model(1)
    found = model.explain_local(columns, offset=np.arange(12.0))
    shown = found.to_shap()
    np.testing.assert_allclose(shown.base_values + shown.values.sum(axis=1), found.score[:, 0])


@settings(max_examples=40)
@given(models_with_tables(may_clamp=True), st.integers(0, 99), st.sampled_from(["identity", "log", "logit", "softmax"]))
def test_in_the_unit_of_the_prediction_contributions_sum_to_the_change_from_the_average_row(
    drawn: tuple[TableModel, Columns], seed: int, link: str
) -> None:
    model = remembering(with_link(drawn[0], link), seed, n_rows=30)
    plain, found = (model.explain_local(drawn[1], n_causes=2, unit=unit) for unit in ("score", "response"))
    assert found.unit == ("probability" if model.classes else "response")
    size = np.maximum(1.0, np.abs(found.prediction).max())
    np.testing.assert_allclose(found.score, found.prediction, rtol=0, atol=1e-9 * size)
    average = model.link.inverse(model.intercept + mean_contributions(model).sum(axis=0, keepdims=True))
    np.testing.assert_allclose(found.base, np.broadcast_to(average, found.base.shape), rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(
        found.own + found.parts.sum(axis=-1) + found.rest, found.values, rtol=0, atol=1e-9 * size
    )
    assert np.all(found.lower <= found.values)
    assert np.all(found.values <= found.upper)
    if model.n_outputs == 1:  # a positive factor per row
        away = plain.values - mean_contributions(model)
        assert np.all(found.values * away >= 0)


def with_link(model: TableModel, link: str) -> TableModel:
    """Return the model with small scores and another link, as far as its outputs allow."""
    model = replace(model, experts=model.experts / 8, intercept=model.intercept / 8, clamps=None)
    if link == "softmax" and model.n_outputs > 1:
        return replace(model, link=LINKS[link], classes=model.outputs)
    if link == "logit" and model.n_outputs == 1:
        return replace(model, link=LINKS[link], classes=("no", "yes"), outputs=("yes",))
    return replace(model, link=LINKS["log" if link == "log" else "identity"], classes=())


def test_an_offset_moves_the_average_row_too() -> None:
    model, table = explained_model(link="log")
    offset = np.linspace(-1, 1, 12)
    found = model.explain_local(table, offset=offset, unit="response")
    np.testing.assert_allclose(found.score[:, 0], model.predict(table, offset=offset), rtol=1e-9)
    assert found.offset is not None
    np.testing.assert_allclose(found.base[:, 0], found.intercept[0] * np.exp(offset))


def test_parts_of_probabilities_name_the_same_features_as_all_parts_together() -> None:
    model, table = explained_model(n_outputs=3, n_features=5)
    few, every = (model.explain_local(table, unit="probability", n_causes=n) for n in (1, 4))
    np.testing.assert_array_equal(few.causes, every.causes[..., :1])
    np.testing.assert_allclose(few.rest, every.parts[..., 1:].sum(axis=-1) + every.rest, atol=1e-12)


def test_a_unit_that_a_model_does_not_have_is_refused() -> None:
    model, table = explained_model()
    with pytest.raises(UserError, match="unit must be 'score', 'probability' or 'response'; got 'percent'"):
        model.explain_local(table, unit="percent")
    with pytest.raises(UserError, match=r"'probability' needs a classifier; .* Use unit='response'"):
        model.explain_local(table, unit="probability")


def test_an_explanation_in_probabilities_says_so() -> None:
    model, table = explained_model(link="logit", n_members=2)
    found = replace(model, outputs=("yes",)).explain_local(table, unit="response")
    assert f"average row {found.intercept[0]:.4g}" in repr(found[0])
    layout = lay_out_waterfall(found, 3)
    assert (layout.base_name, layout.score_name) == ("average row", "prediction")
    assert [step.end for step in layout.steps][:-1] == pytest.approx([step.start for step in layout.steps][1:])
    assert layout.steps[-1].end == pytest.approx(layout.score)
    assert layout.label == "probability of yes in %"
    assert layout.score == pytest.approx(100 * found.prediction[3, 0])
    assert "average row: " in layout.note
    back = LocalExplanation.from_json(found.to_json())
    assert back.unit == "probability"
    old = found.to_dict()
    del old["unit"]
    assert LocalExplanation.from_dict(old).unit == "score"
