"""C gives the model's own answers, compiled with every warning an error."""

import ctypes
import math
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nae.encoding import Category, Columns, Number, Schema
from nae.errors import UserError
from nae.export import to_c, write_c
from nae.tables import TableModel
from tests.export.agreement import CASES, Answer, assert_answers, case, expected_answer, plain_columns

FLAGS = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1"]
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc compiles the exported source")


def answer_of(model: TableModel, columns: dict[str, list[Any]], folder: Path) -> Answer:
    """Compile the exported source into a library and call it row by row."""
    _, source = write_c(model, folder, name="m")
    library = folder / "m.so"
    subprocess.run(["gcc", *FLAGS, "-shared", "-fPIC", str(source), "-o", str(library), "-lm"], check=True)
    field_names = to_c(model, "m").fields
    width = len(model.classes) or model.n_outputs
    per_feature = ctypes.c_double * model.n_outputs * model.n_features

    class Row(ctypes.Structure):
        _fields_ = [
            (field, ctypes.c_double if isinstance(feature, Number) else ctypes.c_char_p)
            for field, feature in zip(field_names, model.schema.features, strict=True)
        ]

    class Result(ctypes.Structure):
        _fields_ = [
            ("score", ctypes.c_double * model.n_outputs),
            ("prediction", ctypes.c_double * width),
            ("contribution", per_feature),
            ("lower", per_feature),
            ("upper", per_feature),
        ]

    predict = ctypes.CDLL(str(library)).m_predict
    results = []
    for values in zip(*columns.values(), strict=True):
        texts = [value.encode() if isinstance(value, str) else value for value in values]
        result = Result()
        predict(ctypes.byref(Row(*texts)), ctypes.byref(result))
        results.append(result)
    names = ("score", "prediction", "contribution", "lower", "upper")
    return Answer(*(np.array([np.array(getattr(result, name)) for result in results]) for name in names))


def assert_same_in_c(model: TableModel, table: Columns, folder: Path) -> None:
    assert_answers(answer_of(model, plain_columns(model, table), folder), expected_answer(model, table))


@needs_gcc
@pytest.mark.parametrize("shape", CASES)
def test_c_answers_as_the_model_does(shape: dict[str, Any], tmp_path: Path) -> None:
    assert_same_in_c(*case(shape), tmp_path)


@needs_gcc
def test_odd_names_and_levels_compile_and_are_told_apart(tmp_path: Path) -> None:
    levels = ('say "hi"\\', "müde??/", "*/ #define", "\n", "%d")
    features = (
        Number("int", np.array([0.0, 1.0])),
        Number("9 lives", np.array([0.0, 1.0])),
        Category("int ", levels),
        Number("", np.array([0.0])),
    )
    model, _ = case({"gate": "additive"})
    schema = Schema(features)
    n_slots, n_experts, random = schema.n_slots, model.n_experts, np.random.default_rng(0)
    model = replace(
        model,
        schema=schema,
        experts=random.standard_normal((n_slots, n_experts, 1, 1)),
        gate=replace(
            model.gate,
            terms=random.standard_normal((n_slots, n_experts * 4, 1)),
            bias=random.standard_normal((n_experts * 4, 1)),
        ),
    )
    columns = (np.zeros(5), np.full(5, 0.5), np.array(levels, dtype=object), np.full(5, math.nan))
    assert to_c(model, "m").fields == ("xint", "x9_lives", "int_", "x")
    assert_same_in_c(model, Columns(columns, schema.names), tmp_path)


@needs_gcc
def test_columns_called_like_macros_or_words_of_other_languages_compile(tmp_path: Path) -> None:
    names = ("NULL", "NAN", "M_FEATURES", "bool", "class", "new", "F", "exp", "row", "slot")
    schema, random = Schema(tuple(Number(name, np.array([0.0, 1.0])) for name in names)), np.random.default_rng(0)
    model, _ = case({"gate": "diagonal"})
    shape = (schema.n_slots, model.n_experts, 1)
    gate = replace(model.gate, terms=random.standard_normal(shape), bias=np.zeros((model.n_experts * len(names), 1)))
    model = replace(model, schema=schema, experts=random.standard_normal((*shape, 1)), gate=gate)
    assert_same_in_c(model, Columns(tuple(random.uniform(-0.5, 1.5, (len(names), 5))), names), tmp_path)
    for kind in ("c++", "c"):
        (tmp_path / "user").write_text(
            '#include <math.h>\n#include <stddef.h>\n#include "m.h"\nint main(void) { return 0; }\n'
        )
        command = ["gcc", "-x", kind, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(tmp_path / "user")]
        if kind == "c" or shutil.which("g++"):
            subprocess.run(command, check=True)


@pytest.mark.parametrize("name", ["int", "a b", "", "2x", "x;"])
def test_a_name_must_be_an_identifier(name: str) -> None:
    model, _ = case({"gate": "additive"})
    with pytest.raises(UserError, match="name must be a C identifier"):
        to_c(model, name)
