"""Which rows validate, and what validation decides."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, StratifiedKFold, TimeSeriesSplit

from nae import NAEClassifier, NAERegressor, TableModel
from nae.errors import ConfigError, DataError

FAST = {"n_members": 1, "n_experts": 2, "hidden_dim": 8, "max_epochs": 5, "random_state": 0}
N_ROWS = 300


@pytest.fixture(name="X", scope="module")
def table() -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (N_ROWS, 2))


def trained(model: NAERegressor | NAEClassifier) -> TableModel:
    """Return the model as validation judged it: before its intercept was moved to the totals of the rows."""
    tables = model.model_
    return replace(tables, intercept=tables.intercept - np.array(tables.training.intercept_shift))


def held_out(model: NAERegressor, X: np.ndarray) -> int:
    model.fit(X, X[:, 0])
    assert model.model_.training.n_rows + model.model_.training.n_validation_rows == len(X)
    return model.model_.training.n_validation_rows


@pytest.mark.parametrize("n_rows", [2, 40, 256, 257])
def test_tables_of_every_size_are_validated(X, n_rows):
    assert held_out(NAERegressor(**FAST), X[:n_rows]) == -(-n_rows // 8)


def test_a_single_row_is_trained_on(X):
    assert held_out(NAERegressor(**FAST), X[:1]) == 0


def test_the_share_of_validation_rows_is_asked_for(X):
    assert held_out(NAERegressor(**FAST), X) == 38
    assert held_out(NAERegressor(validation_size=0.5, **FAST), X) == 150


def test_members_hold_out_different_rows(X):
    model = NAERegressor(**FAST | {"n_members": 3}).fit(X, X[:, 0])
    assert any(value is not None for value in model.history_.column("validation"))
    assert model.model_.training.n_rows == N_ROWS


def test_an_evaluation_set_takes_the_place_of_held_out_rows(X):
    new = np.random.default_rng(1).uniform(-1, 1, (50, 2))
    model = NAERegressor(**FAST).fit(X, X[:, 0], eval_set=(new, new[:, 0]))
    training = model.model_.training
    assert (training.n_rows, training.n_validation_rows) == (N_ROWS, 50)
    error = trained(model).predict(new) - new[:, 0]
    assert model.history_.best_validation == pytest.approx(np.mean(error**2) / X[:, 0].var(), rel=1e-3)


def test_an_evaluation_set_serves_few_rows_too(X):
    model = NAERegressor(**FAST).fit(X[:50], X[:50, 0], eval_set=[(X, X[:, 0])])
    assert model.model_.training.n_validation_rows == N_ROWS


def test_weights_and_offset_of_an_evaluation_set_count(X):
    y, shift = X[:, 0], 10 * X[:, 1]
    weight = np.where(np.arange(50) < 25, 1.0, 0.0)
    model = NAERegressor(**FAST).fit(
        X, y + shift, offset=shift, eval_set=(X[:50], (y + shift)[:50], weight, shift[:50])
    )
    error = (trained(model).predict(X[:25], offset=shift[:25]) - (y + shift)[:25]) ** 2
    assert model.history_.best_validation == pytest.approx(
        error.mean() / y.var(), rel=1e-2
    )  # so small that single precision shows


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_of_an_evaluation_set_are_matched_by_label(X, n_classes):
    labels = np.array(["b", "c", "a"])[:n_classes][np.arange(N_ROWS) % n_classes]
    rows = np.flatnonzero(labels != "b")[:30] if n_classes == 3 else np.arange(30)
    model = NAEClassifier(**FAST).fit(X, labels, eval_set=(X[rows], labels[rows]))
    proba = trained(model).predict_proba(X[rows])[np.arange(30), np.searchsorted(model.classes_, labels[rows])]
    assert model.history_.best_validation == pytest.approx(-np.log(proba).mean(), rel=1e-3)


@pytest.mark.parametrize(
    "validation",
    [KFold(5), TimeSeriesSplit(5), np.arange(240, 300), np.arange(N_ROWS) >= 240, list(range(240, 300))],
    ids=["splitter", "time", "indices", "mask", "list"],
)
def test_validation_rows_are_chosen_by_a_splitter_indices_or_a_mask(X, validation):
    model = NAERegressor(validation=validation, **FAST)
    model.fit(X, X[:, 0])
    training = model.model_.training
    expected = {TimeSeriesSplit: (250, 50)}.get(type(validation), (240, 60))
    assert (training.n_rows, training.n_validation_rows) == expected


def test_chosen_rows_are_those_held_out():
    level = np.where(np.arange(N_ROWS) % 5 == 3, "held out", "trained on")[:, None]
    for validation in (np.arange(3, N_ROWS, 5), level[:, 0] == "held out"):
        model = NAERegressor(validation=validation, **FAST).fit(level, np.arange(N_ROWS))
        assert model.model_.schema.features[0].levels == ("trained on",)


def test_a_stratified_splitter_sees_the_classes(X):
    y = np.arange(N_ROWS) % 3
    model = NAEClassifier(validation=StratifiedKFold(5), **FAST).fit(X, y)
    assert model.model_.training.n_validation_rows == 60
    binary = NAEClassifier(validation=StratifiedKFold(5), **FAST).fit(X, y > 0)
    assert binary.model_.training.n_validation_rows == 60


def test_a_predefined_split_counts_all_rows(X):
    weight = np.ones(N_ROWS)
    weight[:100] = 0
    fold = np.where(np.arange(N_ROWS) % 2 == 0, 0, -1)
    model = NAERegressor(validation=PredefinedSplit(fold), **FAST).fit(X, X[:, 0], sample_weight=weight)
    training = model.model_.training
    assert (training.n_rows, training.n_validation_rows) == (100, 100)


def test_indices_count_all_rows_whatever_their_weight(X):
    weight = np.ones(N_ROWS)
    weight[:100] = 0
    model = NAERegressor(validation=np.arange(50, 150), **FAST).fit(X, X[:, 0], sample_weight=weight)
    training = model.model_.training
    assert (training.n_rows, training.n_validation_rows) == (150, 50)


def test_a_splitter_sees_the_rows_of_positive_weight(X):
    weight = np.ones(N_ROWS)
    weight[::2] = 0
    model = NAERegressor(validation=KFold(5), **FAST).fit(X, X[:, 0], sample_weight=weight)
    without = NAERegressor(validation=KFold(5), **FAST).fit(X[1::2], X[1::2, 0])
    np.testing.assert_array_equal(model.predict(X), without.predict(X))


def test_groups_are_kept_apart_by_indices(X):
    groups = np.arange(N_ROWS) // 30
    rows = next(GroupKFold(5).split(X, X[:, 0], groups))[1]
    model = NAERegressor(validation=rows, **FAST).fit(X, X[:, 0])
    assert model.model_.training.n_validation_rows == 60


def test_a_splitter_that_needs_groups_is_an_error_with_a_hint(X):
    with pytest.raises(ConfigError, match=r"A splitter is given no groups; pass the indices .* next\(splitter.split"):
        NAERegressor(validation=GroupKFold(3), **FAST).fit(X, X[:, 0])


@pytest.mark.parametrize(
    ("validation", "match"),
    [
        ([300], r"validation must hold rows in \[0, 299\]; got 300"),
        ([-1], r"validation must hold rows in \[0, 299\]; got -1"),
        (np.arange(N_ROWS), "validation must leave rows on both sides; it takes 300 of 300 rows"),
        (np.zeros(N_ROWS, dtype=bool), "validation must leave rows on both sides; it takes 0 of 300 rows"),
        (np.zeros(7, dtype=bool), r"indices or a mask of the validation rows \(300\); got ndarray of shape \(7,\)"),
        ([0.5], r"validation must be a splitter, or the indices or a mask"),
        (
            0.2,
            r"got float of shape \(\)\. A share of the rows is validation_size",
        ),
    ],
)
def test_validation_is_checked(X, validation, match):
    with pytest.raises(ConfigError, match=match):
        NAERegressor(validation=validation, **FAST).fit(X, X[:, 0])


@pytest.mark.parametrize(
    "eval_set", [np.zeros((3, 2)), (np.zeros((3, 2)),), 7, [1, 2]], ids=["array", "one", "int", "list"]
)
def test_an_evaluation_set_must_be_a_pair(X, eval_set):
    with pytest.raises(ConfigError, match=r"eval_set must be a pair \(X, y\), or \(X, y, sample_weight, offset\); got"):
        NAERegressor(**FAST).fit(X, X[:, 0], eval_set=eval_set)


def test_an_evaluation_set_must_fit_the_training_rows(X):
    y = X[:, 0]
    with pytest.raises(DataError, match="eval_set must have one target per row; got 300 and 299"):
        NAERegressor(**FAST).fit(X, y, eval_set=(X, y[:-1]))
    with pytest.raises(DataError, match="eval_set must have one target per row; got 0 and 0"):
        NAERegressor(**FAST).fit(X, y, eval_set=(X[:0], y[:0]))
    with pytest.raises(DataError, match="eval_set must have the 1 targets of y; got 2"):
        NAERegressor(**FAST).fit(X, y, eval_set=(X, X))
    with pytest.raises(DataError, match=r"X has 1 features, but NAERegressor is expecting 2"):
        NAERegressor(**FAST).fit(X, y, eval_set=(X[:, :1], y))
    with pytest.raises(
        DataError, match=r"eval_set must hold only the training classes; got 'c', the classes are \['a', 'b'\]"
    ):
        NAEClassifier(**FAST).fit(X, np.where(y > 0, "a", "b"), eval_set=(X[:1], ["c"]))
    with pytest.raises(DataError, match="offset must be given for the training rows and for eval_set, or for neither"):
        NAERegressor(**FAST).fit(X, y, eval_set=(X, y), offset=np.zeros(N_ROWS))
    with pytest.raises(DataError, match="This loss needs a positive target; got 0"):
        NAERegressor("gamma", **FAST).fit(X, np.exp(y), eval_set=(X, 0 * y))


def test_every_class_is_validated_where_there_are_enough_rows():
    random = np.random.default_rng(2)
    X = random.uniform(size=(400, 1))
    y = np.repeat([0, 1], [380, 20])
    for seed in range(5):
        model = NAEClassifier(**FAST | {"random_state": seed, "max_epochs": 1}).fit(X, y)
        weight = model.model_.statistics.weight.sum()
        assert weight == pytest.approx(350)


def test_a_class_too_rare_to_split_is_fitted():
    X = np.random.default_rng(3).uniform(size=(300, 1))
    y = np.where(np.arange(300) == 5, "rare", np.where(np.arange(300) % 2 == 0, "a", "b"))
    assert NAEClassifier(**FAST).fit(X, y).classes_.tolist() == ["a", "b", "rare"]
