"""An exported ONNX file beyond its answers (tests/agreement): what it is called and carries."""

from typing import Any

import numpy as np
import pytest

from nae.errors import UserError
from nae.export import to_onnx, write_onnx
from tests.agreement.catalogue import find

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime runs the exported model")


def test_every_feature_is_an_input_and_the_names_travel(tmp_path: Any) -> None:
    model = find("certainly yes, float64").model
    write_onnx(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    assert tuple(one.name for one in session.get_inputs()) == model.feature_names
    assert session.get_modelmeta().custom_metadata_map["classes"] == '["no", "yes"]'


def test_another_text_can_stand_for_missing() -> None:
    model = find("a level called as missing in ONNX, float64").model
    session = onnxruntime.InferenceSession(to_onnx(model, missing="?"), providers=["CPUExecutionProvider"])
    numbers = {name: np.zeros((2, 1)) for name in model.feature_names}
    texts = {"odd": np.array([["?"], ["<missing>"]], dtype=object), "kind": np.array([["oak"], ["oak"]], dtype=object)}
    found = session.run(["scores"], {**numbers, **texts})[0]
    expected = model.decision_function({"odd": [None, "<missing>"], "plain": [0.0, 0.0], "kind": ["oak", "oak"]})
    np.testing.assert_allclose(found[:, 0], expected, rtol=0, atol=1e-12)


def test_only_models_can_be_exported() -> None:
    with pytest.raises(UserError, match="got int"):
        to_onnx(3)
