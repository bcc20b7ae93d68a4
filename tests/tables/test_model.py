"""The table model: what it answers, and what it refuses."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from nae.encoding import Category, Columns, Number, Schema
from nae.errors import DataError, UserError
from nae.links import LINKS
from nae.tables import GateTables, SoftmaxRouting, TableModel, TrainingSummary
from tests.laws.models import make_model, make_table


@pytest.fixture
def model() -> TableModel:
    """Return a hand-made model: two experts of 'size', chosen by 'kind'."""
    schema = Schema((Number("size", np.array([0.0, 10.0])), Category("kind", ("big", "small"))))
    experts = np.zeros((8, 2, 1, 1))
    experts[:4, :, 0, 0] = [[0.0, 1.0], [10.0, 3.0], [-1.0, -1.0], [5.0, 2.0]]
    experts[4:, :, 0, 0] = [[2.0, 2.0], [4.0, 4.0], [3.0, 3.0], [3.0, 3.0]]
    terms = np.zeros((8, 4, 1))
    terms[4, 0], terms[5, 2] = 50.0, 50.0  # 'big' picks the first expert of 'size', 'small' the second
    gate = GateTables("additive", terms, np.zeros((4, 1)))
    return TableModel(schema, experts, gate, SoftmaxRouting(2), np.array([100.0]), LINKS["identity"])


def test_a_small_model_can_be_followed_by_hand(model):
    rows = pd.DataFrame({"size": [0.0, 5.0, 10.0, 5.0, np.nan], "kind": ["big", "big", "small", "odd", "small"]})
    found = model.contributions(rows)
    np.testing.assert_allclose(found.values[:, 0], [0, 5, 3, 3.5, -1], atol=1e-12)
    np.testing.assert_allclose(found.values[:, 1], [2, 2, 4, 3, 4], atol=1e-12)
    np.testing.assert_allclose(found.lower[:, 0], [0, 2, 3, 2, -1])
    np.testing.assert_allclose(found.upper[:, 0], [1, 5, 10, 5, -1])
    np.testing.assert_allclose(model.predict(rows), [102, 107, 107, 106.5, 103])
    assert found.intercept == 100
    assert found.feature_names == ("size", "kind")
    assert found.output_names == ()
    assert len(found) == 5


def test_contributions_of_one_feature_are_found_by_name(model):
    found = model.contributions({"size": [5.0], "kind": ["big"]})
    np.testing.assert_allclose(found.feature("size"), [5.0])
    with pytest.raises(UserError, match=r"No feature is called 'sizes'. Did you mean 'size'"):
        found.feature("sizes")


def test_experts_and_weights_come_on_request(model):
    rows = {"size": [5.0], "kind": ["big"]}
    assert model.contributions(rows).experts is None
    found = model.contributions(rows, with_experts=True)
    assert found.experts.shape == (1, 2, 1, 2, 1)
    assert found.routing.shape == (1, 2, 1, 2)
    np.testing.assert_allclose(found.experts[0, 0, 0, :, 0], [5, 2])
    np.testing.assert_allclose(found.routing[0, 0, 0], [1, 0], atol=1e-12)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"kind": ["small"], "more": [1], "size": [10]}),
        pl.DataFrame({"kind": ["small"], "more": [1], "size": [10]}),
        {"kind": ["small"], "size": [10]},
        [{"kind": "small", "size": 10}],
        [[10, "small"]],
    ],
    ids=["pandas", "polars", "mapping", "records", "list"],
)
def test_columns_are_matched_by_name_where_there_are_names(model, table):
    np.testing.assert_allclose(model.predict(table), [107])


def test_a_missing_column_is_an_error(model):
    with pytest.raises(DataError, match=r"must have the column 'size' the model was trained on. Did you mean 'sizes'"):
        model.predict(pd.DataFrame({"kind": ["small"], "sizes": [1]}))


def test_the_wrong_number_of_columns_is_an_error(model):
    with pytest.raises(DataError, match="must have the 2 columns the model was trained on; got 3"):
        model.predict([[1, "small", 2]])


def test_text_where_a_number_belongs_is_an_error(model):
    with pytest.raises(DataError, match="Column 'size' must hold numbers; row 1 holds 'huge'"):
        model.predict([[1, "small"], ["huge", "small"]])


def test_cells_pass_through(model):
    cells = model.cells([[5, "big"]])
    assert model.cells(cells) is cells
    np.testing.assert_allclose(model.predict(cells), [107])


def test_an_offset_is_added_to_the_score(model):
    rows = [[0, "big"], [0, "big"]]
    np.testing.assert_allclose(model.decision_function(rows, offset=[1.0, -1.0]), [103, 101])
    logarithmic = replace(model, link=LINKS["log"], intercept=np.zeros(1))
    base = logarithmic.predict(rows)
    np.testing.assert_allclose(logarithmic.predict(rows, offset=np.log([2.0, 3.0])), base * [2, 3])


@pytest.mark.parametrize("offset", [[1.0], 1.0, np.zeros((2, 3)), np.zeros((2, 1, 1))])
def test_an_offset_that_does_not_fit_is_an_error(model, offset):
    with pytest.raises(DataError, match=r"offset must have one value per row \(2\); got shape"):
        model.decision_function([[0, "big"], [0, "big"]], offset=offset)


@pytest.mark.parametrize("class_weight", [(), (1.0, 9.0, 0.2)])
def test_a_row_is_given_the_class_of_the_largest_probability_times_weight(class_weight):
    random = np.random.default_rng(2)
    model = replace(make_model(random, n_outputs=3), class_weight=class_weight)
    table = make_table(random, model.schema, 100)
    probability = model.predict_proba(table)
    best = (probability * (class_weight or 1.0)).argmax(axis=1)
    assert model.predict(table).tolist() == [model.classes[i] for i in best]
    assert (best != probability.argmax(axis=1)).any() == bool(class_weight)


def test_classes_are_predicted_by_the_largest_score():
    random = np.random.default_rng(0)
    model = make_model(random, n_outputs=3)
    table = make_table(random, model.schema, 30)
    score = model.decision_function(table)
    assert score.shape == (30, 3)
    assert model.predict(table).tolist() == [model.classes[i] for i in score.argmax(axis=1)]
    np.testing.assert_allclose(model.predict_proba(table).sum(axis=1), 1)
    assert model.contributions(table).output_names == model.classes


def test_two_classes_are_predicted_by_the_sign(model):
    binary = replace(model, link=LINKS["logit"], classes=("no", "yes"), intercept=np.array([-2.5]))
    rows = [[0, "big"], [10, "small"]]
    assert binary.predict(rows).tolist() == ["no", "yes"]
    proba = binary.predict_proba(rows)
    assert proba.shape == (2, 2)
    np.testing.assert_allclose(proba[:, 1], 1 / (1 + np.exp(-binary.decision_function(rows))))


def test_probabilities_of_a_regression_are_an_error(model):
    with pytest.raises(UserError, match="predict_proba needs a classifier; this model predicts numbers"):
        model.predict_proba([[0, "big"]])


def test_bounds_of_slots_are_those_of_the_experts(model):
    lower, upper = model.slot_bounds
    np.testing.assert_allclose(lower[:, 0], [0, 3, -1, 2, 2, 4, 3, 3])
    np.testing.assert_allclose(upper[:, 0], [1, 10, -1, 5, 2, 4, 3, 3])


def test_members_are_averaged_before_the_link(model):
    random = np.random.default_rng(1)
    both = make_model(random, n_members=2, gate="low-rank")
    table = make_table(random, both.schema, 20)

    def member(i: int) -> TableModel:
        gate = both.gate
        tables = GateTables(
            gate.kind,
            gate.terms[..., i : i + 1],
            gate.bias[:, i : i + 1],
            gate.mix[i : i + 1],
            gate.mix_bias[:, i : i + 1],
        )
        return replace(both, experts=both.experts[..., i : i + 1], gate=tables)

    for name in ("values", "lower", "upper"):
        each = [getattr(member(i).contributions(table), name) for i in (0, 1)]
        np.testing.assert_allclose(getattr(both.contributions(table), name), np.mean(each, axis=0), atol=1e-12)


def test_a_training_summary_grows(model):
    grown = model.with_training(loss="squared").with_training(n_rows=3)
    assert grown.training == TrainingSummary(loss="squared", n_rows=3)
    assert model.training == TrainingSummary()


def test_a_model_says_what_it_is(model):
    assert repr(model) == "TableModel(2 features, 2 experts, 1 member, 1 output, additive gate, softmax routing)"


def test_only_a_deep_gate_is_not_additive():
    random = np.random.default_rng(2)
    kinds = ("additive", "low-rank", "diagonal", "deep")
    assert [make_model(random, gate=kind).gate.is_additive for kind in kinds] == [True, True, True, False]


def test_logits_of_an_additive_gate_are_sums_over_features():
    random = np.random.default_rng(3)
    model = make_model(random, gate="low-rank", n_members=2)
    tables = [make_table(random, model.schema, 1) for _ in range(2)]

    def logits(first: int, rest: int) -> np.ndarray:
        arrays = (tables[first].arrays[0], *tables[rest].arrays[1:])
        return model.gate.logits(model.cells(Columns(arrays, model.feature_names)))

    np.testing.assert_allclose(logits(0, 0) + logits(1, 1), logits(0, 1) + logits(1, 0), atol=1e-10)
