"""Classification: labels of any type, class weights, contributions per class."""

import numpy as np
import pandas as pd
import pytest

import nae
from nae import NAEClassifier
from nae.errors import ConfigError, DataError

FAST = {"n_members": 1, "n_experts": 3, "hidden_dim": 16, "max_epochs": 80, "random_state": 0}


@pytest.fixture(name="X", scope="module")
def rows() -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (200, 2))


def codes(X: np.ndarray, n_classes: int) -> np.ndarray:
    """Return classes that no sum of one-feature effects can tell apart."""
    side = (X[:, 0] * X[:, 1] > 0).astype(int)
    return side if n_classes == 2 else np.where(np.abs(X[:, 0]) < 0.3, 2, side)


LABELS = {
    "text": ["no", "yes", "maybe"],
    "integers": [7, -3, 12],
    "floats": [0.0, 1.0, 2.0],
    "objects": np.array(["no", "yes", "maybe"], dtype=object),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_of_any_type_are_learned_and_given_back(X, kind, n_classes):
    labels = np.asarray(LABELS[kind])
    y = labels[codes(X, n_classes)]
    model = NAEClassifier(**FAST).fit(X, y)
    assert model.classes_.tolist() == sorted(labels[:n_classes].tolist())
    assert model.score(X, y) > 0.85
    assert set(model.predict(X)) == set(y)
    proba = model.predict_proba(X)
    assert proba.shape == (200, n_classes)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(proba))
    assert model.decision_function(X).shape == ((200,) if n_classes == 2 else (200, 3))


def test_booleans_are_classes(X):
    y = codes(X, 2).astype(bool)
    model = NAEClassifier(**FAST).fit(X, y)
    assert model.classes_.tolist() == [False, True]
    assert model.predict(X).dtype == bool
    assert model.score(X, y) > 0.85


def test_series_of_labels_are_read(X):
    y = pd.Series(np.array(["no", "yes"])[codes(X, 2)], dtype="category")
    one = NAEClassifier(**FAST | {"max_epochs": 3}).fit(X, y)
    other = NAEClassifier(**FAST | {"max_epochs": 3}).fit(X, y.astype(str).tolist())
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_contributions_of_every_class_depend_on_the_input(X):
    y = codes(X, 3)
    model = NAEClassifier(**FAST).fit(X, y)
    found = model.contributions(X)
    assert found.values.shape == (200, 2, 3)
    assert found.output_names == ("0", "1", "2")
    assert found.values.std(axis=0).min() > 0.1
    np.testing.assert_allclose(found.score, model.decision_function(X))
    np.testing.assert_allclose(found.values.sum(axis=2), 0, atol=1e-5)  # centred over the classes
    np.testing.assert_allclose(np.sum(found.intercept), 0, atol=1e-6)


def test_two_classes_have_one_contribution_towards_the_second(X):
    y = np.where(X[:, 0] > 0, "right", "left")
    model = NAEClassifier(**FAST).fit(X, y)
    found = model.contributions(X)
    assert found.values.shape == (200, 2)
    assert np.corrcoef(found.values[:, 0], X[:, 0])[0, 1] > 0.8
    assert model.model_.outputs == ("right",)


def test_rare_classes_are_learned_and_probabilities_match_frequencies(X):
    y = (np.arange(200) % 10 == 0).astype(int)
    proba = NAEClassifier(**FAST).fit(X, y).predict_proba(X)
    assert proba[:, 1].mean() == pytest.approx(0.1, abs=0.03)


FEW = FAST | {"max_epochs": 3}  # before rows are told apart one by one


@pytest.mark.parametrize("n_classes", [2, 3])
def test_balanced_classes_keep_their_shares_and_an_offset_gives_them_equal_ones(X, n_classes):
    y = np.minimum(np.arange(200) % 10, n_classes - 1)
    model = NAEClassifier(class_weight="balanced", **FEW).fit(X, y)
    shares = np.bincount(y) / 200
    np.testing.assert_allclose(model.predict_proba(X).mean(axis=0), shares, rtol=1e-6)
    np.testing.assert_allclose(model.class_weight_, 1 / (n_classes * shares))
    weights = model.class_weight_
    two, more = np.full(200, np.log(weights[1] / weights[0])), np.tile(np.log(weights), (200, 1))
    weighted = model.predict_proba(X, offset=two if n_classes == 2 else more)
    np.testing.assert_allclose(weighted.mean(axis=0), np.full(n_classes, 1 / n_classes), atol=0.05)
    np.testing.assert_array_equal(model.predict(X), weighted.argmax(axis=1))
    assert len(set(model.predict(X))) == n_classes  # the rare ones are found
    assert (model.predict_proba(X).argmax(axis=1) == shares.argmax()).all()  # though they are not the most probable


def test_without_class_weights_the_most_probable_class_is_predicted(X):
    y = codes(X, 3)
    model = NAEClassifier(**FEW).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))
    assert model.class_weight_.tolist() == [1, 1, 1]


def test_a_file_and_a_scan_remember_the_weights_of_classes(X, tmp_path):
    y = (np.arange(200) % 10 == 0).astype(int)
    table = pd.DataFrame(X, columns=["a", "b"])
    model = NAEClassifier(class_weight="balanced", **FEW).fit(table, y)
    model.save(tmp_path / "model.nae")
    tables, again = nae.load(tmp_path / "model.nae"), NAEClassifier.load(tmp_path / "model.nae")
    assert tables.class_weight == model.model_.class_weight
    np.testing.assert_array_equal(again.class_weight_, model.class_weight_)
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    np.testing.assert_array_equal(tables.predict(table).astype(int), model.predict(table))
    table.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    streamed = NAEClassifier(class_weight="balanced", **FEW).fit(nae.scan(tmp_path / "rows.parquet"), y="y")
    np.testing.assert_array_equal(streamed.class_weight_, model.class_weight_)
    assert streamed.predict_proba(table)[:, 1].mean() == pytest.approx(0.1)
    assert streamed.predict(table).mean() > 0.2


def test_balanced_is_what_its_numbers_say(X):
    y = np.array(["rare", "common"])[(np.arange(200) % 4 > 0).astype(int)]
    weights = {"rare": 200 / (2 * 50), "common": 200 / (2 * 150)}
    one = NAEClassifier(class_weight="balanced", **FAST).fit(X, y).predict_proba(X)
    other = NAEClassifier(class_weight=weights, **FAST).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(one, other, atol=1e-9)


def test_class_weights_multiply_with_row_weights(X):
    y = codes(X, 3)
    rows = np.random.default_rng(1).uniform(0.5, 2, 200)
    one = NAEClassifier(class_weight={1: 3.0}, **FAST).fit(X, y, sample_weight=rows)
    other = NAEClassifier(**FAST).fit(X, y, sample_weight=np.where(y == 1, 3, 1) * rows)
    np.testing.assert_allclose(one.contributions(X).values, other.contributions(X).values, atol=1e-9)
    shares = [np.bincount(y, rows) / rows.sum(), np.bincount(y, np.where(y == 1, 3, 1) * rows)]
    np.testing.assert_allclose(rows @ one.predict_proba(X) / rows.sum(), shares[0], rtol=1e-6)
    np.testing.assert_allclose((np.where(y == 1, 3, 1) * rows) @ other.predict_proba(X), shares[1], rtol=1e-6)


def test_levels_are_rare_by_their_rows_not_by_what_their_class_counts_for():
    kind = np.repeat(["usual", "often", "seldom", "once"], [600, 388, 7, 5])
    y = kind == "once"  # five rows, which count for half of all where classes are balanced
    few = {"n_members": 1, "max_epochs": 1, "n_experts": 2, "random_state": 0}
    plain, balanced = (NAEClassifier(class_weight=each, **few).fit({"kind": kind}, y) for each in (None, "balanced"))
    assert balanced.model_.schema.features[0].levels == plain.model_.schema.features[0].levels == ("usual", "often")


def test_a_class_of_rows_without_weight_is_no_class(X):
    y = codes(X, 3)
    model = NAEClassifier(**FAST | {"max_epochs": 3}).fit(X, y, sample_weight=(y < 2).astype(float))
    assert model.classes_.tolist() == [0, 1]


def test_an_offset_moves_the_log_odds(X):
    y = codes(X, 2)
    model = NAEClassifier(**FAST | {"max_epochs": 5}).fit(X, y, offset=np.zeros(200))
    base = model.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X, offset=np.full(200, 2.0)), base + 2)
    shifted = model.predict_proba(X, offset=np.full(200, 2.0))[:, 1]
    np.testing.assert_allclose(shifted, 1 / (1 + np.exp(-base - 2)))
    assert (model.predict(X, offset=np.full(200, 50.0)) == 1).all()


def test_an_offset_per_class_is_learned_around(X):
    y = codes(X, 3)
    offset = np.zeros((200, 3))
    offset[:, 2] = 3.0
    model = NAEClassifier(**FAST).fit(X, y, offset=offset)
    assert model.predict_proba(X, offset=offset)[:, 2].mean() == pytest.approx((y == 2).mean(), abs=0.05)
    assert model.predict_proba(X)[:, 2].mean() < (y == 2).mean()


def test_one_offset_for_all_classes_is_an_error(X):
    with pytest.raises(DataError, match=r"offset must have one column per class \(3\); got shape \(200,\)"):
        NAEClassifier().fit(X, codes(X, 3), offset=np.zeros(200))


@pytest.mark.parametrize(
    ("class_weight", "match"),
    [
        ({"maybe": 2}, r"class_weight names the class 'maybe', which y does not have; the classes are \[0, 1\]"),
        ({0: 0.0}, r"class_weight must hold positive numbers, from 1e-100 to 1e\+100; got {0: 0.0}"),
        ({0: -1.0}, "class_weight must hold positive numbers"),
        ("equal", "class_weight must be a dict, 'balanced' or None; got 'equal'"),
    ],
)
def test_class_weights_are_checked(X, class_weight, match):
    with pytest.raises(ConfigError, match=match):
        NAEClassifier(class_weight=class_weight).fit(X, codes(X, 2))


def test_one_class_is_an_error(X):
    with pytest.raises(DataError, match="A classifier needs at least 2 classes; got one class"):
        NAEClassifier().fit(X, np.zeros(200))


def test_numbers_as_classes_are_an_error(X):
    with pytest.raises(DataError, match=r"Unknown label type: continuous\..* For numbers, use NAERegressor"):
        NAEClassifier().fit(X, X[:, 0])


def test_many_classes_are_learned():
    random = np.random.default_rng(2)
    X = random.choice(list("abcdefghij"), (300, 1))
    model = NAEClassifier(**FAST | {"validation_size": 0.1}).fit(X, X[:, 0])
    assert len(model.classes_) == 10
    assert model.score(X, X[:, 0]) > 0.95
