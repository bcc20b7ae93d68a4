from pathlib import Path

import pytest

import nae
from tests.architecture.layers import violations


def make_package(root: Path, files: dict[str, str]) -> Path:
    """Write a package called nae with the given files and return its folder."""
    package = root / "nae"
    for name, text in {"__init__.py": "", **files}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return package


def test_imports_go_in_one_direction() -> None:
    assert violations(Path(nae.__file__).parent) == []


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("tables/model.py", "from nae.training import train", "which stands further down"),
        ("tables/model.py", "def f():\n    from nae.training import train", "which stands further down"),
        ("encoding/frames.py", "import nae.tables.model", "which stands further down"),
        ("links.py", "from nae import metrics", "which stands further down"),
        ("explanation/local.py", "from nae.interop import shap", "which stands further down"),
        ("tables/model.py", "import torch", "which only"),
        ("metrics.py", "def f():\n    import torch.nn", "which only"),
        ("explanation/shapes.py", "from sklearn.base import clone", "which only"),
        ("encoding/frames.py", "import pandas as pd", "which only"),
        ("tables/archive.py", "import pickle", "which only"),
        ("plots/shape.py", "from nae.estimators import NAERegressor", "must not know how it was trained"),
        ("helpers.py", "from nae.errors import NAEError", "name both parts in ORDER"),
        ("tables/model.py", "from nae.helpers import f", "name both parts in ORDER"),
    ],
)
def test_an_import_in_the_wrong_direction_is_found(tmp_path: Path, file: str, text: str, complaint: str) -> None:
    found = violations(make_package(tmp_path, {file: text}))
    assert len(found) == 1
    assert f"nae/{file}:" in found[0]
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("__init__.py", "from nae.estimators import NAERegressor"),
        (
            "tables/model.py",
            "import numpy as np\nfrom nae.encoding.cells import Cells\nfrom nae.tables.gates import GATES",
        ),
        ("tables/archive.py", "def f():\n    from nae import __version__"),
        (
            "tables/model.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from nae.training import History",
        ),
        ("explanation/local.py", "def f():\n    from nae.interop import shap"),
        ("estimators/base.py", "import torch\nimport sklearn\nfrom nae.metrics import additivity"),
    ],
)
def test_an_import_in_the_right_direction_is_not(tmp_path: Path, file: str, text: str) -> None:
    assert violations(make_package(tmp_path, {file: text})) == []
