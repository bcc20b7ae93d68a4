"""An estimator from a file is the estimator that was saved."""

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nae
from nae import NAEClassifier, NAERegressor
from nae.errors import FormatError, NAEWarning, UserError
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
    [np.array([3, 7], dtype=np.int16), np.array([False, True]), np.array(["no", "yes"]), np.array([1.0, 2.0])],
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
    with pytest.raises(FormatError, match=r"a model alone\. Use nae\.load"):
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
