"""Certificates: what they print, save and refuse, with several outputs and classes."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nae.encoding import Category, Columns, Number
from nae.errors import ConfigError, UserError
from nae.explanation import Certificates
from nae.explanation.inputs import rounded_up
from nae.tables import TableModel
from tests.laws.models import make_model, make_table

PAGE = Path(__file__).parents[2] / "docs" / "guarantees.md"
FEATURES = (
    Number("size", np.array([0.0, 1.0, 2.0])),
    Number("garden", np.array([0.0, 1.0]), is_boolean=True),
    Category("town", ("Ulm", "unseen")),
)


@pytest.mark.parametrize(("value", "shown"), [(0.0, "0"), (1.23401, "1.235"), (5e-324, "4.941e-324"), (np.inf, "inf")])
def test_numbers_of_a_sentence_are_rounded_up(value: float, shown: str) -> None:
    assert rounded_up(value) == shown


@pytest.fixture
def model() -> TableModel:
    return make_model(np.random.default_rng(0), features=FEATURES)


def test_certificates_print_a_table_and_a_sentence_per_statement(model: TableModel) -> None:
    found = model.certify(monotone={"size": "+"}, max_effect={"town": 99}, isolated=["size"], unchanged="town")
    lines = repr(found).splitlines()
    assert lines[0] == "Certificates(4 statements: 1 proven, 3 refuted, 0 undecided)"
    assert lines[1].split() == ["statement", "verdict", "limit", "at", "most", "found"]
    assert len(lines) == 6
    sentences = found.text.splitlines()
    assert sentences[0].startswith("Refuted: A higher size never lowers the score. Changing size from ")
    assert sentences[1].startswith("Proven: town alone moves the score by at most 99. For any input, the change is at")
    assert "the contribution of town from" in sentences[3]
    assert not found.all_proven
    assert [one.kind for one in found.certificates] == ["monotone", "max effect", "isolated", "unchanged"]


def test_an_undecided_statement_says_what_was_found(model: TableModel) -> None:
    found = model.certify(max_effect={"town": 0})[0]
    between = model.certify(max_effect={"town": (found.bound + (found.found or 0.0)) / 2})[0]
    assert found.verdict == "refuted"
    assert between.verdict == "undecided"
    assert between.margin < 0
    assert between.counterexample is None
    assert re.match(r"Undecided: town alone .* up to [\d.]+; the largest that a search found is", between.sentence)


def test_certificates_survive_json_and_become_a_frame(model: TableModel) -> None:
    found = model.certify(monotone={"size": "+"}, max_effect={"town": 99}, unchanged=["town"])
    assert Certificates.from_json(found.to_json()).certificates == found.certificates
    frame = found.to_frame("polars")
    assert list(frame["verdict"]) == ["refuted", "proven", "refuted"]
    assert list(frame["margin"])[1] == pytest.approx(found[1].limit + found[1].tolerance - found[1].bound)


@pytest.mark.parametrize("way", ["increasing", "+", 1, np.int64(1)])
def test_a_direction_has_several_spellings(model: TableModel, way: Any) -> None:
    assert model.certify(monotone={"size": way})[0].claim == "A higher size never lowers the score."


@pytest.mark.parametrize("seed", range(8))
def test_a_counterexample_can_be_repeated(seed: int) -> None:
    random = np.random.default_rng(seed)
    model = make_model(random, n_features=3)
    numbers = [one.name for one in model.schema.features if one.kind != "category" and one.n_values > 1]
    found = model.certify(monotone=dict.fromkeys(numbers, "-"), max_effect=dict.fromkeys(model.feature_names, 0.0))
    examples = [one.counterexample for one in found.certificates if one.counterexample is not None]
    assert examples
    for example in examples:
        arrays = [np.array(pair, dtype=object) for pair in zip(example.first, example.second, strict=True)]
        scores = model.decision_function(Columns(tuple(arrays), model.feature_names))
        np.testing.assert_allclose(scores, example.scores, atol=1e-9)
        assert scores[0] - scores[1] == pytest.approx(example.violation)


def test_an_unseen_level_is_none_of_the_known_ones(model: TableModel) -> None:
    model.experts[-1] += 50.0
    example = model.certify(max_effect={"town": 1.0})[0].counterexample
    assert example is not None
    assert example.first[2] == "unseen?"


def test_several_targets_are_certified_one_by_one() -> None:
    model = make_model(np.random.default_rng(0), features=FEATURES, n_outputs=2)
    found = model.certify(isolated=["town"])
    assert [one.output for one in found.certificates] == ["class 0", "class 1"]
    found = model.certify(max_effect={"town": 1e3}, output="class 1")
    assert [one.output for one in found.certificates] == ["class 1"]
    assert found[0].claim == "town alone moves the score of class 1 by at most 1000."


def test_a_class_is_certified_against_each_other_one() -> None:
    random = np.random.default_rng(0)
    model = make_model(random, features=FEATURES, n_outputs=3)
    found = model.certify(max_effect={"town": 0.0}, output="class 1")
    assert [one.output for one in found.certificates] == ["class 1 against class 0", "class 1 against class 2"]
    assert found[0].claim == "town alone moves the log-odds of class 1 against class 0 by at most 0."
    rows = make_table(random, model.schema, 300)
    moved = Columns((*rows.arrays[:2], np.full(300, "Ulm", dtype=object)), rows.names)
    gaps = [model.decision_function(table)[:, 1] - model.decision_function(table)[:, 0] for table in (rows, moved)]
    change = np.abs(gaps[0] - gaps[1]).max()
    assert 0 < change <= found[0].bound
    with pytest.raises(ConfigError, match=r"need one score; this model has 3 classes\. Name one.*output='class 0'"):
        model.certify(monotone={"size": "+"})
    assert len(model.certify(isolated=["town"])) == 3


def test_two_classes_have_the_log_odds_of_the_positive_one() -> None:
    model = make_model(np.random.default_rng(0), features=FEATURES, link="logit")
    found = model.certify(monotone={"size": "+"})[0]
    assert found.claim == "A higher size never lowers the log-odds of class 0."
    turned = model.for_class("no").certify(monotone={"size": "-"})[0]
    assert turned.bound == pytest.approx(found.bound)
    with pytest.raises(ConfigError, match=r"No output is called 'no'\. Take for_class\('no'\) instead"):
        model.certify(isolated=["town"], output="no")


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        (
            {},
            r"needs at least one statement; none is given, and the model promises nothing\. .*isolated=\['size'\]",
        ),
        ({"monotone": {"sise": "+"}}, r"No feature is called 'sise'\. Did you mean 'size'"),
        ({"max_effect": {"sise": 1}}, "Did you mean 'size'"),
        ({"isolated": ["sise"]}, "Did you mean 'size'"),
        ({"unchanged": ["sise"]}, "Did you mean 'size'"),
        ({"monotone": {"town": "+"}}, r"needs a feature with an order; 'town' is a category of 2 levels\. Use"),
        ({"monotone": {"size": "up"}}, r"A direction must be 'increasing' \(\+\) or 'decreasing' \(-\); got 'up'"),
        ({"monotone": {"size": True}}, "got True for 'size'"),
        ({"monotone": {"size": ["+"]}}, "A direction must be"),
        ({"monotone": ["size"]}, "monotone must be a dict by the names of features"),
        ({"max_effect": {"size": -1}}, r"must be a number of at least 0, in units of the score; got -1"),
        ({"max_effect": {"size": "1"}}, "must be a number of at least 0"),
        ({"max_effect": {"size": None}}, "must be a number of at least 0"),
        ({"max_effect": {"size": np.nan}}, "must be a number of at least 0"),
        ({"curved": {"sise": "convex"}}, "Did you mean 'size'"),
        (
            {"curved": {"town": "convex"}},
            r"A curved statement needs a feature with an order; 'town' is a category of 2",
        ),
        ({"curved": {"size": "round"}}, r"A curvature must be 'convex' or 'concave'; got 'round' for 'size'"),
        ({"curved": {"size": 1}}, "got 1 for 'size'"),
        ({"curved": "size"}, "curved must be a dict by the names of features"),
        ({"ordered": "yes"}, "ordered must be True or False; got 'yes'"),
        ({"isolated": 3}, "isolated must be a list of the names of features; got 3"),
        ({"isolated": ["size"], "output": "scor"}, r"No output is called 'scor'\."),
    ],
)
def test_a_statement_that_makes_no_sense_is_refused(model: TableModel, statement: dict[str, Any], error: str) -> None:
    with pytest.raises(UserError, match=error):
        model.certify(**statement)


def test_the_page_about_guarantees_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102
    found = names["found"]
    assert (
        found.to_json()
        == names["model"]
        .model_.certify(monotone={"x1": "+"}, max_effect={"x1": 100.0}, isolated=["x2"], unchanged=["x2"])
        .to_json()
    )
    assert [one.verdict for one in found.certificates][:2] == ["refuted", "proven"]
