"""What users write becomes constraints, or one clear sentence."""

import math
from typing import Any

import numpy as np
import pytest

from nae.constraints import Asked, Constraints, read_constraints
from nae.encoding import Category, Number, Schema
from nae.errors import ConfigError

SCHEMA = Schema(
    (
        Number("age", np.arange(5.0)),
        Number("income", np.arange(4.0)),
        Category("city", ("a", "b")),
        Number("debt", np.arange(3.0)),
    )
)


def read(*, is_log: bool = False, n_classes: int = 0, **given: Any) -> Constraints:
    return read_constraints(Asked(**given), SCHEMA, is_log=is_log, n_classes=n_classes)


@pytest.mark.parametrize(
    "given",
    [
        {"age": 1, "debt": -1},
        {"age": "increasing", "debt": "decreasing", "income": 0},
        {0: "+", 3: "-"},
        [1, 0, 0, -1],
        np.array([1, 0, 0, -1]),
        ["increasing", 0, 0, "decreasing"],
    ],
    ids=str,
)
def test_directions_are_read_in_every_form(given: Any) -> None:
    assert read(monotonic_cst=given).monotone == {0: 1, 3: -1}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"monotonic_cst": {"aeg": 1}}, "Did you mean 'age'"),
        ({"monotonic_cst": {"city": 1}}, "needs features with an order; 'city' is a category"),
        ({"monotonic_cst": [1, 0]}, "one entry per feature (4); got 2"),
        ({"monotonic_cst": {"age": "up"}}, "got 'up' for 'age'"),
        ({"monotonic_cst": {"age": True}}, "got True for 'age'"),
        ({"monotonic_cst": "increasing"}, "must be a dict by name"),
        ({"interaction_cst": "pairs"}, "got 'pairs'"),
        ({"interaction_cst": {"age": []}}, "by 'changes' or 'changed_by'"),
        ({"interaction_cst": {"age": {"alters": []}}}, "by 'changes' or 'changed_by'"),
        ({"interaction_cst": [["age", "nothing"]]}, "'nothing' is none"),
        ({"interaction_cst": [[9]]}, "positions in [0, 3]; got 9"),
        ({"interaction_cst": 3}, "groups of features; got 3"),
        ({"max_effect": {"age": -1.0}}, "positive numbers; got -1.0 for 'age'"),
        ({"max_effect": {"age": "5%"}}, "unless the link is a logarithm"),
        ({"max_effect": 0.5}, "must be a dict by name"),
        ({"max_effect": {"age": 1}, "convex": ["age"]}, "both a curve that bends and a cap"),
        ({"convex": ["age"], "concave": "age"}, "convex or concave; 'age' is in both"),
        ({"convex": ["city"]}, "needs features with an order"),
    ],
    ids=str,
)
def test_what_cannot_be_promised_is_one_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(**given)
    assert sentence in str(caught.value)


def test_many_classes_have_no_direction() -> None:
    with pytest.raises(ConfigError, match="y has 3 classes"):
        read(monotonic_cst={"age": 1}, n_classes=3)
    assert read(max_effect={"age": 1}, n_classes=3).max_effect == {0: 1.0}


@pytest.mark.parametrize(
    ("cap", "limit"), [(0.2, 0.2), ("x1.05", math.log(1.05)), ("5%", math.log(1.05)), ("2", math.log(2))]
)
def test_caps_are_factors_where_the_link_is_a_logarithm(cap: Any, limit: float) -> None:
    assert read(max_effect={"age": cap}, is_log=True).max_effect[0] == pytest.approx(limit)


def test_a_factor_of_one_is_no_cap() -> None:
    with pytest.raises(ConfigError, match="or a factor such as"):
        read(max_effect={"age": "x1"}, is_log=True)


def test_groups_keep_features_apart() -> None:
    allowed = read(interaction_cst=[["age", "income"]]).allowed
    (mask,) = allowed.masks(4)
    wanted = np.zeros((4, 4), dtype=bool)
    wanted[:2, :2] = wanted[2:, 2:] = True  # those in no group form one more
    np.testing.assert_array_equal(mask, wanted)
    assert (allowed.isolated, allowed.unchanged) == (frozenset(), frozenset())


def test_no_interactions_leaves_everything_alone() -> None:
    allowed = read(interaction_cst="no_interactions").allowed
    assert allowed.isolated == allowed.unchanged == frozenset(range(4))


@pytest.mark.parametrize("given", ["pairwise", [["age", "income"], ["income", "city", "debt"]]], ids=str)
def test_a_member_lets_a_feature_be_changed_within_one_group(given: Any) -> None:
    allowed = read(interaction_cst=given).allowed
    assert allowed.groups is not None
    masks = allowed.masks(6)
    for member in masks:
        for target in range(4):
            sources = frozenset(np.flatnonzero(member[:, target]).tolist())
            assert any(sources <= group for group in allowed.groups)
    assert masks.any(axis=0)[0, 1]  # over the members, each pair of a group meets


def test_directed_lists_say_who_changes_whom() -> None:
    allowed = read(interaction_cst={"age": {"changes": ["debt"], "changed_by": []}}).allowed
    (mask,) = allowed.masks(2)
    assert mask[0].tolist() == [True, False, False, True]
    assert mask[:, 0].tolist() == [True, False, False, False]
    assert allowed.unchanged == {0}
    assert not allowed.isolated
    assert mask[1:, 1:].all()


def test_nothing_asked_is_nothing_promised() -> None:
    found = read(monotonic_cst=[0, 0, 0, 0], interaction_cst=[["age", "income", "city", "debt"]])
    assert found.is_empty
    assert found.promises(SCHEMA.names) == {}


def test_promises_are_what_certify_takes() -> None:
    found = read(
        monotonic_cst={"age": 1},
        max_effect={"city": 0.3},
        concave=["debt"],
        interaction_cst={"income": {"changes": []}},
    )
    assert found.promises(SCHEMA.names) == {
        "monotone": {"age": "+"},
        "curved": {"debt": "concave"},
        "max_effect": {"city": 0.3},
        "isolated": ["income"],
    }
