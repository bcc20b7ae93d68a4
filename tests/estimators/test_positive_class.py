"""Which of two classes a model speaks for: a choice of signs, never of probabilities."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.metrics import get_scorer

import nae
from nae import NAEClassifier
from nae.errors import ConfigError, UserError
from nae.report import write_report

QUICK: dict[str, Any] = {"n_members": 2, "max_epochs": 4, "random_state": 0}
RANDOM = np.random.default_rng(0)
X = pd.DataFrame({"income": RANDOM.normal(size=400), "plan": RANDOM.choice(["a", "b", "c"], 400)})
SCORE = X["income"] * np.where(X["plan"] == "a", 2.0, -1.0)
Y = np.where(SCORE + RANDOM.normal(size=400) > 0, "paid", "default")
OFFSET = RANDOM.normal(size=400)


@pytest.fixture(scope="module")
def models() -> tuple[NAEClassifier, NAEClassifier]:
    """Return a model that speaks for the last class by name, and one for the first."""
    return NAEClassifier(**QUICK).fit(X, Y), NAEClassifier(positive_class="default", **QUICK).fit(X, Y)


def test_what_scikit_learn_asks_for_does_not_depend_on_it(models: tuple[NAEClassifier, NAEClassifier]) -> None:
    usual, chosen = models
    assert chosen.classes_.tolist() == ["default", "paid"]
    np.testing.assert_allclose(chosen.predict_proba(X), usual.predict_proba(X), rtol=0, atol=1e-15)
    np.testing.assert_array_equal(chosen.decision_function(X), usual.decision_function(X))
    np.testing.assert_array_equal(chosen.predict(X), usual.predict(X))
    for scorer in map(get_scorer, ("roc_auc", "accuracy", "neg_log_loss")):
        assert scorer(chosen, X, Y) == pytest.approx(scorer(usual, X, Y))
    assert get_scorer("roc_auc")(chosen, X, Y) > 0.5


def test_scores_contributions_and_explanations_speak_for_the_class(
    models: tuple[NAEClassifier, NAEClassifier], tmp_path: Path
) -> None:
    usual, chosen = models
    one, two = usual.contributions(X), chosen.contributions(X)
    np.testing.assert_array_equal(two.values, -one.values)
    np.testing.assert_array_equal(two.lower, -one.upper)
    np.testing.assert_array_equal(two.upper, -one.lower)
    assert chosen.intercept_ == -usual.intercept_
    score = two.values.sum(axis=1) + two.intercept
    np.testing.assert_allclose(score, chosen.model_.decision_function(X))
    np.testing.assert_allclose(score, -chosen.decision_function(X))
    assert chosen.model_.outputs == ("default",)
    assert chosen.model_.classes == ("paid", "default")
    assert chosen.explain_global().outputs == ("default",)
    assert "log-odds of default" in chosen.effect_caps_["income"].sentence
    local = chosen.explain_local(X[:3])
    np.testing.assert_allclose(local.prediction[:, 0], chosen.predict_proba(X[:3])[:, 0])
    page = write_report(chosen.model_, X.head(), tmp_path / "report.html").read_text(encoding="utf-8")
    assert '"outputs":["default"],"classes":["paid","default"]' in page


def test_the_tables_of_both_predict_the_same_labels(models: tuple[NAEClassifier, NAEClassifier]) -> None:
    usual, chosen = (model.model_ for model in models)
    assert chosen.predict(X).tolist() == usual.predict(X).tolist() == models[0].predict(X).tolist()
    np.testing.assert_allclose(chosen.predict_proba(X)[:, ::-1], usual.predict_proba(X), rtol=0, atol=1e-15)


def test_an_offset_speaks_for_the_same_class() -> None:
    usual = NAEClassifier(**QUICK).fit(X, Y, offset=OFFSET, eval_set=(X, Y, None, OFFSET))
    chosen = NAEClassifier(positive_class="default", **QUICK)
    chosen.fit(X, Y, offset=-OFFSET, eval_set=(X, Y, None, -OFFSET))
    np.testing.assert_array_equal(chosen.contributions(X).values, -usual.contributions(X).values)
    expected = usual.predict_proba(X, offset=OFFSET)
    np.testing.assert_allclose(chosen.predict_proba(X, offset=-OFFSET), expected, rtol=0, atol=1e-15)
    assert not np.allclose(chosen.predict_proba(X, offset=OFFSET), expected)


def test_files_that_need_not_fit_in_memory_take_it_too(tmp_path: Path) -> None:
    rows = pa.Table.from_pandas(X.assign(y=Y, base=OFFSET), preserve_index=False)
    pa.parquet.write_table(rows, tmp_path / "rows.parquet")
    mirrored = rows.set_column(rows.column_names.index("base"), "base", pa.array(-OFFSET))
    pa.parquet.write_table(mirrored, tmp_path / "mirrored.parquet")
    usual = NAEClassifier(**QUICK).fit(nae.scan(tmp_path / "rows.parquet"), "y", offset="base")
    chosen = NAEClassifier(positive_class="default", **QUICK)
    chosen.fit(nae.scan(tmp_path / "mirrored.parquet"), "y", offset="base")
    np.testing.assert_array_equal(chosen.contributions(X).values, -usual.contributions(X).values)
    shares = usual.model_.training.baseline["values"]
    assert chosen.model_.training.baseline["values"] == shares[::-1]  # in the order of the model's classes


def test_a_file_keeps_it(models: tuple[NAEClassifier, NAEClassifier], tmp_path: Path) -> None:
    chosen = models[1]
    chosen.save(tmp_path / "m.nae")
    again = NAEClassifier.load(tmp_path / "m.nae")
    assert again.get_params()["positive_class"] == "default"
    assert again.classes_.tolist() == ["default", "paid"]
    np.testing.assert_array_equal(again.predict_proba(X), chosen.predict_proba(X))
    assert nae.load(tmp_path / "m.nae").outputs == ("default",)


def test_a_warm_start_may_change_it() -> None:
    model = NAEClassifier(warm_start=True, **QUICK).fit(X, Y)
    usual = NAEClassifier(warm_start=True, **QUICK).fit(X, Y).fit(X, Y)
    model.set_params(positive_class="default").fit(X, Y)
    np.testing.assert_array_equal(model.contributions(X).values, -usual.contributions(X).values)


@pytest.mark.parametrize(
    ("labels", "given", "name"),
    [([0, 1], 0, "0"), ([0, 1], "0", "0"), ([False, True], False, "False"), ([1.0, 2.0], 1, "1.0"), ([0, 1], 1, "1")],
    ids=str,
)
def test_a_class_is_named_by_its_label_or_by_its_text(labels: list[Any], given: Any, name: str) -> None:
    y = np.array(labels)[(Y == "paid").astype(int)]
    model = NAEClassifier(positive_class=given, n_members=1, max_epochs=1).fit(X, y)
    assert model.model_.outputs == (name,)
    assert set(model.predict(X)) <= set(labels)


def test_what_it_cannot_be_is_said() -> None:
    with pytest.raises(
        ConfigError, match=r"one of the classes \['default', 'paid'\]; got 'defalt'\. Did you mean 'def"
    ):
        NAEClassifier(positive_class="defalt", **QUICK).fit(X, Y)
    with pytest.raises(ConfigError, match="positive_class is for two classes; y has 3, each with a score of its own"):
        NAEClassifier(positive_class="a", **QUICK).fit(X[["income"]], X["plan"])


def test_a_fitted_model_speaks_for_either_class(models: tuple[NAEClassifier, NAEClassifier]) -> None:
    usual, chosen = models
    other = usual.for_class("default")
    assert usual.for_class("paid") is usual.model_
    np.testing.assert_array_equal(other.contributions(X).values, chosen.contributions(X).values)
    np.testing.assert_array_equal(other.for_class("paid").experts, usual.model_.experts)
    one, two = usual.explain_local(X[:5]), other.explain_local(X[:5])
    np.testing.assert_array_equal(two.own, -one.own)
    np.testing.assert_array_equal(two.causes, one.causes)
    np.testing.assert_allclose(two.parts, -one.parts, rtol=0, atol=1e-12)
    for mine, theirs in zip(usual.explain_global().features, other.explain_global().features, strict=True):
        order = [theirs.labels.index(label) for label in mine.labels]  # levels go from the lowest effect to the highest
        np.testing.assert_array_equal(theirs.mean[order], -mine.mean)
        np.testing.assert_array_equal(theirs.lower[order], -mine.upper)
        np.testing.assert_array_equal(theirs.quantiles[:, order], -mine.quantiles[::-1])
        np.testing.assert_array_equal(theirs.importance, mine.importance)
        np.testing.assert_array_equal(theirs.additivity, mine.additivity)


def test_only_one_of_two_classes_can_be_spoken_for(models: tuple[NAEClassifier, NAEClassifier]) -> None:
    with pytest.raises(UserError, match=r"no class 'defalt'\. Did you mean 'default'"):
        models[0].for_class("defalt")
    three = NAEClassifier(n_members=1, max_epochs=1).fit(X[["income"]], X["plan"])
    with pytest.raises(UserError, match=r"Only a model of two classes .* has 3 classes, each with a score of its own"):
        three.for_class("a")
