"""New rows of the same population are not called drifted; rows of another one are, and the reason is named."""

from typing import Any

import numpy as np
import pytest

from nae import NAEClassifier, NAERegressor
from nae.encoding import Columns
from nae.errors import ConfigError, DataError, UserError
from nae.explanation import with_statistics
from nae.monitoring import Drift, Tally, can_compare, judge
from nae.tables import TableModel
from tests.explanation.examples import explained_model
from tests.laws.models import make_model
from tests.monitoring.rows import draw_rows


@pytest.fixture(scope="module")
def model() -> TableModel:
    """Return a model of 1,500 rows."""
    random = np.random.default_rng(0)
    X = draw_rows(random, 1500)
    y = X["age"] / 10 + np.nan_to_num(X["income"]) * (X["rooms"] > 2)
    return NAERegressor(n_members=2, max_epochs=3, random_state=0).fit(X, y).model_


def test_fresh_samples_of_the_same_population_are_seldom_called_drifted(model: TableModel) -> None:
    random = np.random.default_rng(1)
    found = [model.drift(draw_rows(random, n), limit=0.1) for n in (50, 100, 400) for _ in range(40)]
    assert sum(one.has_drifted for one in found) <= 3
    assert sum(one.verdict != "within chance" for one in found) <= 5
    # The index alone would have called many of them drifted.
    assert sum(max(feature["values"].size for feature in one) > 0.1 for one in found) > 20


def test_the_training_rows_have_not_drifted(model: TableModel) -> None:
    found = model.drift(draw_rows(np.random.default_rng(0), 1500))
    assert max(feature["values"].size for feature in found) < 1e-12
    assert found.score[0].now == pytest.approx(found.score[0].then, abs=1e-3 * found.spread_then[0])
    assert found["age"]["values"].now == pytest.approx(found["age"]["values"].then)
    assert found.spread_now == pytest.approx(found.spread_then)
    assert found.text == "No feature drifted in 1,500 rows. The mean score did not drift."


def test_a_feature_that_moved_is_named_with_its_means(model: TableModel) -> None:
    found = model.drift(draw_rows(np.random.default_rng(2), 500, shift=1.0))
    assert found.has_drifted
    assert found.drifted == ("age",)
    assert found["age"]["values"].now == pytest.approx(50, abs=2)
    assert "age drifted: the mean of its values went from 4" in found.text
    age = found["age"]
    assert age.from_values + age.from_context == pytest.approx(age.contribution.now - age.contribution.then)
    assert abs(age.from_values[0]) > abs(age.from_context[0])


@pytest.mark.parametrize(
    ("name", "what", "words"),
    [
        ("income", "missing", "100 % of its values are missing"),
        ("town", "unseen", "100 % of its values were never seen in training"),
        ("age", "beyond", "100 % of its values lie outside the range of the training rows"),
        ("is_new", "values", "the share of 'False' went from 98"),
    ],
)
def test_each_kind_of_drift_is_told(model: TableModel, name: str, what: str, words: str) -> None:
    X = draw_rows(np.random.default_rng(3), 300)
    new = {"income": np.nan, "town": "nowhere", "age": 500.0, "is_new": True}[name]
    found = model.drift({**X, name: np.full(300, new)})
    assert found.drifted == (name,)
    assert found[name][what].verdict(found.limit, found.each_level) == "drifted"
    assert words in found.text


def test_with_many_rows_a_small_difference_has_moved_and_not_drifted(model: TableModel) -> None:
    found = model.drift(draw_rows(np.random.default_rng(4), 20_000, shift=0.2))
    assert (found.verdict, found["age"].verdict) == ("moved", "moved")
    assert not found.has_drifted
    assert "age moved, less than the limit: " in found.text
    assert model.drift(draw_rows(np.random.default_rng(4), 20_000, shift=0.2), limit=0.02).has_drifted


def test_with_few_rows_the_answer_says_what_could_not_be_seen(model: TableModel) -> None:
    found = model.drift(draw_rows(np.random.default_rng(5), 20))
    assert found.least > found.limit
    assert "With so few rows, only a PSI of about" in found.sentence


def test_weight_two_is_the_row_twice_in_every_size(model: TableModel) -> None:
    X = draw_rows(np.random.default_rng(6), 80, shift=1.0)
    weight = np.random.default_rng(7).integers(1, 3, size=80)
    twice = {name: np.repeat(values, weight) for name, values in X.items()}
    one, other = model.drift(X, sample_weight=weight), model.drift(twice)
    assert one["age"].distance == pytest.approx(other["age"].distance)
    assert one.score[0].size == pytest.approx(other.score[0].size)
    assert one["age"]["values"].p_value > other["age"]["values"].p_value  # but a weight is no second row


def test_a_tally_of_parts_is_that_of_the_whole(model: TableModel) -> None:
    columns = model._explained_columns(draw_rows(np.random.default_rng(8), 90))
    parts, whole = Tally(model), Tally(model)
    whole.add(columns)
    for rows in (slice(0, 50), slice(50, 90)):
        parts.add(Columns(tuple(array[rows] for array in columns.arrays), columns.names))
    assert judge(parts).to_frame().round(9).equals(judge(whole).to_frame().round(9))


@pytest.mark.parametrize("shape", [{"n_outputs": 3}, {"gate": "deep", "n_members": 2}, {"n_experts": 1}])
def test_any_model_can_be_asked(shape: dict[str, Any]) -> None:
    model, columns = explained_model(3, **shape)
    found = model.drift(columns)
    assert len(found.score) == model.n_outputs
    assert Drift.from_json(found.to_json()).to_json() == found.to_json()
    assert set(found.to_frame()["name"]) == set(model.feature_names)
    assert len(found.to_frame(level="checks")) == found.n_checks
    assert repr(found).startswith("Drift(")
    values = model.contributions(columns).values.reshape(len(found.score) and 12, model.n_features, -1)
    for i, feature in enumerate(found):
        assert [one.now for one in feature.contributions] == pytest.approx(values[:, i].mean(axis=0).tolist())


def test_wrong_questions_are_refused(model: TableModel) -> None:
    X = draw_rows(np.random.default_rng(9), 5)
    with pytest.raises(ConfigError, match=r"limit must be at least 0, a population stability index; got -1\."):
        model.drift(X, limit=-1)
    with pytest.raises(ConfigError, match="level must lie between 0 and 1"):
        model.drift(X, level=1.0)
    with pytest.raises(DataError, match=r"Drift needs rows of positive weight; got none\."):
        model.drift({name: values[:0] for name, values in X.items()})
    with pytest.raises(UserError, match="level must be 'features' or 'checks'"):
        model.drift(X).to_frame(level="rows")
    with pytest.raises(UserError, match=r"No feature is called 'agee'\. Did you mean 'age'"):
        model.drift(X)["agee"]
    with pytest.raises(UserError, match="has no check called 'unseen'"):
        model.drift(X)["age"]["unseen"]
    with pytest.raises(DataError, match="needs the statistics of the training rows"):
        make_model(np.random.default_rng(0), n_features=1).drift({"f0": [0.0]})


def test_other_rows_can_become_the_reference(model: TableModel) -> None:
    X = draw_rows(np.random.default_rng(10), 600, shift=0.7)
    assert model.drift(X).has_drifted
    assert not with_statistics(model, X).drift(X).has_drifted
    assert not model.drift(X, reference=X).has_drifted
    assert model.drift(X, reference=X).n_training_rows == 600


def test_class_weights_need_a_reference() -> None:
    X = draw_rows(np.random.default_rng(11), 400)
    y = X["age"] > 52
    model = NAEClassifier(n_members=2, max_epochs=2, random_state=0, class_weight="balanced").fit(X, y)
    with pytest.raises(DataError, match="this model remembers them multiplied by class weights"):
        model.drift(X)
    assert not model.drift(X, reference=X).has_drifted
    assert not can_compare(model.model_)
