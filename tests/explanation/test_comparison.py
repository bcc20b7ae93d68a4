"""Two versions of a model: what a comparison prints, saves and refuses, with several outputs and classes."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nae
from nae import NAERegressor
from nae.encoding import Category, Number
from nae.errors import ConfigError, DataError, UserError
from nae.explanation import ChangeCertificate, RowChanges
from nae.tables import TableModel
from tests.laws.models import make_model, make_table, permuted

FEATURES = (
    Number("size", np.array([0.0, 1.0, 2.0])),
    Number("garden", np.array([0.0, 1.0]), is_boolean=True),
    Category("town", ("Ulm", "Bonn")),
)


def made(seed: int = 0, **more: Any) -> TableModel:
    return make_model(np.random.default_rng(seed), **{"features": FEATURES} | more)


def raised(model: TableModel, slot: int, by: float) -> TableModel:
    """Return the model with the experts of one slot raised."""
    experts = model.experts.copy()
    experts[slot] += by
    return replace(model, experts=experts)


def test_a_certificate_prints_the_score_and_every_feature() -> None:
    model = made()
    found = nae.compare(model, raised(model, 5, 0.5)).certificate()
    lines = repr(found).splitlines()
    assert lines[0] in [f"ChangeCertificate(score: at most {bound}, found 0.5)" for bound in ("0.5", "0.5001")]
    assert lines[1].split() == ["of", "output", "bound", "found"]
    assert [line.split()[0] for line in lines[2:]] == ["score", "size", "garden", "town"]
    sentences = found.text.splitlines()
    assert len(sentences) == 4
    assert sentences[1] == "The contribution of size to the score is the same for any input."
    assert sentences[2].startswith("The contribution of garden to the score changes by at most 0.5")
    assert "garden = 0" in found.score.sentence
    assert (found.score.lower, found.score.upper) == pytest.approx((0.0, 0.5))


def test_the_example_of_a_certificate_can_be_repeated() -> None:
    for seed in range(5):
        first, second = made(seed), made(seed + 100)
        found = nae.compare(first, second).certificate()
        for one in found.changes:
            row = [dict(zip(one.features, one.example, strict=True))]
            models = [first, second]
            values = [
                float(model.decision_function(row)[0])
                if one.feature is None
                else float(model.contributions(row).feature(one.feature)[0])
                for model in models
            ]
            assert values == pytest.approx(one.values)
            assert 0 < one.found <= one.bound + 1e-12


def test_changes_on_rows_are_those_of_the_scores() -> None:
    random = np.random.default_rng(0)
    first, second = made(), permuted(made(1), [2, 0, 1])
    table = make_table(random, first.schema, 50)
    found = nae.compare(first, second).on(table)
    moved = np.abs(second.decision_function(table) - first.decision_function(table))
    assert found.largest == pytest.approx(moved.max())
    assert found.score.mean == pytest.approx(moved.mean())
    assert found.score.row == moved.argmax()
    own = np.abs(second.contributions(table).feature("town") - first.contributions(table).feature("town"))
    assert (found["town"].largest, found["town"].row) == (pytest.approx(own.max()), own.argmax())
    assert repr(found).startswith("RowChanges(50 rows; score: at most ")
    with pytest.raises(DataError, match="the table has none"):
        nae.compare(first, second).on(make_table(random, first.schema, 0))


def test_certificates_survive_json_and_become_frames() -> None:
    compared = nae.compare(made(0), made(1))
    found = compared.certificate()
    assert ChangeCertificate.from_json(found.to_json()).changes == found.changes
    assert list(found.to_frame("polars")["bound"]) == [one.bound for one in found.changes]
    rows = compared.on(make_table(np.random.default_rng(0), compared.first.schema, 5))
    assert RowChanges.from_json(rows.to_json()).changes == rows.changes
    assert list(rows.to_frame()["of"]) == ["score", "size", "garden", "town"]
    assert repr(compared).startswith("Comparison(TableModel(3 features")


def test_what_the_score_says_about_predictions() -> None:
    for link, sentence in (
        ("log", f"A prediction changes by a factor of at most {math.ceil(math.exp(0.5) * 1000) / 1000}."),
        ("logit", "A probability changes by at most 0.1244."),
        ("identity", ""),
    ):
        model = made(link=link)
        found = nae.compare(model, raised(model, 5, 0.5)).certificate()
        assert found.prediction_sentence == sentence
        assert found.text.endswith(sentence)


def test_models_may_speak_for_either_of_two_classes() -> None:
    model = made(link="logit")
    assert nae.compare(model, model.for_class("no")).certificate().bound == 0
    assert nae.compare(model.for_class("no"), model).certificate().score.title == "log-odds of no"


def test_several_classes_are_compared_by_score_or_by_log_odds() -> None:
    model = made(n_outputs=3)
    other = raised(model, 0, np.array([1.0, 0.0, 0.0])[None, :, None])
    scores = nae.compare(model, other).certificate()
    assert [one.output for one in scores.changes if one.feature is None] == ["class 0", "class 1", "class 2"]
    assert (scores.bound, scores["size"].output) == (pytest.approx(1.0), "class 0")
    odds = nae.compare(model, other).certificate(output="class 1")
    assert [one.title for one in odds.changes if one.feature is None] == [
        "log-odds of class 1 against class 0",
        "log-odds of class 1 against class 2",
    ]
    assert odds.changes[0].lower == pytest.approx(-1.0)
    order = [2, 0, 1]
    names = tuple(model.classes[i] for i in order)
    turned = replace(
        other, experts=other.experts[:, :, order], intercept=other.intercept[order], outputs=names, classes=names
    )
    assert nae.compare(model, turned).certificate().bound == pytest.approx(1.0)
    table = make_table(np.random.default_rng(0), model.schema, 20)
    assert nae.compare(other, turned).on(table).largest < 1e-12
    with pytest.raises(ConfigError, match="Did you mean 'class 1'"):
        nae.compare(model, other).on(table, output="clas 1")


@pytest.mark.parametrize(
    ("second", "error"),
    [
        (made(features=FEATURES[:2]), "the same features; the first alone has 'town'"),
        (made(features=(*FEATURES, Number("age", np.zeros(1)))), "the second alone has 'age'"),
        (
            made(features=(FEATURES[0], FEATURES[1], Number("town", np.arange(2.0)))),
            "'town' is a category in the first",
        ),
        (made(link="log"), "the first has 'identity', the second 'log'"),
        (made(n_outputs=2), "the same outputs"),
    ],
)
def test_models_that_answer_other_questions_are_refused(second: TableModel, error: str) -> None:
    with pytest.raises(DataError, match=error):
        nae.compare(made(), second)


def test_other_classes_are_refused() -> None:
    three, four = made(n_outputs=3), made(n_outputs=4)
    with pytest.raises(DataError, match="all predict the same classes"):
        nae.compare(three, four)


def test_a_feature_that_is_not_there_is_refused() -> None:
    found = nae.compare(made(), made()).certificate()
    with pytest.raises(UserError, match="Did you mean 'town'"):
        _ = found["tovn"]


def test_estimators_are_compared() -> None:
    X = np.random.default_rng(0).uniform(size=(60, 2))
    fits = [NAERegressor(n_members=1, max_epochs=1, random_state=0).fit(X, X[:, 0] + seed) for seed in range(2)]
    assert nae.compare(*fits).certificate().bound >= nae.compare(*fits).on(X).largest > 0
    with pytest.raises(UserError, match="got int"):
        nae.compare(fits[0], 3)
