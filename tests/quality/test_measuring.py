from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.metrics import accuracy_score, d2_absolute_error_score, d2_tweedie_score, r2_score

import nae
from nae import NAEClassifier, NAERegressor, quality
from nae.errors import DataError, UserError
from nae.tables import TrainingSummary

FAST = {"n_members": 1, "max_epochs": 15, "random_state": 0}


def claims(n_rows: int = 1500) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Return counts under very different exposures, and the logarithm of the exposure."""
    random = np.random.default_rng(0)
    X = pd.DataFrame({"age": random.uniform(size=n_rows), "size": random.uniform(size=n_rows)})
    years = random.uniform(0.02, 3, size=n_rows)
    y = random.poisson(years * np.exp(0.5 * X["age"] + X["size"] - 1)).astype(float)
    return X, pd.Series(y, name="claims"), pd.Series(np.log(years), name="log years")


@pytest.fixture(scope="module")
def rate() -> NAERegressor:
    """Return a good model of a rate."""
    X, y, offset = claims()
    return NAERegressor("poisson", **FAST).fit(X, y, offset=offset)


def test_a_good_model_of_a_rate_is_better_than_one_rate_for_all(rate: NAERegressor) -> None:
    X, y, offset = claims()
    found = quality.measure(rate, X, y, offset=offset)
    assert [one.name for one in found][:2] == ["Poisson deviance", "D²"]
    assert all(one.gain > 0 for one in found)
    constant = np.full(len(y), y.sum() / np.exp(offset).sum()) * np.exp(offset)
    assert found["RMSE"].baseline == pytest.approx(np.sqrt(np.mean((constant - y) ** 2)))
    assert found["RMSE"].value == pytest.approx(np.sqrt(np.mean((rate.predict(X, offset=offset) - y) ** 2)))
    assert found.baseline == "one rate for all"


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_the_estimator_and_its_file_say_the_same(rate: NAERegressor, tmp_path: Path, frame: object) -> None:
    X, y, offset = claims()
    rate.save(tmp_path / "rate.nae")
    table = frame(X)  # type: ignore[operator]
    loaded = nae.load(tmp_path / "rate.nae")
    assert loaded.offset_names == ("log years",)
    assert quality.measure(loaded, table, y, offset=offset) == quality.measure(rate, X, y, offset=offset)


def test_a_model_with_an_offset_is_not_measured_without_one(rate: NAERegressor) -> None:
    X, y, _ = claims()
    said = "with an offset must be measured with one; its offset was 'log years', and none was given. Pass offset="
    for measuring in (rate.score, lambda X, y: quality.measure(rate, X, y), rate.explain_local):
        with pytest.raises(DataError, match=said):
            measuring(X, y)
    classifier = NAEClassifier(**FAST).fit(X[:200], y[:200] > 0, offset=np.zeros(200))
    with pytest.raises(DataError, match=r"measured with one; none was given\."):
        classifier.score(X, y > 0)


def test_a_rate_is_predicted_and_explained_without_an_offset(rate: NAERegressor) -> None:
    X, _, offset = claims()
    np.testing.assert_allclose(rate.predict(X, offset=offset), rate.predict(X) * np.exp(offset))
    np.testing.assert_allclose(rate.explain_local(X[:5]).prediction[:, 0], rate.predict(X[:5]))


def test_the_score_of_a_rate_is_the_share_of_the_deviance_it_explains(rate: NAERegressor) -> None:
    X, y, offset = claims()
    years = np.exp(offset)
    expected = d2_tweedie_score(y / years, rate.predict(X), power=1, sample_weight=years)
    assert rate.score(X, y, offset=offset) == pytest.approx(expected)


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie", "absolute", "squared", "huber"])
def test_scores_are_those_of_scikit_learn(loss: str) -> None:
    X, y, _ = claims(200)
    y, weight = y + 1, np.random.default_rng(0).integers(1, 4, size=200)
    model = NAERegressor(loss, **FAST).fit(X, y)
    predicted = model.predict(X)
    expected = {
        "poisson": d2_tweedie_score(y, predicted, power=1, sample_weight=weight),
        "gamma": d2_tweedie_score(y, predicted, power=2, sample_weight=weight),
        "tweedie": d2_tweedie_score(y, predicted, power=1.5, sample_weight=weight),
        "absolute": d2_absolute_error_score(y, predicted, sample_weight=weight),
    }.get(loss, r2_score(y, predicted, sample_weight=weight))
    assert model.score(X, y, sample_weight=weight) == pytest.approx(expected)


def test_the_accuracy_counts_a_class_that_training_did_not_see_as_wrong() -> None:
    X, y, offset = claims(200)
    labels = np.where(y > 0, "some", "none")
    model = NAEClassifier(**FAST).fit(X, labels, offset=offset)
    labels[:50] = "other"
    predicted = model.predict(X, offset=offset)
    assert model.score(X, labels, offset=offset) == accuracy_score(labels, predicted)


def test_a_file_knows_the_loss_it_was_fitted_to(tmp_path: Path) -> None:
    X, y, _ = claims(200)
    for given, kept in (
        ({"loss": "quantile", "quantile": 0.9}, {"quantile": 0.9}),
        ({"loss": "tweedie", "tweedie_power": 1.2}, {"tweedie_power": 1.2}),
        (
            {"loss": "huber", "huber_delta": 2.0},
            {
                "huber_delta": 2.0,
                "huber_threshold": [2 * float(np.ptp(np.quantile(y, [0.1, 0.9], method="inverted_cdf"))) / 2.5631],
            },
        ),
    ):
        NAERegressor(**given, **FAST | {"max_epochs": 1}).fit(X, y).save(tmp_path / "m.nae")
        training = nae.load(tmp_path / "m.nae").training.to_dict()
        for name, value in kept.items():
            assert training[name] == pytest.approx(value, rel=1e-4)
    assert next(iter(quality.measure(nae.load(tmp_path / "m.nae"), X, y))).name == "Huber loss"


def test_the_baseline_is_that_of_the_training_rows() -> None:
    X, y, _ = claims(200)
    weight = np.random.default_rng(0).integers(0, 3, size=200)
    model = NAERegressor("quantile", quantile=0.9, **FAST | {"max_epochs": 1}).fit(X, y, sample_weight=weight)
    found = quality.measure(model, X[:20], y[:20])
    constant = np.quantile(np.repeat(y, weight), 0.9, method="averaged_inverted_cdf")
    assert found["mean absolute error"].baseline == pytest.approx(np.abs(y[:20] - constant).mean())
    assert found.baseline == "the 90 % quantile"
    classifier = NAEClassifier(class_weight="balanced", **FAST | {"max_epochs": 1}).fit(X, y > 1, sample_weight=weight)
    share = np.average(y > 1, weights=weight)
    found = quality.measure(classifier, X[:20], y[:20] > 1)
    assert found["Brier score"].baseline == pytest.approx(np.mean((share - (y[:20] > 1)) ** 2))


def test_an_offset_on_the_scale_of_the_target_shifts_the_baseline() -> None:
    X, y, offset = claims(200)
    model = NAERegressor(**FAST | {"max_epochs": 1}).fit(X, y, offset=offset)
    found = quality.measure(model, X, y, offset=offset)
    constant = (y - offset).mean() + offset
    assert found["RMSE"].baseline == pytest.approx(np.sqrt(np.mean((constant - y) ** 2)))


@pytest.mark.parametrize("loss", ["poisson", "squared"])
def test_files_too_large_for_memory_know_the_same(tmp_path: Path, loss: str) -> None:
    X, y, offset = claims(400)
    table = pa.Table.from_pandas(pd.concat([X, y, offset], axis=1))
    pa.parquet.write_table(table, tmp_path / "claims.parquet")
    settings = FAST | {"max_epochs": 1}
    one = NAERegressor(loss, **settings).fit(nae.scan(tmp_path / "claims.parquet"), "claims", offset="log years")
    two = NAERegressor(loss, **settings).fit(X, y, offset=offset)
    known, expected = one.model_.training, two.model_.training
    assert known.offset == expected.offset == ("log years",)
    assert known.baseline["values"] == pytest.approx(expected.baseline["values"])


def test_rows_without_a_truth_or_of_weight_zero_are_left_out(rate: NAERegressor) -> None:
    X, y, offset = claims()
    weight = np.ones(len(y))
    weight[:100] = 0
    y[100:200] = None
    found = quality.measure(rate, X, y, sample_weight=weight, offset=offset)
    assert found == quality.measure(rate, X[200:], y[200:], offset=offset[200:])
    assert found.n_rows == len(y) - 200
    with pytest.raises(DataError, match="Some row must have a target; none has"):
        quality.measure(rate, X, np.full(len(y), np.nan), offset=offset)


def test_labels_are_the_model_s_whatever_their_type() -> None:
    X, y, _ = claims(200)
    model = NAEClassifier(**FAST | {"max_epochs": 1}).fit(X, (y > 0).astype(int)).model_
    found = quality.measure(model, X, (y > 0).astype(float))
    assert found == quality.measure(model, X, np.where(y > 0, "1", "0"))
    with pytest.raises(DataError, match=r"y must hold the model's classes \['0', '1'\]; row 0 holds 'yes'"):
        quality.measure(model, X, ["yes"] * 200)


def test_what_cannot_be_measured_is_said(rate: NAERegressor) -> None:
    X, y, offset = claims()
    with pytest.raises(UserError, match="Only a fitted model can be measured; got NAERegressor"):
        quality.measure(NAERegressor(), X, y)
    with pytest.raises(DataError, match=r"one value per row \(1500\); got 3"):
        quality.measure(rate, X, y[:3], offset=offset)
    with pytest.raises(DataError, match=r"needs a target of at least 0; got -1"):
        quality.measure(rate, X, y - 1, offset=offset)
    with pytest.raises(UserError, match="n_resamples must be at least 0; got -1"):
        quality.measure(rate, X, y, offset=offset, n_resamples=-1)
    with pytest.raises(KeyError, match="R²"):
        quality.measure(rate, X, y, offset=offset, n_resamples=0)["R²"]


def test_a_training_summary_remembers_measures(rate: NAERegressor) -> None:
    X, y, offset = claims()
    found = quality.measure(rate, X, y, offset=offset, n_resamples=20)
    assert quality.Quality.of(found.remembered_in(TrainingSummary())) == found.measures
    assert quality.Quality.of(TrainingSummary()) == ()


def test_accuracy_is_that_of_what_is_predicted_where_classes_have_weights() -> None:
    random = np.random.default_rng(8)
    X = random.normal(size=(300, 2))
    y = (random.uniform(size=300) < 0.1 + 0.2 * (X[:, 0] > 0)).astype(int)
    model = NAEClassifier(class_weight="balanced", n_members=2, max_epochs=5, random_state=0).fit(X, y)
    found = quality.measure(model, X, y, n_resamples=0)["accuracy"]
    assert found.value == pytest.approx(model.score(X, y))
    assert found.value < (model.predict_proba(X).argmax(axis=1) == y).mean() - 0.05
