"""The card of a model calls the target by its name, and never by the name of a class."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from nae import NAEClassifier, NAERegressor
from nae.card import Card, make_card
from tests.laws.models import make_model

QUICK = {"n_members": 1, "max_epochs": 2, "random_state": 0}
TABLE = pd.DataFrame({"size": np.arange(40.0), "rooms": np.arange(40.0) % 5})
LABELS = np.where(TABLE["rooms"] > 2, "paid", "default")


def card_of(y: object) -> Card:
    kind = NAEClassifier if np.asarray(y).dtype.kind in "OUT" else NAERegressor
    return make_card(kind(**QUICK).fit(TABLE, y).model_)


@pytest.mark.parametrize(
    "series", [pd.Series(LABELS, name="loan"), pl.Series("loan", LABELS)], ids=["pandas", "polars"]
)
def test_classes_are_those_of_the_series_they_came_from(series: object) -> None:
    card = card_of(series)
    assert (card.target, card.to_dict()["target"]) == ("loan", "loan")
    assert card.classes == ("default", "paid")
    assert card.sentence == "predicts one of 2 classes of loan from 2 features, learned from 35 rows"


def test_a_class_is_no_target() -> None:
    card = card_of(LABELS)
    assert card.to_dict()["target"] is None
    assert card.sentence == "predicts one of 2 classes from 2 features, learned from 35 rows"


def test_a_number_is_called_like_its_series_or_a_number() -> None:
    named, unnamed = card_of(TABLE["size"].rename("price")), card_of(TABLE["size"].to_numpy())
    assert (named.target, named.outputs) == ("price", ("price",))
    assert named.sentence.startswith("predicts price from")
    assert (unnamed.target, unnamed.outputs) == (None, ("score",))
    assert unnamed.sentence.startswith("predicts a number from")


def test_quantiles_are_those_of_the_target() -> None:
    several = NAERegressor("quantile", quantile=[0.05, 0.5, 0.95], **QUICK)
    named, unnamed = (make_card(several.fit(TABLE, y).model_) for y in (TABLE["size"].rename("price"), np.arange(40.0)))
    assert named.sentence.startswith("predicts the 5 %, 50 % and 95 % quantiles of price from")
    assert (unnamed.target, unnamed.outputs) == (None, ("q0.05", "q0.5", "q0.95"))
    assert unnamed.sentence.startswith("predicts the 5 %, 50 % and 95 % quantiles of a number from")


def test_a_series_that_was_computed_from_a_feature_is_not_called_like_it() -> None:
    card = card_of(TABLE["size"] * 2)
    assert (card.target, card.outputs) == (None, ("score",))


def test_promises_are_in_the_card_with_their_verdicts() -> None:
    model = make_model(np.random.default_rng(0), n_features=2, n_experts=1)
    names = model.feature_names
    assert make_card(model).promises == ()
    kept = make_card(model.with_training(constraints={"isolated": [names[0]], "max_effect": {names[1]: 0.0}}))
    assert [one.verdict for one in kept.promises] == ["refuted", "proven"]
    shown = kept.to_dict()["promises"][1]
    assert shown["claim"] == f"{names[0]} changes the effect of no other feature."
    assert shown["bound"] == 0
    assert shown["sentence"].startswith("Proven: ")


def test_a_bound_without_end_and_a_promise_that_cannot_be_checked_are_json() -> None:
    model = make_model(np.random.default_rng(0), n_features=2, n_experts=3, n_active=1)
    number = next(one.name for one in model.schema.features if one.kind != "category")
    jumping = make_card(model.with_training(constraints={"monotone": {number: "+"}}))
    unknown = make_card(model.with_training(constraints={"fair": [number]}))
    assert unknown.promises[0].verdict == "unknown"
    assert "the file promises 'fair'" in unknown.promises[0].claim
    for card in (jumping, unknown):
        json.dumps(card.to_dict(), allow_nan=False)
