"""JSON holds the header and arrays of a model file."""

import json
from typing import Any

import numpy as np

from nae.export import to_json, write_json
from tests.agreement.catalogue import find


def test_the_arrays_are_those_of_the_model(tmp_path: Any) -> None:
    model = find("five members, float32").model
    write_json(model, tmp_path / "m.json")
    found = json.loads((tmp_path / "m.json").read_text())
    assert found == to_json(model)
    np.testing.assert_array_equal(np.array(found["arrays"]["experts"], dtype=np.float32), model.experts)
    np.testing.assert_array_equal(np.array(found["arrays"]["gate.mix"], dtype=np.float32), model.gate.mix)
    assert [feature["name"] for feature in found["schema"]["features"]] == list(model.feature_names)
