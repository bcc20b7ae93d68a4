"""The library where torch cannot be imported, and where scikit-learn cannot either."""

import subprocess
import sys

import numpy as np
import pytest

import nae
from nae.native import is_here

# The packages are not found, as if they were not installed; None in sys.modules would break scipy.
BLOCK = """
import sys
from importlib.machinery import PathFinder

found = PathFinder.find_spec
PathFinder.find_spec = lambda name, *place: None if name.partition(".")[0] in {blocked!r} else found(name, *place)
"""
TRAIN = """
import numpy as np
import nae

random = np.random.default_rng(0)
X = {"a": random.normal(size=200), "b": random.choice(["x", "y"], 200)}
y = X["a"] * np.where(X["b"] == "x", 1.0, -1.0)
for model, target in ((nae.NAERegressor, y), (nae.NAEClassifier, np.where(y > 0, "up", "down"))):
    fitted = model(n_members=2, max_epochs=3, random_state=0).fit(X, target)
    fitted.save(sys.argv[1])
    loaded = nae.load(sys.argv[1])
    assert (loaded.predict(X) == fitted.predict(X)).all()
    assert {shape.name for shape in loaded.explain_global().features} == {"a", "b"}
    assert len(fitted.explain_local(X, target)) == 200
assert "torch" not in sys.modules
"""
PREDICT = """
import nae

loaded = nae.load(sys.argv[1])
print(*loaded.predict({"x1": [0.2, 0.4], "x2": [1.0, -1.0]}))
loaded.explain_global()
assert not {"torch", "sklearn"} & set(sys.modules)
"""


def run(*code: str, blocked: tuple[str, ...], path: object) -> subprocess.CompletedProcess[str]:
    """Run code where packages are missing."""
    script = "\n".join([BLOCK.format(blocked=blocked), *code])
    command = [sys.executable, "-W", "error", "-c", script, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not is_here(), reason="the native core is not built")
def test_models_are_fitted_saved_loaded_and_explained_without_torch(tmp_path) -> None:
    done = run(TRAIN, blocked=("torch",), path=tmp_path / "model.nae")
    assert done.returncode == 0, done.stderr


def test_a_saved_model_needs_neither_torch_nor_sklearn(tmp_path) -> None:
    X, y = nae.datasets.multimodal(100)
    model = nae.NAERegressor(n_members=1, max_epochs=2, random_state=0).fit(X, y)
    model.save(tmp_path / "model.nae")
    done = run(PREDICT, blocked=("torch", "sklearn"), path=tmp_path / "model.nae")
    assert done.returncode == 0, done.stderr
    expected = model.predict({"x1": np.array([0.2, 0.4]), "x2": np.array([1.0, -1.0])})
    assert [float(number) for number in done.stdout.split()] == expected.tolist()


def test_the_block_is_noticed(tmp_path) -> None:
    done = run("import torch", blocked=("torch",), path=tmp_path)
    assert "No module named 'torch'" in done.stderr


def test_without_torch_and_the_core_one_sentence_says_what_is_missing(tmp_path) -> None:
    code = f"from nae.native import library; library.PATH = library.PATH.parent / 'none.so'\n{TRAIN}"
    done = run(code, blocked=("torch",), path=tmp_path / "model.nae")
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("nae.errors.MissingDependencyError: Training needs the native core or torch")
    assert "the native core is not built; `python -m nae.native.build` builds it" in last
    assert "pip install 'neural-additive-experts[gpu]'" in last


def test_without_sklearn_an_estimator_gives_the_pip_line(tmp_path) -> None:
    done = run("import nae; nae.NAERegressor", blocked=("sklearn",), path=tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert "sklearn is needed for this and cannot be imported" in last
    assert last.endswith("pip install 'neural-additive-experts[train]'")
