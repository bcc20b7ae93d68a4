"""Recourse reaches its target with the values that it reports, and nothing on a grid is cheaper than what is proven."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import nae
from nae import NAEClassifier, NAERegressor, datasets
from nae.decisions import Recourse
from nae.decisions.recourse import boxes
from nae.decisions.recourse.neighbours import Neighbours
from nae.encoding import Category, Number
from nae.errors import ConfigError, DataError, UserError
from nae.explanation import with_statistics
from nae.tables import TableModel
from nae.tables.gates import GATES
from tests.decisions.moving import assert_holds, assert_predicted, grid_of, tables_on_grid, ways_on_grid
from tests.laws.models import make_model

FEATURES = (
    Number("income", np.array([0.0, 10.0, 30.0, 35.0])),
    Number("age", np.array([20.0, 40.0, 60.0]), has_missing=True),
    Category("town", ("Ulm", "Köln", "Bonn"), ("Aalen", "Hof")),
    Number("phone", np.array([0.0, 1.0]), is_boolean=True),
    Number("rooms", np.array([1.0, 2.0, 3.0]), integral=True),
)
ROW = {"income": 12.0, "age": 31.0, "town": "Köln", "phone": False, "rooms": 2}
ROUTES = [("softmax", 3), ("softmax", 2), ("equal", 3), ("equal", 2)]


def small(seed: int, **shape: object) -> TableModel:
    random = np.random.default_rng(seed)
    return make_model(random, features=FEATURES, **{"n_members": 2} | shape)  # type: ignore[arg-type]


def raised(model: TableModel, row: dict = ROW, by: float = 2.0) -> tuple[float, None]:
    """Return a target above the prediction of a row."""
    return float(model.predict({name: [value] for name, value in row.items()})[0]) + by, None


def prediction(model: TableModel, row: dict = ROW) -> float:
    return float(model.predict({name: [value] for name, value in row.items()})[0])


def kinds() -> Iterator[Any]:
    """Yield all routings, gates and clamps; two of three combinations are slow."""
    for at, (route, gate, is_clamped) in enumerate(product(ROUTES, GATES, [False, True])):
        yield pytest.param(route, gate, is_clamped, marks=[pytest.mark.slow] if at % 3 else [])


@pytest.mark.parametrize(("route", "gate", "is_clamped"), list(kinds()))
def test_nothing_on_a_grid_is_cheaper(route: tuple[str, int], gate: str, is_clamped: bool) -> None:
    model = small(0, gate=gate, routing=route[0], n_active=route[1], is_clamped=is_clamped)
    scores, costs, names = ways_on_grid(model, ROW, grid_of(model.schema, ROW, 8), 2)
    for by in (1.0, 3.0, 20.0):
        target = raised(model, by=by)
        found = model.recourse(ROW, target=target, k=2, support=0, budget=3000)
        assert_predicted(model, ROW, found)
        is_reached = scores[:, 0] >= target[0]
        assert_holds(found, is_reached, costs, names)
        if is_reached.any():
            assert found[0].cost <= 1.06 * costs[is_reached].min() + 0.01
            assert all(way.prediction >= target[0] for way in found.ways)
        elif route[1] == 3:
            assert found.is_impossible


@pytest.mark.parametrize(
    "gate", [*list(GATES)[:2], *(pytest.param(gate, marks=pytest.mark.slow) for gate in list(GATES)[2:])]
)
def test_many_sets_of_features_may_share_a_box(gate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small(11, gate=gate, is_clamped=True)
    scores, costs, names = ways_on_grid(model, ROW, grid_of(model.schema, ROW, 4), 3)
    apart = model.recourse(ROW, target=raised(model), support=0, n=2)
    monkeypatch.setattr(boxes, "_MOST_SETS", 0)
    for by in (1.0, 2.0, 20.0):
        target = raised(model, by=by)
        found = model.recourse(ROW, target=target, support=0, n=2)
        assert_predicted(model, ROW, found)
        assert_holds(found, scores[:, 0] >= target[0], costs, names)
        if by == 2.0 and apart.ways:
            assert found[0].cost == pytest.approx(apart[0].cost, rel=0.06)
    assert found.is_impossible


def test_the_checks_find_what_is_wrong() -> None:
    model = small(0)
    scores, costs, names = ways_on_grid(model, ROW, grid_of(model.schema, ROW, 4), 2)
    target = raised(model, by=1.0)
    found = model.recourse(ROW, target=target, k=2, support=0)
    dear = replace(found, ways=(replace(found[0], bound=found[0].cost + 0.1),))
    with pytest.raises(AssertionError):
        assert_holds(dear, scores[:, 0] >= target[0], costs, names)
    other = replace(found, ways=(replace(found[0], prediction=found[0].prediction + 1e-6),))
    with pytest.raises(AssertionError):
        assert_predicted(model, ROW, other)


@pytest.mark.parametrize("seed", range(4))
def test_a_small_budget_proves_less_but_nothing_wrong(seed: int) -> None:
    model = small(seed, scale=3.0, is_clamped=bool(seed % 2))
    scores, costs, names = ways_on_grid(model, ROW, grid_of(model.schema, ROW, 4), 3)
    target = raised(model)
    bounds = []
    for budget in (1, 100, 5000):
        found = model.recourse(ROW, target=target, support=0, budget=budget, n=1)
        assert_holds(found, scores[:, 0] >= target[0], costs, names)
        assert found.n_boxes <= max(budget, 25) + 1
        bounds.append(found[0].bound if found.ways else found.bound)
    assert bounds[0] <= bounds[1] + 1e-9 <= bounds[2] + 2e-9
    assert found[0].gap <= 0.05 * found[0].cost + 0.01


def test_single_precision_is_covered() -> None:
    model = small(5, dtype=np.float32)
    scores, costs, names = ways_on_grid(model, ROW, grid_of(model.schema, ROW, 8), 2)
    for by in np.linspace(0.2, 3.0, 6):
        target = raised(model, by=by)
        found = model.recourse(ROW, target=target, k=2, support=0)
        assert_predicted(model, ROW, found)
        assert_holds(found, scores[:, 0] >= target[0], costs, names)


@pytest.mark.parametrize("seed", range(3))
def test_the_proof_that_there_is_no_way_stands_an_attack(seed: int) -> None:
    model = small(seed, is_clamped=True)
    random = np.random.default_rng(seed)
    n = 20_000
    table = {name: [value] * n for name, value in ROW.items()}
    table["income"], table["age"] = random.uniform(0, 35, n), random.uniform(20, 60, n)
    table["town"] = random.choice(["Ulm", "Köln", "Bonn"], n)
    highest = float(model.predict(table).max())
    found = model.recourse(ROW, target=(highest + 0.3, None), fixed=["phone", "rooms"], support=0)
    assert found.is_impossible
    assert "this is proven" in found.text
    near = model.recourse(ROW, target=(highest - 0.05, None), fixed=["phone", "rooms"], support=0)
    assert near.ways or not near.is_impossible


def test_what_is_fixed_or_may_only_move_one_way_does_so() -> None:
    model = small(1)
    grid = grid_of(model.schema, ROW, 8)
    del grid["town"]
    grid["income"] = [pair for pair in grid["income"] if pair[0] > 12]
    grid["rooms"] = [pair for pair in grid["rooms"] if pair[0] < 2]
    scores, costs, names = ways_on_grid(model, ROW, grid, 3)
    target = raised(model, by=1.0)
    found = model.recourse(
        ROW, target=target, fixed="town", increasing=["income"], decreasing=["rooms"], support=0, n=20
    )
    assert_predicted(model, ROW, found)
    assert_holds(found, scores[:, 0] >= target[0], costs, names)
    moves = {(one.feature, one.new > one.old) for way in found.ways for one in way.changes}
    assert {name for name, _ in moves} == {"income", "age", "phone"}
    assert not moves & {("income", False), ("rooms", True)}
    assert all(name != "town" for name, _ in moves)


def test_a_missing_value_can_be_set_and_becomes_none_only_on_request() -> None:
    model = small(2)
    row = ROW | {"age": None}
    target = raised(model, row, by=1.0)
    scores, costs, names = ways_on_grid(model, row, grid_of(model.schema, row, 8), 2)
    found = model.recourse(row, target=target, k=2, support=0, n=20)
    assert_predicted(model, row, found)
    assert_holds(found, scores[:, 0] >= target[0], costs, names)
    ages = [one for way in found.ways for one in way.changes if one.feature == "age"]
    assert ages
    assert all(one.old is None and one.new is not None and one.cost == 1.0 for one in ages)
    high = replace(model, experts=model.experts.copy())
    high.experts[model.schema.offsets[1] + 3] += 100.0  # a missing age
    assert not model.recourse(ROW, target=(90, None), support=0).ways
    asked = high.recourse(ROW, target=(90, None), may_miss=["age"], support=0)
    assert [(one.feature, one.new) for one in asked[0].changes] == [("age", None)]
    assert "Leave age out (it is 31)" in asked.text


def test_costs_are_weighed() -> None:
    model = small(3)
    target = raised(model, by=1.0)
    plain = model.recourse(ROW, target=target, support=0, n=1)
    costs = dict.fromkeys(plain[0].features, 50.0)
    other = model.recourse(ROW, target=target, support=0, n=1, costs=costs)
    assert other[0].cost >= plain[0].bound
    cheap = model.recourse(ROW, target=target, support=0, n=1, costs={"town": {"Ulm": 1e-6, "Bonn": 1e-6}})
    assert cheap[0].cost < plain[0].cost
    few = model.recourse(ROW, target=target, support=0, n=1, per_change=5.0)
    assert len(few[0].changes) <= len(plain[0].changes)
    assert few[0].cost >= 5.0


def test_unlikely_values_are_no_moves() -> None:
    model = small(4)
    row = ROW | {"age": 40.0}
    table = {name: [value] * 200 for name, value in row.items()}
    table["income"] = np.r_[np.full(150, 12.0), np.linspace(10, 30, 49), 35.0]
    table["town"] = ["Köln"] * 199 + ["Ulm"]
    known = with_statistics(model, table)
    for by in (0.5, 1.0, 2.0, 3.0):
        found = known.recourse(row, target=raised(known, row, by), n=20)
        for one in (one for way in found.ways for one in way.changes):
            assert one.feature != "town"
            assert one.feature != "income" or 10.0 <= one.new <= 30.0
            assert one.feature not in ("age", "rooms", "phone")  # all rows have one value


def test_no_value_between_knots_that_are_far_apart() -> None:
    feature = Number("x", np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 30.0, 31.0]))
    model = make_model(np.random.default_rng(0), features=(feature,), n_experts=1)
    model.experts[:, 0, 0, 0] = np.arange(15.0)
    for x, by, expected in ((0.0, 4.5, 4.5), (9.5, 0.9, 30.0), (9.5, 1.6, 30.1)):
        found = model.recourse({"x": x}, target=raised(model, {"x": x}, by))
        assert found[0].changes[0].new == pytest.approx(expected, abs=0.2)
        assert not 10.0 < found[0].changes[0].new < 30.0
    assert model.recourse({"x": 20.0}, target=raised(model, {"x": 20.0}, 0.1))[0].changes[0].new == 30


def test_whole_numbers_stay_whole_and_values_are_short() -> None:
    features = (Number("count", np.array([0.0, 400.0, 1000.0]), integral=True), Number("share", np.array([0.0, 1.0])))
    model = make_model(np.random.default_rng(1), features=features, n_experts=1)
    model.experts[:3, 0, 0, 0] = [0.0, 1.0, 2.5]
    model.experts[5:7, 0, 0, 0] = [0.0, 1.0]
    row = {"count": 7, "share": 0.123456}
    for by in (0.1, 0.32345, 0.7, 1.0):
        found = model.recourse(row, target=raised(model, row, by), support=0)
        assert_predicted(model, row, found)
        for one in (one for way in found.ways for one in way.changes):
            if one.feature == "count":
                assert isinstance(one.new, int)
            else:
                assert len(f"{one.new:.15g}") <= 6


def test_a_class_is_reached_by_the_rule_of_predict() -> None:
    model = small(6, link="logit")
    weighted = replace(model, class_weight=(1.0, 5.0))
    scores, costs, names = ways_on_grid(model, ROW, grid_of(model.schema, ROW, 8), 2)
    for one, limit in ((model, 0.0), (weighted, -np.log(5.0))):
        other = {"no": "yes", "yes": "no"}[one.predict({name: [value] for name, value in ROW.items()})[0]]
        found = one.recourse(ROW, target=other, k=2, support=0)
        assert_predicted(one, ROW, found)
        is_reached = scores[:, 0] > limit if other == "yes" else scores[:, 0] <= limit
        assert_holds(found, is_reached, costs, names)
        assert found.is_probability
        assert f"the model chooses {other}" in repr(found)
        for way in found.ways:
            changed = {name: [value] for name, value in ROW.items()}
            changed |= {change.feature: [change.new] for change in way.changes}
            assert one.predict(changed)[0] == other


@pytest.mark.parametrize("target", [(0.7, None), (None, 0.2), (0.45, 0.55)])
def test_a_probability_can_be_the_target(target: tuple[float | None, float | None]) -> None:
    model = small(7, link="logit")
    scores, costs, names = ways_on_grid(model, ROW, grid_of(model.schema, ROW, 8), 2)
    for label in ("yes", "no"):
        probability = 1 / (1 + np.exp(-scores[:, 0]))
        probability = probability if label == "yes" else 1 - probability
        low, high = target[0] or 0.0, target[1] or 1.0
        found = model.recourse(ROW, target=target, output=label, k=2, support=0)
        if found.is_reached:
            continue
        assert_predicted(model, ROW, found)
        assert_holds(found, (probability >= low) & (probability <= high), costs, names)
        assert all(low <= way.prediction <= high for way in found.ways)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_one_of_several_classes_is_reached(seed: int) -> None:
    model = small(seed, n_outputs=3, is_clamped=seed < 2)
    scores, costs, names = ways_on_grid(model, ROW, grid_of(model.schema, ROW, 8), 2)
    raised_scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    probability = raised_scores / raised_scores.sum(axis=1, keepdims=True)
    for at, label in enumerate(model.classes):
        chosen = model.recourse(ROW, target=label, k=2, support=0, budget=2000)
        above = model.recourse(ROW, target=(0.8, None), output=label, k=2, support=0, budget=2000)
        below = model.recourse(ROW, target=(None, 0.1), output=label, k=2, support=0, budget=2000)
        for found, is_reached in (
            (chosen, scores.argmax(axis=1) == at),
            (above, probability[:, at] >= 0.8),
            (below, probability[:, at] <= 0.1),
        ):
            if not found.is_reached:
                assert_predicted(model, ROW, found)
                assert_holds(found, is_reached, costs, names)


def test_a_number_is_crossed_from_where_the_row_stands() -> None:
    model = small(8, link="log")
    now = prediction(model)
    scores, costs, names = ways_on_grid(model, ROW, grid_of(model.schema, ROW, 8), 2)
    for factor in (1.5, 0.5):
        found = model.recourse(ROW, target=factor * now, k=2, support=0)
        assert_predicted(model, ROW, found)
        reached = np.exp(scores[:, 0]) >= factor * now if factor > 1 else np.exp(scores[:, 0]) <= factor * now
        assert_holds(found, reached, costs, names)
    moved = model.recourse(ROW, target=(2 * now, None), k=2, support=0, offset=[1.0])
    assert moved.is_reached
    assert moved.prediction == pytest.approx(np.e * now)
    assert "reaches the target as it is" in moved.text
    assert model.recourse(ROW, target=(None, -1.0)).is_impossible


def test_one_of_several_outputs_is_named() -> None:
    model = small(9, n_outputs=2)
    with pytest.raises(UserError, match="2 outputs"):
        model.recourse(ROW, target=(1.0, None))
    scores, costs, names = ways_on_grid(model, ROW, grid_of(model.schema, ROW, 8), 2)
    low = float(model.decision_function({name: [value] for name, value in ROW.items()})[0, 1]) + 1.0
    found = model.recourse(ROW, target=(low, None), output="class 1", k=2, support=0)
    assert_predicted(model, ROW, found)
    assert_holds(found, scores[:, 1] >= low, costs, names)
    assert "prediction of class 1" in found.text


def test_pairs_of_values_occur_in_given_rows() -> None:
    model = small(10)
    random = np.random.default_rng(0)
    town = random.choice(["Köln", "Ulm"], 80)
    rows = {
        "income": np.where(town == "Ulm", random.uniform(0, 15, 80), random.uniform(5, 35, 80)),
        "age": random.uniform(20, 60, 80),
        "town": town,
        "phone": town == "Ulm",
        "rooms": random.choice([1, 2], 80),
    }
    target = raised(model, by=1.0)
    scores, costs, names = ways_on_grid(model, ROW, grid := grid_of(model.schema, ROW, 6), 2)
    near = Neighbours.of(model, model.cells(rows), model.cells({name: [value] for name, value in ROW.items()}))
    occurs = near.have(model.cells(tables_on_grid(ROW, grid, 2)))
    assert 0.02 < occurs.mean() < 0.9
    free = model.recourse(ROW, target=target, k=2, support=0, n=20)
    found = model.recourse(ROW, target=target, k=2, support=0, n=20, like=rows)
    assert_predicted(model, ROW, found)
    assert_holds(found, (scores[:, 0] >= target[0]) & occurs, costs, names)
    assert len(found) < len(free)
    for way in found.ways:
        changed = {name: [value] for name, value in ROW.items()}
        assert near.have(model.cells(changed | {one.feature: [one.new] for one in way.changes})).all()
        assert ("town" in way.features) == ("phone" in way.features)


def test_an_estimator_and_its_file_answer_alike_and_keep_a_direction(tmp_path: Path) -> None:
    X, y = datasets.multimodal(300)
    model = NAERegressor(monotonic_cst={"x1": 1}, n_members=2, max_epochs=10, random_state=0).fit(X, y)
    row = {name: values[:1] for name, values in X.items()}
    target = (float(model.predict(row)[0]) + 0.2, None)
    found = model.recourse(row, target=target, n=5)
    model.save(tmp_path / "m.nae")
    assert nae.load(tmp_path / "m.nae").recourse(row, target=target, n=5).to_dict() == found.to_dict()
    changes = [one for way in found.ways for one in way.changes if one.feature == "x1"]
    assert changes
    assert all(one.new > one.old for one in changes)


def test_the_result_is_text_a_frame_and_json() -> None:
    model = small(0)
    found = model.recourse(ROW, target=raised(model, by=1.0), support=0)
    again = Recourse.from_json(found.to_json())
    assert again.ways == found.ways
    assert again.bound == found.bound
    frame = found.to_frame()
    assert list(frame.columns)[:4] == ["way", "feature", "old", "new"]
    assert len(frame) == sum(len(way.changes) for way in found.ways)
    assert "the prediction goes from" in found.text
    assert "costs at least" in found.text
    none = model.recourse(ROW, target=(1e6, None))
    assert Recourse.from_json(none.to_json()).is_impossible
    assert len(none.to_frame()) == 0
    assert "No allowed change of up to 3 features" in repr(none)


def test_sentences_have_the_words_that_are_given() -> None:
    model = small(6, link="logit")
    words = {
        "outcomes": {"yes": "approval", "no": "refusal"},
        "features": {
            "income": {"name": "the income", "unit": "thousand"},
            "phone": {"name": "the line", "values": {"False": "none", "True": "a telephone"}},
            "town": {"named": False},
        },
    }
    other = {"no": "yes", "yes": "no"}[model.predict({name: [value] for name, value in ROW.items()})[0]]
    found = model.recourse(ROW, target=other, support=0, n=20, wording=words)
    assert "town" not in {one.feature for way in found.ways for one in way.changes}
    assert "the income from 12 thousand to" in found.text
    assert "the line from none to a telephone" in found.text
    assert f"probability of {words['outcomes'][other]} goes" in found.text
    assert Recourse.from_json(found.to_json()).text == found.text
    with pytest.raises(ConfigError, match="names a feature 'incomme'"):
        model.recourse(ROW, target=other, wording={"features": {"incomme": {"name": "x"}}})


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"target": "high"}, "must be a number to reach"),
        ({"target": (None, None)}, r"must be a pair \(low, high\)"),
        ({"target": (2, 1)}, r"must be a pair \(low, high\)"),
        ({"target": 1.0, "fixed": ["agee"]}, "Did you mean 'age'"),
        ({"target": 1.0, "fixed": 3}, "fixed must be a list"),
        ({"target": 1.0, "increasing": ["town"]}, "'town' is a category"),
        ({"target": 1.0, "increasing": ["age"], "decreasing": ["age"]}, "in increasing and in decreasing"),
        ({"target": 1.0, "costs": {"age": 0}}, "must be a number above 0"),
        ({"target": 1.0, "costs": {"town": {"Rom": 1.0}}}, "has no 'Rom'"),
        ({"target": 1.0, "costs": {"age": {"30": 1.0}}}, "Only levels have costs"),
        ({"target": 1.0, "costs": ["age"]}, "costs must be a dict"),
        ({"target": 1.0, "support": 0.5}, "support must be a share"),
        ({"target": 1.0, "per_change": -1}, "per_change must be a cost"),
        ({"target": 1.0, "k": 0}, "k must be an integer"),
        ({"target": 1.0, "budget": 2.5}, "budget must be an integer"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(given: dict, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        small(0).recourse(ROW, **given)


def test_what_makes_no_sense_for_classes_is_one_sentence() -> None:
    model = small(0, link="logit")
    with pytest.raises(ConfigError, match=r"must be one of the model's classes; got 'maybe'"):
        model.recourse(ROW, target="maybe")
    with pytest.raises(ConfigError, match="output goes with an interval"):
        model.recourse(ROW, target="yes", output="yes")
    with pytest.raises(DataError, match="needs a single row; got 2"):
        model.recourse({name: [value] * 2 for name, value in ROW.items()}, target="yes")
    with pytest.raises(DataError, match="like must have at least 20 rows"):
        model.recourse(ROW, target={True: "yes", False: "no"}[prediction_is_no(model)], like=ROW)


def prediction_is_no(model: TableModel) -> bool:
    return bool(model.predict({name: [value] for name, value in ROW.items()})[0] == "no")


PAGE = Path(__file__).parents[2] / "docs" / "decisions_with_models.md"


@pytest.mark.slow
@pytest.mark.skipif("NAE_DATA" not in os.environ, reason="NAE_DATA does not name the folder with the tables")
def test_the_example_on_a_real_table_says_what_the_page_says() -> None:
    section = PAGE.read_text().partition("## What would have to change")[2].partition("\n## ")[0]
    customers = pd.read_parquet(f"{os.environ['NAE_DATA']}/telco_churn.parquet")
    X, y = customers.drop(columns="target"), np.where(customers["target"] == 1, "leaves", "stays")
    names = {"X": X, "model": NAEClassifier(n_members=4, random_state=0).fit(X.iloc[:5000], y[:5000])}
    for block in re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE):
        exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102
    shown = [line.lstrip("> *") for line in section.splitlines() if line.startswith("> ")]
    changed = [{one.split()[1] for one in re.findall(r"(?:hange|ower) \w+", line)} for line in shown[:-1]]
    assert [set(way.features) for way in names["found"].ways] == changed
    assert names["found"][0].cost == pytest.approx(0.323, rel=0.1)
    assert names["found"][0].gap <= 0.05 * names["found"][0].cost
    assert names["none"].is_impossible
