"""Estimators learn, save, stream and search where torch cannot be imported, if the native core is there."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nae.native import is_here, reason

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""
FIT = """
import importlib.util, json
import numpy as np
import nae

real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name.partition(".")[0] == "torch" else real(name, *rest)
random = np.random.default_rng(0)
X = random.normal(size=(700, 3))
y = X[:, 0] * np.sign(X[:, 1])
fast = dict(n_members=2, max_epochs=30, random_state=0)
"""


def outcome(script: str, *, blocked: tuple[str, ...] = ("torch",)) -> subprocess.CompletedProcess[str]:
    code = BLOCK.format(blocked=blocked) + FIT + script
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)


def told(script: str) -> dict[str, object]:
    """Return what a script prints as JSON."""
    done = outcome(script)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_package_is_blocked() -> None:
    assert "ModuleNotFoundError: No module named 'torch'" in outcome("import torch").stderr


@pytest.mark.skipif(not is_here(), reason=reason())
def test_tables_of_every_size_are_learned_and_saved(tmp_path: Path) -> None:
    found = told(f"""
models = [nae.NAERegressor(**fast).fit(X[:n], y[:n]) for n in (100, 700)]
models += [nae.NAEClassifier(**fast).fit(X[:n], y[:n] > 0) for n in (100, 700)]
models += [nae.NAERegressor(additivity=0.5, **fast).fit(X, y), nae.NAERegressor("poisson", **fast).fit(X, np.abs(y))]
models[1].save({str(tmp_path / "m.nae")!r})
again = nae.load({str(tmp_path / "m.nae")!r})
assert np.array_equal(again.predict(X), models[1].model_.predict(X))
print(json.dumps({{
    "engines": [model.model_.training.engine for model in models],
    "devices": [model.model_.training.device for model in models],
    "score": models[1].score(X, y),
    "effects": models[1].explain_global().feature_names,
    "has_torch": "torch" in sys.modules,
}}))
""")
    assert found["engines"] == ["native"] * 6
    assert found["devices"] == ["cpu"] * 6
    assert found["score"] > 0.5  # type: ignore[operator]
    assert found["effects"] == ["x0", "x1", "x2"]
    assert not found["has_torch"]


@pytest.mark.skipif(not is_here(), reason=reason())
def test_a_scan_is_learned(tmp_path: Path) -> None:
    found = told(f"""
import pyarrow as pa, pyarrow.parquet
table = pa.table({{"a": X[:, 0], "b": X[:, 1], "y": y}})
pa.parquet.write_table(table, {str(tmp_path / "rows.parquet")!r})
model = nae.NAERegressor(batch_size=64, **fast).fit(nae.scan({str(tmp_path / "rows.parquet")!r}, block_rows=200), y="y")
print(json.dumps({{"engine": model.model_.training.engine, "rows": model.model_.training.n_rows}}))
""")
    assert found == {"engine": "native", "rows": 700}


def test_what_needs_torch_says_how_to_get_it() -> None:
    refused = {
        "engine='torch'": "torch is needed for this and cannot be imported",
        "device='cuda'": "torch is needed for this and cannot be imported",
        "encoder='mlp'": "Training needs the native core or torch; ",
    }
    found = told(f"""
def said(words):
    try:
        eval(f"nae.NAERegressor({{words}}, **fast)").fit(X, y)
    except nae.errors.MissingDependencyError as error:
        return str(error)
print(json.dumps({{words: said(words) for words in {list(refused)!r}}}))
""")
    for words, complaint in refused.items():
        assert complaint in found[words]
        assert "pip install 'neural-additive-experts[gpu]'" in found[words]
