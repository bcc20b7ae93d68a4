"""The extremes of a score: found inputs have the stated scores, and no input on a grid goes beyond the bounds."""

from dataclasses import replace

import numpy as np
import pytest

from nae.encoding import Category, Columns, Number, Schema
from nae.errors import ConfigError
from nae.explanation import Extreme, Extremes
from nae.ranges import row_at, whole
from nae.tables import TableModel
from nae.tables.gates import GATES
from tests.laws.models import make_model, make_table
from tests.ranges.completions import every_vertex

FEATURES = (
    Number("income", np.array([0.0, 10.0, 30.0])),
    Number("age", np.array([20.0, 40.0, 60.0]), has_missing=True),
    Category("town", ("Ulm", "Köln"), ("Aalen", "Hof")),
)


def small(seed: int, **shape: object) -> TableModel:
    random = np.random.default_rng(seed)
    return make_model(random, features=FEATURES, **{"n_experts": 3, "n_members": 2} | shape)  # type: ignore[arg-type]


def assert_reached(model: TableModel, found: Extremes) -> None:
    """Check that every input has the score that is stated, and that this score is on the right side of the bound."""
    for one in found.extremes:
        values = {name: [value] for name, value in zip(found.features, one.values, strict=True)}
        scores = np.ravel(model.decision_function(values))
        assert one.score == scores[0]
        assert one.bound <= one.score if one.side == "smallest" else one.score <= one.bound


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("is_clamped", [False, True])
def test_extremes_agree_with_brute_force(gate: str, is_clamped: bool) -> None:
    model = small(0, gate=gate, is_clamped=is_clamped)
    found = model.extremes()
    assert_reached(model, found)
    domains = tuple(whole(model, i) for i in range(3))
    scores = every_vertex(model, row_at(domains, np.zeros(3, dtype=np.int64)), domains, parts=12)
    slack = 0.02 * np.ptp(scores)
    assert found.smallest.bound <= scores.min() <= found.smallest.bound + 5 * slack
    assert found.largest.bound - 5 * slack <= scores.max() <= found.largest.bound
    assert found.smallest.score <= scores.min() + slack
    assert found.largest.score >= scores.max() - slack


def test_a_bound_below_the_found_score_would_be_noticed() -> None:
    model = small(1)
    found = model.extremes(budget=8)
    wrong = replace(found.largest, bound=found.largest.score - 0.01)
    with pytest.raises(AssertionError):
        assert_reached(model, Extremes(found.features, (found.smallest, wrong)))


@pytest.mark.parametrize("n_members", [1, 3])
def test_the_extremes_of_an_additive_model_are_exact(n_members: int) -> None:
    model = small(2, n_members=n_members, n_experts=1)
    found = model.extremes(budget=1)
    assert_reached(model, found)
    assert all(one.gap <= 1e-9 for one in found.extremes)


def test_inputs_lie_within_their_limits() -> None:
    model = small(3, is_clamped=True)
    found = model.extremes(within={"income": (12.5, 13.75), "age": (100, 120), "town": ["Hof", "Ulm"]})
    assert_reached(model, found)
    for one in found.extremes:
        income, age, town = one.values
        assert 12.5 <= income <= 13.75
        assert 100 <= age <= 120
        assert town in ("Hof", "Ulm")
    anywhere = model.extremes()
    assert anywhere.smallest.bound <= found.smallest.bound
    assert found.largest.bound <= anywhere.largest.bound
    point = model.extremes(within={"income": 5, "age": (33, 33), "town": "Ulm"})
    assert point.largest.values == (5.0, 33.0, "Ulm")
    assert point.largest.gap < 1e-6


def test_no_random_row_goes_beyond_the_extremes() -> None:
    for seed in range(9):
        random = np.random.default_rng(seed)
        model = make_model(random, n_features=3, n_experts=3, n_active=1 + seed % 3, n_outputs=2, is_clamped=seed % 2)
        found = model.extremes(budget=30)
        assert_reached(model, Extremes(found.features, found.extremes[:2]))
        scores = model.decision_function(make_table(random, model.schema, 500))
        for output in range(2):
            low, high = found[2 * output], found[2 * output + 1]
            assert low.bound <= scores[:, output].min()
            assert scores[:, output].max() <= high.bound


def test_an_empty_column_is_missing_or_unseen() -> None:
    schema = Schema((Number("empty", np.zeros(1), has_missing=True), FEATURES[0]))
    model = make_model(np.random.default_rng(4), features=schema.features)
    assert_reached(model, model.extremes(budget=8))


def test_classes_are_compared_in_pairs() -> None:
    model = small(5, n_outputs=3)
    with pytest.raises(ConfigError, match=r"none is named\. Pass one, such as output='class 0'"):
        model.extremes()
    found = model.extremes(output="class 1", budget=64)
    assert [one.output for one in found.extremes[::2]] == [
        "log-odds of class 1 against class 0",
        "log-odds of class 1 against class 2",
    ]
    table = make_table(np.random.default_rng(0), model.schema, 500)
    scores = model.decision_function(table)
    assert found[1].bound >= (scores[:, 1] - scores[:, 0]).max()
    assert found[2].bound <= (scores[:, 1] - scores[:, 2]).min()


def test_the_result_is_text_a_frame_and_json() -> None:
    found = small(6).extremes(budget=16)
    assert len(found) == 2
    assert found.text.startswith("The smallest score is ")
    assert "found at income = " in found.text
    assert list(found.to_frame().columns)[-3:] == ["at income", "at age", "at town"]
    again = Extremes.from_json(found.to_json())
    assert again.largest == found.largest
    assert isinstance(again.largest, Extreme)
    assert "smallest score" in repr(found)


def test_names_of_columns_are_not_needed() -> None:
    model = small(7)
    nameless = replace(model, schema=Schema(model.schema.features, has_names=False))
    assert nameless.extremes(budget=8).largest == model.extremes(budget=8).largest
    table = make_table(np.random.default_rng(0), model.schema, 3)
    found = nameless.predict_range(Columns(table.arrays), unknown=["age"])
    np.testing.assert_array_equal(found.lower, model.predict_range(table, unknown=["age"]).lower)
