"""Small tables: no cliff at 256 rows, nothing learned from noise, and folds by what rows hold."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import log_loss

import nae
from nae import NAEClassifier, NAERegressor
from nae.encoding.fingerprint import row_digests
from nae.estimators.reading import content_folds

QUICK = {"n_members": 4, "n_jobs": 1, "random_state": 0}


def coins(n_rows: int = 2200) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, 3))
    return X, (random.uniform(size=n_rows) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)


@pytest.mark.parametrize("n_rows", [40, 256, pytest.param(257, marks=pytest.mark.slow)])
def test_a_line_of_log_odds_is_learned_as_well_as_by_logistic_regression(n_rows):
    X, y = coins()
    test = slice(1200, None)
    model = NAEClassifier(**QUICK).fit(X[:n_rows], y[:n_rows])
    found = log_loss(y[test], model.predict_proba(X[test]))
    line = log_loss(y[test], LogisticRegression().fit(X[:n_rows], y[:n_rows]).predict_proba(X[test])[:, 1])
    assert found < 1.03 * line


@pytest.mark.parametrize("kind", [NAERegressor, NAEClassifier])
def test_of_noise_a_small_table_teaches_nothing(kind):
    random = np.random.default_rng(1)
    X, truth = random.normal(size=(600, 5)), random.integers(0, 2, 600)
    model = kind(**QUICK).fit(X[:60], truth[:60])
    if kind is NAERegressor:
        error = np.mean((model.predict(X[100:]) - truth[100:]) ** 2)
        assert error < 1.06 * np.mean((truth[:60].mean() - truth[100:]) ** 2)
    else:
        constant = np.full(500, truth[:60].mean())
        assert log_loss(truth[100:], model.predict_proba(X[100:])) < 1.03 * log_loss(truth[100:], constant)


def test_counts_are_no_worse_than_their_mean():
    random = np.random.default_rng(2)
    X = random.normal(size=(1200, 4))
    y = random.poisson(np.exp(0.1 * X[:, 0] - 1)).astype(float)
    model = NAERegressor("poisson", **QUICK).fit(X[:200], y[:200])
    found = nae.quality.measure(model, X[200:], y[200:], n_resamples=0)["Poisson deviance"]
    assert found.value < 1.01 * found.baseline


def test_a_small_table_is_learned_as_well_as_by_ridge():
    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(3).permutation(len(y))
    train, test = order[:100], order[100:]
    found, line = (
        np.mean((model.fit(X[train], y[train]).predict(X[test]) - y[test]) ** 2)
        for model in (NAERegressor(**QUICK), RidgeCV(np.logspace(-4, 2, 13)))
    )
    assert found < 1.03 * line


def test_a_table_of_few_different_rows_keeps_its_signal():
    random = np.random.default_rng(4)
    table = pd.DataFrame({"sex": random.choice(["f", "m"], 200), "class": random.choice(["1", "2", "3"], 200)})
    survived = (random.uniform(size=200) < np.where(table["sex"] == "f", 0.8, 0.2)).astype(int)
    model = NAEClassifier(**QUICK).fit(table, survived)
    share = model.predict_proba(table)[:, 1]
    assert share[table["sex"] == "f"].mean() > share[table["sex"] == "m"].mean() + 0.4


def test_how_much_was_kept_of_what_was_learned_is_in_the_history():
    X, y = coins(100)
    history = NAEClassifier(**QUICK).fit(X, y).history_
    assert history.kept_share in {0.0, 0.25, 0.5, 0.75, 1.0}
    assert history.best_validation == history.kept_validation
    assert history.to_dict()["kept_share"] == history.kept_share


def test_an_output_penalty_that_is_asked_for_holds_for_the_whole_model():
    X, y = coins(100)
    model = NAEClassifier(output_penalty=100.0, max_epochs=100, **QUICK).fit(X, y)
    assert model.history_.kept_share is None
    assert np.abs(model.contributions(X).values).mean() < 0.1


def test_a_small_scan_is_fitted_as_its_rows_are(tmp_path):
    X, y = coins(120)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    scanned = NAEClassifier(**QUICK).fit(nae.scan(tmp_path / "rows.parquet"), "y")
    plain = NAEClassifier(**QUICK).fit(table, y)
    found, expected = (log_loss(y, model.predict_proba(table)) for model in (scanned, plain))
    assert scanned.history_.kept_share is not None
    assert found == pytest.approx(expected, rel=0.1)


def test_a_warm_start_goes_on_from_the_start_of_a_small_table():
    X, y = coins(120)
    model = NAEClassifier(warm_start=True, max_epochs=20, **QUICK).fit(X, y)
    before = model.predict_proba(X)
    model.set_params(max_epochs=1).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), before, atol=0.1)


def test_folds_depend_on_what_rows_hold_and_not_on_their_order():
    random = np.random.default_rng(5)
    x, codes = random.normal(size=100), random.integers(0, 2, 100)
    folds = content_folds(8, codes, row_digests(x, codes, key=b"key"))
    order = random.permutation(100)
    np.testing.assert_array_equal(
        content_folds(8, codes[order], row_digests(x[order], codes[order], key=b"key")), folds[order]
    )
    for code in (0, 1):
        counts = np.bincount(folds[codes == code], minlength=8)
        assert counts.max() - counts.min() <= 1
    assert (content_folds(8, codes, row_digests(x, codes, key=b"other")) != folds).any()


def test_equal_rows_are_spread_over_the_folds():
    digests = row_digests(np.repeat([1.0, 2.0], 16), key=b"key")
    folds = content_folds(8, None, digests)
    assert [sorted(set(folds[part])) for part in (slice(16), slice(16, None))] == [list(range(8))] * 2


def test_digests_do_not_depend_on_how_numbers_and_text_are_held():
    numbers = [np.array([1, 2, 2]), np.array([1.0, 2.0, 2.0], dtype=np.float32), np.array([1.0, 2.0, 2.0])]
    found = [row_digests(column, key=b"key") for column in numbers]
    assert all((one == found[0]).all() for one in found)
    assert found[0][1] == found[0][2] != found[0][0]
    assert row_digests(np.array([0.0]), key=b"k") == row_digests(np.array([-0.0]), key=b"k")
