import ast
from pathlib import Path

import pytest

import nae
from tests.architecture.draw import GROUPS, PAGE, needed, with_graph
from tests.architecture.layers import BASE, FORWARDING, GRAPH, READERS, TRAINERS, cycles, edges, reach, violations

LIBRARY = Path(nae.__file__).parent


def make_package(root: Path, files: dict[str, str]) -> Path:
    """Write a package called nae with the given files and return its folder."""
    package = root / "nae"
    for name, text in {"__init__.py": "", **files}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return package


def test_every_import_is_one_that_the_graph_allows() -> None:
    assert violations(LIBRARY) == []


def test_the_graph_allows_nothing_that_is_not_needed() -> None:
    assert {(part, target) for part, targets in GRAPH.items() for target in targets} == edges(LIBRARY)


def test_every_part_is_in_the_graph() -> None:
    files = [path for path in LIBRARY.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    assert {path.stem for path in files} - {"__init__"} == {*BASE, *GRAPH}


def test_no_part_reaches_itself() -> None:
    assert cycles(GRAPH) == []
    order = list(GRAPH)
    assert [(part, one) for part in GRAPH for one in GRAPH[part] if order.index(one) > order.index(part)] == []


def test_a_cycle_is_found() -> None:
    assert cycles({"a": ("b",), "b": ("c",), "c": ("a",), "d": ("a",)}) == [{"a", "b", "c"}]


@pytest.mark.parametrize("reader", READERS)
def test_what_reads_a_model_does_not_know_how_it_was_trained(reader: str) -> None:
    assert reach(GRAPH, reader) & set(TRAINERS) == set()


@pytest.mark.parametrize("file", FORWARDING)
def test_a_file_that_forwards_does_nothing_else(file: str) -> None:
    """It holds one class, and what it imports from higher parts is called at once or is a type."""
    tree = ast.parse((LIBRARY / file).read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    assert len(classes) == 1
    assert not any(isinstance(node, ast.FunctionDef) for node in tree.body)
    for method in (node for node in classes[0].body if isinstance(node, ast.FunctionDef)):
        assert isinstance(method.body[-1], ast.Return | ast.Expr), method.name
        assert not any(isinstance(node, ast.For | ast.While) for node in ast.walk(method)), method.name


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("tables/model.py", "from nae.training import train", "which GRAPH does not allow"),
        ("tables/model.py", "def f():\n    from nae.training import train", "which GRAPH does not allow"),
        ("encoding/frames.py", "import nae.tables.model", "which GRAPH does not allow"),
        ("links.py", "from nae import metrics", "which GRAPH does not allow"),
        ("tables/model.py", "import torch", "which only"),
        ("metrics.py", "def f():\n    import torch.nn", "which only"),
        ("training/loop.py", "import torch", "which only"),
        ("network/network.py", "def f():\n    import torch", "which only"),
        ("estimators/fitting.py", "import torch", "which only"),
        ("engines/place.py", "import torch", "which only ['engines/torch'] may"),
        ("engines/native/engine.py", "def f():\n    import torch", "which only ['engines/torch'] may"),
        ("explanation/shapes.py", "from sklearn.base import clone", "which only"),
        ("encoding/frames.py", "import pandas as pd", "which only"),
        ("tables/archive.py", "import pickle", "which only"),
        ("plots/shape.py", "from nae.estimators import NAERegressor", "which GRAPH does not allow"),
        ("tables/answers/explains.py", "from nae.explanation import explain_global", "which GRAPH does not allow"),
        ("tables/answers/explains.py", "def f():\n    from nae.plots import shape", "which GRAPH does not allow"),
        ("explanation/local.py", "def f():\n    from nae.interop import interpret", "which GRAPH does not allow"),
        ("_files.py", "from nae.links import LINKS", "may import only what stands before it in BASE"),
        (
            "tables/model.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from nae.training import History",
            "which GRAPH does not allow",
        ),
        ("helpers.py", "from nae.errors import NAEError", "name both parts in GRAPH"),
        ("tables/model.py", "from nae.helpers import f", "name both parts in GRAPH"),
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
            "tables/answers/explains.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from nae.explanation import LocalExplanation",
        ),
        ("explanation/interpret.py", "def f():\n    from nae.interop import interpret"),
        ("export/c.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas as pd"),
        ("engines/torch/network.py", "import torch\nfrom torch import nn"),
        ("estimators/base.py", "import sklearn\nfrom nae.metrics import additivity"),
    ],
)
def test_an_import_in_the_right_direction_is_not(tmp_path: Path, file: str, text: str) -> None:
    assert violations(make_package(tmp_path, {file: text})) == []


def test_the_page_shows_the_graph_as_it_is() -> None:
    page = PAGE.read_text()
    assert with_graph(page) == page, "Run: python -m tests.architecture.draw"


def test_every_part_is_drawn_once() -> None:
    assert sorted(part for parts in GROUPS.values() for part in parts) == sorted(GRAPH)


def test_an_arrow_that_follows_from_others_is_left_out() -> None:
    graph = {"a": (), "b": ("a",), "c": ("a", "b")}
    assert [needed(graph, part) for part in graph] == [[], ["a"], ["b"]]
