"""The README's Python blocks run, in order, and say what they claim."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nae

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]+)\)")
PAGES = sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md"))


def python_blocks(text: str) -> list[str]:
    """Return the Python blocks of a Markdown text."""
    return BLOCK.findall(text)


def run_blocks(text: str) -> dict[str, Any]:
    """Run the Python blocks of a Markdown text in one namespace and return it."""
    names: dict[str, Any] = {}
    for block in python_blocks(text):
        exec(compile(block, "README.md", "exec"), names)  # noqa: S102
    return names


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("readme"))
        names = run_blocks((ROOT / "README.md").read_text())
        names["saved"] = nae.load("model.nae")
    return names


@pytest.mark.slow
def test_the_example_predicts_by_adding_contributions(names: dict[str, Any]) -> None:
    np.testing.assert_allclose(names["total"], names["model"].predict(names["X"]))


@pytest.mark.slow
def test_the_example_stays_inside_its_bounds(names: dict[str, Any]) -> None:
    assert names["inside"].all()


@pytest.mark.slow
def test_the_additive_example_has_no_room_between_its_bounds(names: dict[str, Any]) -> None:
    found = names["additive"].contributions(names["X"])
    np.testing.assert_array_equal(found.lower, found.upper)


@pytest.mark.slow
def test_the_example_keeps_its_promises(names: dict[str, Any]) -> None:
    found = names["kept"].certify()
    assert len(found.certificates) == 2
    assert found.all_proven


@pytest.mark.slow
def test_the_saved_example_predicts_what_the_model_does(names: dict[str, Any]) -> None:
    np.testing.assert_array_equal(names["saved"].predict(names["X"]), names["model"].predict(names["X"]))


def test_a_block_that_fails_is_noticed() -> None:
    with pytest.raises(ZeroDivisionError):
        run_blocks("text\n```python\n1 / 0\n```\n")


def test_the_usage_example_is_ten_lines() -> None:
    assert python_blocks((ROOT / "README.md").read_text())[0].count("\n") <= 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_to_a_file_finds_it(page: Path) -> None:
    targets = LINK.findall(page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []
