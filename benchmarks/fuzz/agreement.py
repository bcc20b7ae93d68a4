"""Random models and rows: every evaluator of a model must give the same results as numpy."""

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fuzz.models import random_model
from benchmarks.fuzz.targets import Attempt, Violation, draw, shown
from nae._typing import AnyArray
from nae.encoding import Category, Schema
from nae.errors import UserError
from nae.tables import TableModel
from nae.tables.archive import pack
from tests.agreement.catalogue import LEVELS, NAMES, Case
from tests.agreement.evaluators import EVALUATORS, WITHIN, Evaluator, Room, assert_agrees, expected_answer
from tests.laws.models import make_table

__all__ = ["prepare"]

_LEFT_OUT = ("page",)  # needs a browser
_RARE = ("c", "numba")  # compilers take a hundred times as long as all other evaluators


def prepare(folder: Path, _: ExitStack) -> Attempt:
    """Return the attempt: one evaluator, one model and some rows."""
    usable = [one for one in EVALUATORS if one.name not in _LEFT_OUT and _is_there(one)]
    rooms = count()
    often = [one for one in usable if one.name not in _RARE]

    def attempt(random: np.random.Generator) -> str:
        evaluator = draw(usable if random.integers(4) == 0 else often, random)
        case = _case(random, takes_offset=evaluator.takes_offset)
        place = folder / f"room-{next(rooms)}"  # a library cannot be loaded twice from one path
        place.mkdir()
        try:
            with shown(pack(case.model), ending="nae"):
                return _check(evaluator, case, Room(place, _no_page))
        finally:
            shutil.rmtree(place)

    return attempt


def _check(evaluator: Evaluator, case: Case, room: Room) -> str:
    expected = expected_answer(case)
    try:
        found = evaluator.answer(case, room)
    except UserError as error:
        if not str(error).strip():
            raise Violation("the complaint says nothing") from error
        return f"{evaluator.name}, refused"
    assert_agrees(found, expected, within=_within(case.model))
    return f"{evaluator.name}, agrees"


def _within(model: TableModel) -> float:
    """Return how far evaluators may differ. Logits are rounded in proportion to their size, and routings with them."""
    return WITHIN[model.experts.dtype] * max(1.0, float(np.abs(model.gate.terms).max(initial=0.0)))


def _case(random: np.random.Generator, *, takes_offset: bool) -> Case:
    model = _renamed(random_model(random), random)
    n_rows = int(draw((1, 2, 7, 30, 80), random))
    columns = make_table(random, model.schema, n_rows)
    table: dict[str, AnyArray] = dict(zip(model.feature_names, columns.arrays, strict=True))
    offset = random.standard_normal((n_rows, 1)) if takes_offset and random.integers(3) == 0 else None
    return Case("random", model, table, offset)


def _renamed(model: TableModel, random: np.random.Generator) -> TableModel:
    """Return the model, in some attempts with unusual names of features and levels."""
    features = list(model.schema.features)
    for i, feature in enumerate(features):
        change: dict[str, Any] = {}
        if random.integers(4) == 0:
            change["name"] = f"{draw(NAMES, random)}{i}"
        if isinstance(feature, Category) and random.integers(3) == 0:
            change["levels"] = _some(LEVELS, len(feature.levels), random)
        features[i] = replace(feature, **change)
    return replace(model, schema=Schema(tuple(features)))


def _some(options: Sequence[str], n: int, random: np.random.Generator) -> tuple[str, ...]:
    return tuple(options[i] for i in random.choice(len(options), n, replace=False))


def _is_there(evaluator: Evaluator) -> bool:
    import importlib.util

    needed = {"onnx": "onnxruntime", "sql": "duckdb", "numba": "numba"}.get(evaluator.name)
    if evaluator.name == "c":
        return shutil.which("gcc") is not None
    return needed is None or importlib.util.find_spec(needed) is not None


def _no_page() -> Any:
    raise AssertionError("no evaluator here needs a page")
