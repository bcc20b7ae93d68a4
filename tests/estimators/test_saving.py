"""An estimator from a file is the estimator that was saved."""

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nae
from nae import NAEClassifier, NAERegressor
from nae.errors import DataError, FormatError, NAEWarning, UserError
from nae.estimators.saving import decode_classes, decode_params, encode_classes, encode_params
from nae.tables import save

TINY = {"n_members": 1, "max_epochs": 2, "random_state": 0}


@pytest.fixture(scope="module")
def table() -> dict[str, Any]:
    random = np.random.default_rng(0)
    return {"a": random.uniform(size=300), "b": random.choice(["u", "v"], 300)}


@pytest.fixture(scope="module")
def regressor(table: dict[str, Any]) -> NAERegressor:
    return NAERegressor(feature_types={"b": "category"}, **TINY).fit(table, table["a"])


def test_a_regressor_comes_back_with_parameters_and_predictions(
    regressor: NAERegressor, table: dict[str, Any], tmp_path: Path
) -> None:
    regressor.save(tmp_path / "m.nae")
    again = NAERegressor.load(tmp_path / "m.nae")
    assert again.get_params() == regressor.get_params()
    assert again.history_ == regressor.history_
    np.testing.assert_array_equal(again.predict(table), regressor.predict(table))
    np.testing.assert_array_equal(again.feature_names_in_, regressor.feature_names_in_)
    np.testing.assert_array_equal(nae.load(tmp_path / "m.nae").predict(table), regressor.predict(table))


@pytest.mark.parametrize(
    ("depth", "match"), [(40, r"cannot be read \(ValueError\(\"could not convert string"), (600, "nested too deep")]
)
def test_parameters_that_are_nested_are_refused_in_one_sentence(depth: int, match: str) -> None:
    value: Any = {"float": "x"}
    for _ in range(depth):
        value = {"tuple": [value]}
    with pytest.raises(FormatError, match=match) as error:
        decode_params({"n_knots": value}, {"n_knots": None})
    assert len(str(error.value)) < 200


def test_a_loaded_estimator_can_be_fitted_again(regressor: NAERegressor, table: dict[str, Any], tmp_path: Path) -> None:
    regressor.save(tmp_path / "m.nae")
    again = NAERegressor.load(tmp_path / "m.nae").fit(table, table["a"])
    np.testing.assert_array_equal(again.predict(table), regressor.predict(table))


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, 7], dtype=np.int16),
        np.array([False, True]),
        np.array(["no", "yes"]),
        np.array([1.0, 2.0]),
    ],
    ids=lambda labels: labels.dtype.str,
)
def test_classes_keep_their_type(labels: np.ndarray, table: dict[str, Any], tmp_path: Path) -> None:
    model = NAEClassifier(class_weight={labels[0].item(): 2.0}, **TINY)
    model.fit(table, labels[(table["a"] > 0.5).astype(int)])
    model.save(tmp_path / "m.nae")
    again = NAEClassifier.load(tmp_path / "m.nae")
    assert again.classes_.dtype == model.classes_.dtype
    assert again.class_weight == model.class_weight
    np.testing.assert_array_equal(again.predict(table), model.predict(table))


def test_the_wrong_estimator_is_an_error(regressor: NAERegressor, tmp_path: Path) -> None:
    regressor.save(tmp_path / "m.nae")
    with pytest.raises(FormatError, match="must hold a NAEClassifier; it holds a NAERegressor"):
        NAEClassifier.load(tmp_path / "m.nae")
    save(regressor.model_, tmp_path / "model.nae")
    with pytest.raises(FormatError, match=r"only a model\. Use nae\.load"):
        NAERegressor.load(tmp_path / "model.nae")


@pytest.mark.parametrize(
    "estimator", [{}, {"params": []}, {"params": {"evil": 1}}, {"params": {}, "history": {"dict": [["epochs", 3]]}}]
)
def test_a_forged_estimator_is_an_error(estimator: dict[str, Any], regressor: NAERegressor, tmp_path: Path) -> None:
    save(regressor.model_, tmp_path / "m.nae", extra={"estimator": {"class": "NAERegressor"} | estimator})
    with pytest.raises(FormatError):
        NAERegressor.load(tmp_path / "m.nae")


def test_objects_among_the_parameters_are_named_and_dropped() -> None:
    with pytest.warns(NAEWarning, match="holds no code: callbacks, random_state will have the default"):
        found = encode_params({"callbacks": [print], "random_state": np.random.RandomState(0), "n_knots": 3})
    assert found == {"n_knots": 3}


@pytest.mark.parametrize(
    "value",
    [None, True, 3, np.int64(3), 1.5, float("inf"), "x", (1, "a"), [None, (2,)], {1: "a", "b": [2.0]}],
    ids=repr,
)
def test_a_parameter_survives_with_its_type(value: Any) -> None:
    found = decode_params(encode_params({"n_knots": value}), {"n_knots": None})["n_knots"]
    assert found == value
    assert type(found) is type(value) or isinstance(value, np.generic)


def test_an_array_among_the_parameters_survives() -> None:
    value = np.array([1, 5, 9], dtype=np.int32)
    found = decode_params(encode_params({"validation": value}), {"validation": None})["validation"]
    np.testing.assert_array_equal(found, value)
    assert found.dtype == value.dtype


def test_classes_that_json_cannot_hold_are_an_error() -> None:
    with pytest.raises(UserError, match="text, numbers or booleans"):
        encode_classes(np.array([dt.time(1), dt.time(2)], dtype=object))


@pytest.mark.parametrize(
    "encoded", [None, {}, {"dtype": "U999999999", "values": [1]}, {"dtype": "V8", "values": ["a"]}]
)
def test_forged_classes_are_an_error(encoded: Any) -> None:
    with pytest.raises(FormatError):
        decode_classes(encoded, ("a", "b"))


def test_the_fingerprint_tells_data_apart(table: dict[str, Any], regressor: NAERegressor) -> None:
    other = NAERegressor(feature_types={"b": "category"}, **TINY).fit(table, table["a"] + 1)
    same = NAERegressor(feature_types={"b": "category"}, **TINY).fit(table, table["a"])
    assert same.model_.training.data_sha256 == regressor.model_.training.data_sha256
    assert other.model_.training.data_sha256 != regressor.model_.training.data_sha256


@pytest.mark.parametrize("unit", ["h", "ns"])
def test_classes_that_are_durations_come_back(unit: str, table: dict[str, Any], tmp_path: Path) -> None:
    model = NAEClassifier(**TINY).fit(table, np.array([1, 2], dtype=f"m8[{unit}]")[(table["a"] > 0.5).astype(int)])
    model.save(tmp_path / "m.nae")
    again = NAEClassifier.load(tmp_path / "m.nae")
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.predict(table), model.predict(table))


EXTREMES = {
    "numbers": {"X": np.where(np.arange(60) % 20 == 0, 4.4e307, np.arange(60.0))[:, None]},
    "targets": {"y": np.where(np.arange(60) % 20 == 0, 9e99, np.arange(60) * 1.0)},
    "weights": {"sample_weight": np.where(np.arange(60) % 20 == 0, 1e100, np.linspace(1, 2, 60))},
    "small weights": {"sample_weight": np.full(60, 1e-100)},
    "weights far apart": {"sample_weight": np.where(np.arange(60) % 2 == 0, 1e100, 1e-100)},
    "offsets": {"offset": np.where(np.arange(60) % 2 == 0, 1e100, -1e100)},
    "offset": {"offset": np.full(60, 1e100)},
}


@pytest.mark.parametrize("kind", [NAERegressor, NAEClassifier])
@pytest.mark.parametrize("case", EXTREMES)
def test_what_a_fit_accepts_can_be_saved_and_predicts_the_same_afterwards(case: str, kind: Any, tmp_path: Path) -> None:
    given = {"X": np.arange(60.0)[:, None], "y": np.arange(60) % 7.0} | EXTREMES[case]
    given["y"] = given["y"] > 3 if kind is NAEClassifier else given["y"]
    model = kind(**TINY).fit(given.pop("X"), given.pop("y"), **given)
    model.save(tmp_path / "m.nae")
    again = kind.load(tmp_path / "m.nae")
    X = np.linspace(-1, 60, 99)[:, None]
    np.testing.assert_array_equal(
        again.decision_function(X) if kind is NAEClassifier else again.predict(X),
        model.decision_function(X) if kind is NAEClassifier else model.predict(X),
    )
    assert np.isfinite(model.model_.decision_function(X)).all()


@pytest.mark.parametrize("size", [1e-100, 1e100])
def test_extreme_class_weights_can_be_saved(size: float, tmp_path: Path) -> None:
    X = np.arange(60.0)[:, None]
    for weight in (None, np.full(60, 1e100), np.full(60, 1e-100)):
        model = NAEClassifier(class_weight={1: size}, **TINY).fit(X, np.arange(60) % 2, sample_weight=weight)
        model.save(tmp_path / "m.nae")
        assert NAEClassifier.load(tmp_path / "m.nae").class_weight_.tolist() == [1.0, size]


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (
            {"sample_weight": np.full(60, 1e300)},
            r"must be 0, or lie in \[1e-100, 1e\+100\]; row 0 has 1e\+300\. Divide all",
        ),
        ({"sample_weight": np.full(60, 1.7e308)}, r"lie in \[1e-100, 1e\+100\]; row 0 has 1\.7e\+308"),
        ({"sample_weight": np.full(60, 5e-324)}, r"lie in \[1e-100, 1e\+100\]; row 0 has 4\.9"),
        (
            {"sample_weight": [1] * 59 + [10**400]},
            r"sample_weight must lie within ±1e\+100; row 59 holds a whole number",
        ),
        ({"sample_weight": np.ones(60) * 1j}, "sample_weight must hold real numbers"),
        ({"sample_weight": np.ones(60, dtype="m8[s]")}, "sample_weight must hold numbers; got dates or times"),
        ({"sample_weight": np.ma.array(np.ones(60), mask=np.arange(60) == 3)}, "must be finite .* row 3 has nan"),
        ({"offset": np.full(60, 1e101)}, r"offset must lie within ±1e\+100; row 0 does not"),
        ({"offset": [10**400] * 60}, r"offset must lie within ±1e\+100; row 0 holds a whole number"),
    ],
)
def test_what_stands_beside_a_table_is_refused_where_a_file_could_not_hold_the_model(given: Any, match: str) -> None:
    with pytest.raises(DataError, match=match):
        NAERegressor(**TINY).fit(np.arange(60.0)[:, None], np.arange(60.0), **given)


def test_a_model_whose_validation_loss_is_infinite_is_saved(tmp_path: Path) -> None:
    offset = np.array([-1.7e15, -1.3e15])
    settings = {"n_members": 1, "max_epochs": 2, "random_state": 0}
    estimator = NAERegressor("tweedie", **settings).fit([[0.0], [1.0]], [1e15, 6e14], offset=offset)
    estimator.save(tmp_path / "m.nae")
    assert nae.load(tmp_path / "m.nae").training.validation_loss is None
