"""The question whose answer narrows the range most comes first."""

import numpy as np
import pytest

from nae.encoding import Category, Number
from nae.errors import ConfigError, DataError, UserError
from nae.explanation import Questions
from nae.tables import TableModel
from tests.laws.models import make_model

FEATURES = (
    Number("small", np.array([0.0, 1.0, 2.0])),
    Number("large", np.linspace(0.0, 1.0, 50)),
    Category("middle", ("a", "b", "c")),
    Number("known", np.array([0.0, 1.0])),
)


@pytest.fixture
def model() -> TableModel:
    """Return an additive model whose curves span 1, 100, 10 and 1000."""
    made = make_model(np.random.default_rng(0), features=FEATURES, n_experts=1)
    for i, height in enumerate((1.0, 100.0, 10.0, 1000.0)):
        own = made.schema.slots(i)
        made.experts[own, 0, 0, 0] = np.linspace(0.0, height, own.stop - own.start)
    return made


def test_the_widest_unknown_feature_is_asked_for_first(model: TableModel) -> None:
    found = model.next_question({"known": 0.5}, unknown=["small", "large", "middle"])
    assert [one.feature for one in found.questions] == ["large", "middle", "small"]
    assert found.feature == "large"
    spans = [np.ptp(model.experts[model.schema.slots(i)][:-1]) for i in (0, 1)] + [10.0]  # a number is never unseen
    assert found.width == pytest.approx(sum(spans))
    assert found[0].expected == pytest.approx(found.width - spans[1])
    assert found[0].worst == pytest.approx(found[0].expected)
    assert found[0].narrows == pytest.approx(spans[1] / found.width)


def test_what_the_row_lacks_is_unknown(model: TableModel) -> None:
    named = model.next_question({"known": 0.5, "small": 1.0}, unknown=["large", "middle"])
    absent = model.next_question({"known": 0.5, "small": 1.0})
    missing = model.next_question({"known": [0.5], "small": [1.0], "large": [np.nan], "middle": [None]})
    for found in (absent, missing):
        assert found.to_dict() == named.to_dict()
    limited = model.next_question({"known": 0.5}, within={"large": (0.2, 0.201), "small": (0, 2), "middle": ["a"]})
    assert [one.feature for one in limited.questions] == ["small", "large", "middle"]


def test_answers_are_weighted_by_the_training_rows(model: TableModel) -> None:
    gated = make_model(np.random.default_rng(1), features=FEATURES, n_experts=3, scale=3.0)
    plain = gated.next_question({"known": 0.5, "large": None}, unknown=["middle", "small"])
    by_name = {one.feature: one for one in plain.questions}
    for one in plain.questions:
        assert one.expected <= one.worst <= plain.width + 1e-9
    widths = [
        float(
            gated.predict_range({"known": 0.5, "large": None, "middle": level}, unknown=["small"], budget=16).width[0]
        )
        for level in ("a", "b", "c")
    ]
    assert by_name["middle"].expected == pytest.approx(np.mean(widths), rel=1e-6)
    assert by_name["middle"].worst == pytest.approx(max(widths), rel=1e-6)


def test_a_single_question_leaves_nothing_open(model: TableModel) -> None:
    found = model.next_question({"known": 0.5, "small": 0.0, "middle": "a"})
    assert len(found) == 1
    assert (found[0].expected, found[0].narrows) == (0.0, 1.0)


def test_the_result_is_a_frame_and_json(model: TableModel) -> None:
    found = model.next_question({"known": 0.5})
    assert list(found.to_frame().columns) == ["feature", "expected", "worst", "narrows"]
    assert Questions.from_json(found.to_json()).questions == found.questions
    assert "Questions(3 unknown features" in repr(found)


def test_what_makes_no_sense_is_one_sentence(model: TableModel) -> None:
    row = {"small": 1.0, "large": 0.5, "middle": "a", "known": 0.0}
    with pytest.raises(UserError, match="the row has a value for every feature"):
        model.next_question(row)
    with pytest.raises(ConfigError, match="No feature is called 'age'"):
        model.next_question(row, unknown=["age"])
    with pytest.raises(DataError, match="needs a single row; got 2"):
        model.next_question({name: [value] * 2 for name, value in row.items()}, unknown=["small"])


def test_several_outputs_add_up() -> None:
    two = make_model(np.random.default_rng(2), features=FEATURES, n_outputs=2)
    found = two.next_question({"known": 0.5, "middle": None}, unknown=["small", "large"], budget=8)
    parts = two.predict_range({"known": 0.5, "middle": None}, unknown=["small", "large"], budget=8)
    assert found.width == pytest.approx(parts.width.sum())
