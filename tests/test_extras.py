"""The extras that errors and pages name are those of pyproject.toml, and they bring what is asked for."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
DISTRIBUTIONS = {"sklearn": "scikit-learn", "mlflow": "mlflow-skinny", "xgboost": "xgboost-cpu"}
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")])


def brings(extra: str) -> set[str]:
    """Return the packages of an extra."""
    return {re.split(r"[\[><=;\s]", line, maxsplit=1)[0] for line in EXTRAS[extra]}


def required(text: str) -> Iterator[tuple[str, str]]:
    """Yield the package and the extra of every call ``require(package, extra=extra)``."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "require" and node.keywords:
            module, extra = node.args[0], node.keywords[0].value
            if isinstance(module, ast.Constant) and isinstance(extra, ast.Constant):
                yield str(module.value).partition(".")[0], str(extra.value)


def named(text: str) -> set[str]:
    """Return the extras that a page tells its readers to install."""
    found = re.findall(r"neural-additive-experts\[([a-z,]+)\]", text)
    return {extra for extras in found for extra in extras.split(",")}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_extra_exists_and_brings_the_package(path: Path) -> None:
    text = path.read_text()
    assert named(text) <= set(EXTRAS)
    if path.suffix == ".py":
        wrong = {(p, extra) for p, extra in required(text) if DISTRIBUTIONS.get(p, p) not in brings(extra)}
        assert wrong == set()


def test_the_readme_lists_every_extra() -> None:
    section = (ROOT / "README.md").read_text().partition("## Install")[2].partition("\n## ")[0]
    assert set(EXTRAS) <= set(re.findall(r"`([a-z]+)`", section))


def test_training_brings_no_torch() -> None:
    assert brings("train") == {"scikit-learn", "threadpoolctl", "rich"}
    assert brings("gpu") == {"torch"}


def test_what_is_wrong_is_found() -> None:
    assert named("pip install 'neural-additive-experts[train,nothing]'") == {"train", "nothing"}
    assert list(required('require("torch.nn", extra="train")')) == [("torch", "train")]
    assert "torch" not in brings("train")
