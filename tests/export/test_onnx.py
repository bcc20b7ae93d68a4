"""ONNX gives the model's own answers, in onnxruntime."""

from typing import Any

import numpy as np
import pytest

from nae.encoding import Category, Columns, Schema
from nae.errors import UserError
from nae.export import MISSING_TOKEN, to_onnx, write_onnx
from nae.tables import TableModel
from tests.export.agreement import CASES, Answer, assert_answers, case, expected_answer, plain_columns
from tests.laws.models import make_model

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime runs the exported model")


def answer_of(session: Any, columns: dict[str, list[Any]]) -> Answer:
    """Run an ONNX session on columns."""
    feed = {}
    for one in session.get_inputs():
        values = columns[one.name]
        if one.type == "tensor(string)":
            texts = [MISSING_TOKEN if value is None else value for value in values]
            feed[one.name] = np.array(texts, dtype=object)[:, None]
        else:
            feed[one.name] = np.array(values, dtype=np.float64)[:, None]
    names = [one.name for one in session.get_outputs()]
    found = dict(zip(names, session.run(None, feed), strict=True))
    prediction = found["probabilities"] if "probabilities" in found else found["predictions"]
    return Answer(found["scores"], prediction, found["contributions"], found["lower"], found["upper"])


def session_of(model: Any) -> Any:
    return onnxruntime.InferenceSession(to_onnx(model), providers=["CPUExecutionProvider"])


def assert_same_in_onnx(model: TableModel, table: Columns) -> None:
    assert_answers(answer_of(session_of(model), plain_columns(model, table)), expected_answer(model, table))


@pytest.mark.parametrize("shape", CASES)
def test_onnx_answers_as_the_model_does(shape: dict[str, Any]) -> None:
    assert_same_in_onnx(*case(shape))


def test_a_model_in_double_precision_is_exported_in_double_precision() -> None:
    random = np.random.default_rng(3)
    model = make_model(random, n_features=6, gate="low-rank", dtype=np.float64)
    from tests.laws.models import make_table

    table = make_table(random, model.schema, 20)
    found = answer_of(session_of(model), plain_columns(model, table))
    assert_answers(found, expected_answer(model, table), within=1e-12)


def test_a_difference_is_noticed() -> None:
    model, table = case({"gate": "additive"})
    other, _ = case({"gate": "additive"}, seed=1)
    found = expected_answer(model, table)
    with pytest.raises(AssertionError, match="contribution differs"):
        assert_answers(
            Answer(found.score, found.prediction, found.contribution + 1e-4, found.lower, found.upper), found
        )
    assert other.n_features == model.n_features


def test_every_feature_is_an_input_and_the_names_travel(tmp_path: Any) -> None:
    model, _ = case({"gate": "additive"})
    write_onnx(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    assert tuple(one.name for one in session.get_inputs()) == model.feature_names
    assert session.get_modelmeta().custom_metadata_map["classes"] == '["no", "yes"]'


def test_a_level_called_like_the_token_is_an_error() -> None:
    model, _ = case({"gate": "additive"})
    features = list(model.schema.features)
    i = next(i for i, feature in enumerate(features) if isinstance(feature, Category))
    levels = (MISSING_TOKEN, *features[i].levels[1:])
    features[i] = Category(features[i].name, levels, features[i].rare)
    from dataclasses import replace

    with pytest.raises(UserError, match="pass another text as missing="):
        to_onnx(replace(model, schema=Schema(tuple(features))))


def test_only_models_can_be_exported() -> None:
    with pytest.raises(UserError, match="got int"):
        to_onnx(3)
