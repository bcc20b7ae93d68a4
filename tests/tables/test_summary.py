"""What a model remembers of its training: typed in memory, JSON in a file."""

import json
from dataclasses import fields

import numpy as np
import pytest

from nae.errors import FormatError
from nae.tables import TrainingSummary
from nae.tables.summary import _RULES
from tests.laws.models import make_model

ENTRIES = {
    "intercept_shift": [0.5, -0.5],
    "additivity": {"asked": 0.9, "measured": 0.95},
    "loss": "huber",
    "huber_threshold": [1, 2.5],
    "offset": ["log years"],
    "baseline": {"values": [1.0], "level": None, "of a newer version": True},
    "n_rows": 7,
    "quality_intervals": {"RMSE": [1.0, 2.0]},
    "split": {"test_size": 0.2, "seed": 0, "rows_sha256": "ab"},
    "constraints": {
        "monotone": {"income": "+", "age": -1},
        "max_effect": {"postcode": 0.05},
        "isolated": ["sex"],
        "unchanged": [],
        "curved": {"age": "convex"},
        "ordered": True,
        "of a newer version": None,
    },
    "edits": [{"what": "drop", "feature": "sex", "who": "a", "when": "2026-01-01", "why": "b", "of a newer one": []}],
}


def test_every_entry_has_a_rule_and_every_rule_an_entry() -> None:
    assert [*_RULES, "more"] == [item.name for item in fields(TrainingSummary)]


def test_a_summary_is_the_same_after_a_round_trip_through_json() -> None:
    summary = TrainingSummary.from_dict(ENTRIES)
    assert (summary.n_rows, summary.offset, summary.huber_threshold) == (7, ("log years",), (1, 2.5))
    content = json.loads(json.dumps(summary.to_dict()))
    assert content == ENTRIES
    assert list(content) == list(ENTRIES)  # one order, so the same model has the same bytes
    assert TrainingSummary.from_dict(content) == summary


def test_entries_that_are_not_known_are_kept_as_they_are() -> None:
    more = {"of a newer version": [1, {"deep": None}], "nothing": None}
    summary = TrainingSummary.from_dict({"n_rows": 3} | more)
    assert summary.more == more
    assert summary.to_dict() == {"n_rows": 3} | more


def test_null_is_read_as_absent_where_it_is_allowed() -> None:
    assert TrainingSummary.from_dict({"validation_loss": None, "offset": None}) == TrainingSummary()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("intercept_shift", 0.5),
        ("additivity", {"asked": "auto", "measured": 0.9}),
        ("estimator", 3),
        ("n_epochs", -1),
        ("stopped", None),
        ("table_error", "small"),
        ("offset", "log years"),
        ("baseline", {"level": 0.5}),
        ("quality", {"RMSE": None}),
        ("split", {"rows_sha256": "", "seed": 0}),
        ("constraints", ["sex"]),
        ("constraints", {"monotone": {"income": "up"}}),
        ("constraints", {"monotone": {"income": True}}),
        ("constraints", {"monotone": {"income": [1]}}),
        ("constraints", {"max_effect": {"postcode": -1}}),
        ("constraints", {"max_effect": [0.05]}),
        ("constraints", {"isolated": "sex"}),
        ("constraints", {"unchanged": [1]}),
        ("constraints", {"curved": {"age": "+"}}),
        ("constraints", {"ordered": 1}),
        ("constraints", {"output": 1}),
        ("edits", {}),
        ("edits", [{"what": "drop", "feature": "sex", "who": "a", "when": "2026-01-01"}]),
    ],
)
def test_an_entry_of_the_wrong_type_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(FormatError, match=rf"'{name}' of the training summary must be .*; got "):
        TrainingSummary.from_dict({name: value})


def test_the_other_class_is_promised_the_opposite() -> None:
    promises = {"monotone": {"income": "+"}, "max_effect": {"town": 1}, "curved": {"age": "concave"}}
    model = make_model(np.random.default_rng(0), link="logit").with_training(constraints=promises)
    turned = model.for_class(model.classes[0])
    assert turned.training.constraints == promises | {"monotone": {"income": "-"}, "curved": {"age": "convex"}}
    assert turned.for_class(model.classes[1]).training.constraints == promises
