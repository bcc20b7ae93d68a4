"""A saved model predicts and explains where torch, scikit-learn, pandas and narwhals cannot be imported."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nae.tables import TableModel, load
from tests.golden.make_format_1 import FOLDER, ROWS

BLOCKED = ("torch", "sklearn", "scipy", "pandas", "polars", "pyarrow", "narwhals", "numba", "onnx")
SCRIPT = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None  # importing it is an ImportError
import json
import nae
import numpy as np

model = nae.load({path!r})
rows = {rows!r}
names = list(rows)
records = [dict(zip(names, values)) for values in zip(*rows.values())]
array = np.array([list(values) for values in zip(*rows.values())], dtype=object)
print(json.dumps({{
    "columns": model.predict_proba(rows).tolist(),
    "records": model.predict_proba(records).tolist(),
    "array": model.predict_proba(array).tolist(),
    "one": model.predict_proba(records[0]).tolist(),
    "lists": model.predict_proba(array.tolist()).tolist(),
    "bounds": model.contributions(rows).lower.tolist(),
    "global": model.explain_global().feature_names,
    "local": len(model.explain_local(rows)),
    "pair": len(model.explain_interaction("size", "kind").to_json()),
    "label": model.predict(records[0]).tolist(),
}}))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, object]:
    script = SCRIPT.format(blocked=BLOCKED, path=str(FOLDER / "format_1.nae"), rows=ROWS)
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def model() -> TableModel:
    return load(FOLDER / "format_1.nae")


@pytest.mark.parametrize("way", ["columns", "records", "array", "lists"])
def test_every_plain_table_is_predicted(way: str, found: dict[str, object], model: TableModel) -> None:
    np.testing.assert_allclose(found[way], model.predict_proba(ROWS), atol=1e-6)


def test_one_record_is_a_row(found: dict[str, object], model: TableModel) -> None:
    np.testing.assert_allclose(found["one"], model.predict_proba(ROWS)[:1], atol=1e-6)
    assert found["label"] == model.predict(ROWS)[:1].tolist()


def test_it_bounds_and_explains(found: dict[str, object], model: TableModel) -> None:
    np.testing.assert_allclose(found["bounds"], model.contributions(ROWS).lower, atol=1e-6)
    assert found["global"] == ["size", "is_new", "kind"]
    assert found["local"] == 6


def test_frames_are_predicted_where_they_are_installed(model: TableModel) -> None:
    expected = model.predict_proba(ROWS)
    for package in ("pandas", "polars"):
        frames = pytest.importorskip(package)
        np.testing.assert_allclose(model.predict_proba(frames.DataFrame(ROWS)), expected, atol=1e-6)


def test_blocking_is_noticed(tmp_path: Path) -> None:
    script = "import sys; sys.modules['sklearn'] = None; import nae; nae.NAERegressor"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "MissingDependencyError" in done.stderr
