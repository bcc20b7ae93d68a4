"""Modes are values: what depends on an encoder, gate, routing, schedule or loss is asked of it, not of its name."""

import ast
from pathlib import Path

import pytest

import nae
from nae.network import ENCODERS
from nae.network.gates import GATES
from nae.network.routing import ROUTINGS
from nae.training import LOSSES
from nae.training.engine import ENGINES
from nae.training.schedule import SCHEDULES

NAMES = {*ENCODERS, *GATES, *ROUTINGS, *LOSSES, *ENGINES, *SCHEDULES}
PACKAGES = ("network", "training")
MAKERS = {"make_loss"}  # checks the parameter that belongs to a loss


def comparisons(source: str) -> list[str]:
    """Return the comparisons with the name of a mode, outside the functions that make modes from names."""
    tree = ast.parse(source)
    made = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in MAKERS]
    skipped = {id(node) for maker in made for node in ast.walk(maker)}
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        and id(node) not in skipped
        and any(isinstance(part, ast.Constant) and part.value in NAMES for part in ast.walk(node))
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_mode_is_asked_for_by_its_name(package: str) -> None:
    files = sorted((Path(nae.__file__).parent / package).rglob("*.py"))
    assert len(files) > 5
    found = {path.name: asked for path in files if (asked := comparisons(path.read_text()))}
    assert found == {}


@pytest.mark.parametrize(
    "source", ['if config.encoder == "mlp":\n    pass', 'x = gate in ("low-rank", "deep")', 'y = "cosine" != schedule']
)
def test_a_question_for_a_name_is_found(source: str) -> None:
    assert len(comparisons(source)) == 1
