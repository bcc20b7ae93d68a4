"""Modes are values: what depends on an encoder, gate, routing, schedule or loss is asked of it, not of its name."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import nae
from nae.engines import ENGINES
from nae.engines.torch.encoders import EVALUATIONS
from nae.engines.torch.gates import TORCH_GATES
from nae.engines.torch.losses import loss_per_row
from nae.engines.torch.routing import TORCH_ROUTINGS
from nae.export import c_steps, onnx, sql_steps
from nae.network import ENCODERS, GATES
from nae.network.network import ROUTINGS
from nae.tables import kernel, listing
from nae.tables.lowered import STEPS
from nae.training import LOSSES, make_loss
from nae.training.schedule import SCHEDULES

NAMES = {*ENCODERS, *GATES, *ROUTINGS, *LOSSES, *ENGINES, *SCHEDULES}
PACKAGES = ("network", "training", "engines/torch", "tables", "explanation", "interop", "export", "report")
WEB = Path(__file__).parents[2] / "web" / "src"
EVALUATORS: dict[str, Any] = {
    "kernel": kernel.LAYOUTS,
    "c": c_steps.EMITTERS,
    "onnx": onnx.EMITTERS,
    "sql": sql_steps.EMITTERS,
    "json": listing.EMITTERS,
}
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
        and "link" not in ast.unparse(node)  # a link may be called softmax, too
        and any(isinstance(part, ast.Constant) and part.value in NAMES for part in ast.walk(node))
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_mode_is_asked_for_by_its_name(package: str) -> None:
    files = sorted((Path(nae.__file__).parent / package).rglob("*.py"))
    assert len(files) > 3
    found = {path.name: asked for path in files if (asked := comparisons(path.read_text()))}
    assert found == {}


def script_comparisons(source: str) -> list[str]:
    """Return the lines of TypeScript that compare with the name of a gate or of a routing."""
    names = "|".join((*GATES, *ROUTINGS))
    asked = re.compile(
        rf"""([!=]==?\s*["'`]({names})["'`])|(["'`]({names})["'`]\s*[!=]==?)|(case\s+["'`]({names})["'`])"""
    )
    return [line.strip() for line in source.splitlines() if asked.search(line) and "link" not in line]


def test_the_page_asks_for_no_gate_or_routing_by_its_name() -> None:
    files = sorted(WEB.glob("*.ts"))
    assert len(files) > 5
    assert {path.name: asked for path in files if (asked := script_comparisons(path.read_text(encoding="utf-8")))} == {}


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_an_evaluator_knows_every_step(evaluator: str) -> None:
    assert set(EVALUATORS[evaluator]) == set(STEPS)


def test_torch_knows_every_mode() -> None:
    assert set(TORCH_GATES) == set(GATES)
    assert set(TORCH_ROUTINGS) == set(ROUTINGS)
    assert set(EVALUATIONS) == set(ENCODERS)
    assert all(callable(loss_per_row(make_loss(name))) for name in LOSSES)


@pytest.mark.parametrize(
    "source", ['if config.encoder == "mlp":\n    pass', 'x = gate in ("low-rank", "deep")', 'y = "cosine" != schedule']
)
def test_a_question_for_a_name_is_found(source: str) -> None:
    assert len(comparisons(source)) == 1


@pytest.mark.parametrize(
    "source", ['if (payload.gate === "deep") {', "const x = 'equal' == routing;", 'case "diagonal":']
)
def test_a_question_for_a_name_is_found_in_a_script(source: str) -> None:
    assert len(script_comparisons(source)) == 1


@pytest.mark.parametrize("source", ["payload.link !== 'softmax'", 'class: "diagonal"', 'kind: "deep"'])
def test_what_is_no_question_for_a_name_is_not_found_in_a_script(source: str) -> None:
    assert script_comparisons(source) == []
