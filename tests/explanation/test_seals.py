"""What a model can never do: each seal that is found is proven, promises are not found twice, limits are effects."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from nae.certificates import tables_of
from nae.explanation.seals import Seals, find_seals
from nae.tables import TableModel
from tests.certificates.planted import FEATURES, monotone_model, own_terms
from tests.laws.drawn import models
from tests.laws.models import make_model

STATEMENTS: dict[str, Any] = {
    "increasing": lambda names: {"monotone": dict.fromkeys(names, "+")},
    "decreasing": lambda names: {"monotone": dict.fromkeys(names, "-")},
    "isolated": lambda names: {"isolated": names},
    "unchanged": lambda names: {"unchanged": names},
}


def kinds_of(seals: Seals) -> dict[str, tuple[str, ...]]:
    return {one.kind: one.features for one in seals.found}


@settings(max_examples=40)
@given(models(may_clamp=True), st.booleans())
def test_every_seal_is_proven_and_every_other_statement_is_not(model: TableModel, is_free: bool) -> None:
    if is_free:
        model.gate.terms[:] = 0.0
    seals = find_seals(model, range(model.n_features))
    for kind, names in kinds_of(seals).items():
        if len(model.classes) <= 2 or kind in ("isolated", "unchanged"):
            assert model.certify(**STATEMENTS[kind](list(names))).all_proven
    if model.n_outputs == 1 and model.n_features > 1:
        moves = [i for i in range(model.n_features) if not model.certify(max_effect={f"f{i}": 0.0}).all_proven]
        for kind in ("isolated", "unchanged"):
            proven = [f"f{i}" for i in moves if model.certify(**STATEMENTS[kind]([f"f{i}"])).all_proven]
            assert list(kinds_of(seals).get(kind, ())) == proven


def test_a_monotone_model_has_a_seal_until_it_is_broken() -> None:
    model = monotone_model(np.random.default_rng(0), gate="additive")
    assert kinds_of(find_seals(model, range(3)))["increasing"] == ("income",)
    assert kinds_of(find_seals(model, [1, 2])) == {}
    model.experts[3] -= 1.0
    assert "increasing" not in kinds_of(find_seals(model, range(3)))


def test_a_promise_is_no_find() -> None:
    model = monotone_model(np.random.default_rng(0), gate="additive")
    own_terms(model, 2)[:] = 0.3
    promising = model.with_training(constraints={"monotone": {"income": "+"}, "max_effect": {"age": 99.0}})
    seals = find_seals(promising, range(3))
    assert kinds_of(seals) == {"isolated": ("town",)}
    assert [(one.kind, one.way, one.verdict) for one in seals.promises] == [
        ("monotone", "increasing", "proven"),
        ("max effect", "", "proven"),
    ]
    assert [one.promised for one in seals.limits] == [None, 99.0, None]


def test_a_promise_that_is_broken_or_unknown_is_said() -> None:
    model = monotone_model(np.random.default_rng(0), gate="additive")
    broken = find_seals(model.with_training(constraints={"monotone": {"income": "-"}}), range(3))
    assert broken.promises[0].verdict == "refuted"
    assert find_seals(model.with_training(constraints={"max_effect": {"town": 1e-3}}), [2]).limits[0].promised is None
    assert kinds_of(broken)["increasing"] == ("income",)
    unknown = find_seals(model.with_training(constraints={"fair": ["town"]}), range(3))
    assert unknown.promises == ()
    assert "the file promises 'fair'" in unknown.note
    assert len(unknown.limits) == 3


def test_limits_are_the_effects_of_every_output() -> None:
    model = make_model(np.random.default_rng(0), features=FEATURES, n_outputs=2)
    limits = find_seals(model, [2, 0]).limits
    assert [(one.feature, one.output) for one in limits] == [
        (name, output) for output in ("class 0", "class 1") for name in ("town", "income")
    ]
    assert limits[3].effect == pytest.approx(tables_of(model, np.eye(2)[1]).effect(0))
    classes = find_seals(make_model(np.random.default_rng(0), features=FEATURES, n_outputs=3), [0])
    assert classes.limits == ()


def test_a_feature_without_an_effect_holds_no_seal() -> None:
    model = make_model(np.random.default_rng(0), features=FEATURES, n_experts=1)
    model.experts[model.schema.slots(1)] = 1.5
    assert kinds_of(find_seals(model, range(3)))["isolated"] == ("income", "town")


def test_seals_can_be_saved() -> None:
    model = monotone_model(np.random.default_rng(0), gate="additive").with_training(
        constraints={"monotone": {"income": "-"}}
    )
    seals = find_seals(model, range(3))
    assert Seals.from_json(seals.to_json()).to_dict() == seals.to_dict()
