"""The wheel, installed alone: a saved model predicts and explains where nothing else is."""

import json
import re
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import numpy as np
import pytest

import nae
from nae import NAEClassifier
from nae.native import build, library
from tests.packaging.commands import run

pytestmark = pytest.mark.slow
needs_compiler = pytest.mark.skipif(build.compiler() is None, reason="there is no C++ compiler")

PREDICT = """
import importlib.util, json, sys
import numpy as np
import nae

model = nae.load(sys.argv[1])
rows = np.array(json.loads(sys.argv[2]))
table = {"left": rows[:, 0], "right": rows[:, 1]}
found = model.contributions(table)
print(json.dumps({
    "from_dict": model.predict_proba(table).tolist(),
    "from_array": model.predict_proba(rows).tolist(),
    "classes": model.predict(rows).tolist(),
    "score": found.score.tolist(),
    "additivity": float(nae.metrics.additivity(model, table)),
    "absent": [name for name in ("torch", "sklearn", "pandas", "rich") if importlib.util.find_spec(name) is None],
    "version": nae.__version__,
}))
"""


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.random.default_rng(0).uniform(size=(100, 2))


@pytest.fixture(scope="module")
def model(rows: np.ndarray) -> NAEClassifier:
    table = {"left": rows[:, 0], "right": rows[:, 1]}
    labels = np.where(rows[:, 0] > rows[:, 1], "yes", "no")
    return NAEClassifier(n_members=1, max_epochs=5, random_state=0).fit(table, labels)


def test_the_wheel_holds_the_package_and_its_licence_alone(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {"nae", f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"}
    assert "nae/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = Parser().parsestr(archive.read(name).decode())
    assert metadata["Name"] == "neural-additive-experts"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    extras = {"train", "gpu", "plots", "plotly", "cli", "serve", "export", "tune", "scale", "bench", "all"}
    assert set(metadata.get_all("Provides-Extra")) >= extras
    base = {line.split(">")[0] for line in metadata.get_all("Requires-Dist") if "extra ==" not in line}
    assert base == {"numpy", "safetensors", "narwhals"}
    training = {line.split(">")[0] for line in metadata.get_all("Requires-Dist") if "extra == 'train'" in line}
    assert training == {"scikit-learn", "threadpoolctl", "rich"}


@needs_compiler
def test_the_wheel_holds_the_core_and_is_for_any_python_of_its_platform(wheel: Path) -> None:
    assert f"nae/native/{library.PATH.name}" in zipfile.ZipFile(wheel).namelist()
    _, _, python, abi, platform = wheel.stem.split("-")
    assert (python, abi) == ("py3", "none")
    if sys.platform == "linux":
        assert re.search(r"(many|musl)linux_\d+_\d+_", platform)


@needs_compiler
@pytest.mark.skipif(sys.platform != "linux", reason="auditwheel reads Linux libraries")
def test_the_core_asks_for_the_c_library_alone(wheel: Path) -> None:
    said = run(sys.executable, "-m", "auditwheel", "show", wheel).stdout
    assert set(re.findall(r"(\S+)\.so[.\d]* with", said)) <= {"libc", "libm", "libpthread"}
    assert not any(name.partition("/")[0].endswith(".libs") for name in zipfile.ZipFile(wheel).namelist())


@needs_compiler
def test_the_core_can_be_loaded_where_nothing_else_is(base: Path) -> None:
    code = "from nae.native import reason, best_instructions; print(reason() or best_instructions())"
    assert run(base, "-I", "-c", code).stdout.strip() in library.INSTRUCTIONS[1:]


def test_a_saved_model_predicts_and_explains_where_nothing_else_is(
    base: Path, model: NAEClassifier, rows: np.ndarray, tmp_path: Path
) -> None:
    path = tmp_path / "model.nae"
    model.save(path)
    found = json.loads(run(base, "-I", "-c", PREDICT, path, json.dumps(rows[:5].tolist())).stdout)
    assert found["absent"] == ["torch", "sklearn", "pandas", "rich"]
    table = {"left": rows[:5, 0], "right": rows[:5, 1]}
    expected = model.predict_proba(table)
    np.testing.assert_array_equal(found["from_dict"], expected)
    np.testing.assert_array_equal(found["from_array"], expected)
    assert found["classes"] == model.predict(table).tolist()
    np.testing.assert_array_equal(found["score"], model.decision_function(table))
    assert 0 <= found["additivity"] <= 1
    assert found["version"] == nae.__version__


@pytest.mark.parametrize("name", ["NAERegressor", "NAEClassifier"])
def test_an_estimator_without_sklearn_gives_the_pip_line(base: Path, name: str) -> None:
    code = f"try:\n    from nae import {name}\nexcept ImportError as error:\n    print(error)"
    said = run(base, "-I", "-c", code).stdout
    assert said.startswith("sklearn is needed for this and cannot be imported")
    assert said.strip().endswith("pip install 'neural-additive-experts[train]'")
