"""Everything that evaluates a model, as one function each from a case to an answer; ``EVALUATORS`` lists them.

A new evaluator is a function here and a line there: the whole catalogue follows.
"""

import ctypes
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nae import load
from nae._typing import AnyArray, Array
from nae.encoding import Number
from nae.encoding.columns import category_keys, is_missing, numbers
from nae.encoding.frames import read_table
from nae.explanation import with_statistics
from nae.export import MISSING_TOKEN, to_c, to_onnx, to_sql, write_c, write_json
from nae.report import write_report
from nae.tables import TableModel
from tests.agreement import plain
from tests.agreement.catalogue import Case

__all__ = ["EVALUATORS", "WITHIN", "Answer", "Evaluator", "Room", "assert_agrees", "expected_answer"]

# The largest difference, as a share of the largest number (or of one, where all are smaller), by type of the tables.
WITHIN = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 2e-6}
NAMES = ("contribution", "lower", "upper", "score", "prediction")


@dataclass(frozen=True, eq=False)
class Answer:
    """What is said of some rows: contributions and bounds (row, feature, output), the others (row, ...)."""

    contribution: AnyArray
    lower: AnyArray
    upper: AnyArray
    score: AnyArray
    prediction: AnyArray  # of classes the probability of each


@dataclass(frozen=True)
class Room:
    """What evaluators may use: an empty folder, and an empty page in the one browser, started when first asked for."""

    folder: Path
    page: Callable[[], Any]


@dataclass(frozen=True)
class Evaluator:
    """A way to evaluate a model."""

    name: str
    answer: Callable[[Case, Room], Answer]
    takes_offset: bool = False  # cases with one are asked of no other evaluator: they have no place for it
    is_quick: bool = True  # starts at once: a part of the cases belongs to the fast suite


def expected_answer(case: Case) -> Answer:
    """Return what numpy says."""
    return _answer_of(case.model, case.table, case.offset)


def assert_agrees(found: Answer, expected: Answer, *, within: float) -> None:
    """Check that all five arrays have the same numbers, to a share of the largest one."""
    for name in NAMES:
        is_, should = np.asarray(getattr(found, name), dtype=np.float64), getattr(expected, name)
        finite = np.abs(should[np.isfinite(should)])
        allowed = within * max(1.0, finite.max(initial=0.0))
        np.testing.assert_allclose(is_, should, rtol=0, atol=allowed, err_msg=f"{name} differs")


def _answer_of(model: TableModel, table: Any, offset: Array | None = None) -> Answer:
    found = model.contributions(table)
    shape = (len(found), model.n_features, model.n_outputs)
    ask = model.predict_proba if model.classes else model.predict
    return Answer(
        contribution=found.values.reshape(shape),
        lower=found.lower.reshape(shape),
        upper=found.upper.reshape(shape),
        score=model.decision_function(table, offset=offset).reshape(len(found), -1),
        prediction=np.asarray(ask(table, offset=offset)).reshape(len(found), -1),
    )


def _stacked(rows: list[dict[str, Any]]) -> Answer:
    """Return the answers to single rows as one."""
    return Answer(**{name: np.array([row[name] for row in rows], dtype=np.float64) for name in NAMES})


def _plain_rows(case: Case) -> list[list[plain.Value]]:
    """Return the rows as floats (NaN for missing) and texts (None for missing), which every language has."""
    columns = read_table(dict(case.table)).select(case.model.feature_names).arrays
    pairs = zip(case.model.schema.features, columns, strict=True)
    lists = [(numbers(own, one.name) if isinstance(one, Number) else category_keys(own)).tolist() for one, own in pairs]
    return [list(row) for row in zip(*lists, strict=True)]


def _numba(case: Case, room: Room) -> Answer:
    pytest.importorskip("numba", reason="the kernel needs numba")
    return _answer_of(case.model.compile(), case.table, case.offset)


def _records(case: Case, room: Room) -> Answer:
    """Row by row, each a mapping of names to single values."""
    answers = []
    for i in range(case.n_rows):
        record = {name: _plain_value(column[i]) for name, column in case.table.items()}
        answers.append(_answer_of(case.model, record, None if case.offset is None else case.offset[i : i + 1]))
    return Answer(*(np.concatenate([getattr(answer, name) for answer in answers]) for name in NAMES))


def _plain_value(value: Any) -> Any:
    """Return a value as Python has it; it has no single precision."""
    return value.item() if isinstance(value, (np.float64, np.integer, np.bool_)) else value


def _archive(case: Case, room: Room) -> Answer:
    case.model.save(room.folder / "model.nae")
    return _answer_of(load(room.folder / "model.nae"), case.table, case.offset)


def _json(case: Case, room: Room, *, by_steps: bool = False) -> Answer:
    write_json(case.model, room.folder / "model.json")
    content = json.loads((room.folder / "model.json").read_text(encoding="utf-8"))
    return _stacked([plain.answer(content, row, by_steps=by_steps) for row in _plain_rows(case)])


def _onnx(case: Case, room: Room) -> Answer:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime runs the exported model")
    session = runtime.InferenceSession(to_onnx(case.model), providers=["CPUExecutionProvider"])
    feed = {}
    for one, values in zip(session.get_inputs(), zip(*_plain_rows(case), strict=True), strict=True):
        is_text = one.type == "tensor(string)"
        given = [MISSING_TOKEN if value is None else value for value in values]
        feed[one.name] = np.array(given, dtype=object if is_text else np.float64)[:, None]
    outputs = [one.name for one in session.get_outputs()]
    found = dict(zip(outputs, session.run(None, feed), strict=True))
    prediction = found["probabilities" if case.model.classes else "predictions"]
    return Answer(found["contributions"], found["lower"], found["upper"], found["scores"], prediction)


FLAGS = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1")


def _c(case: Case, room: Room) -> Answer:
    """Compile the source into a library, every warning an error, and call it row by row."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc compiles the exported source")
    model = case.model
    _, source = write_c(model, room.folder, name="m")
    library = room.folder / "m.so"
    subprocess.run(["gcc", *FLAGS, "-shared", "-fPIC", str(source), "-o", str(library), "-lm"], check=True)
    per_feature = ctypes.c_double * model.n_outputs * model.n_features
    kinds = [ctypes.c_double if isinstance(one, Number) else ctypes.c_char_p for one in model.schema.features]

    class Row(ctypes.Structure):
        _fields_ = list(zip(to_c(model, "m").fields, kinds, strict=True))

    class Result(ctypes.Structure):
        _fields_ = [
            ("score", ctypes.c_double * model.n_outputs),
            ("prediction", ctypes.c_double * (len(model.classes) or model.n_outputs)),
            *((name, per_feature) for name in ("contribution", "lower", "upper")),
        ]

    predict = ctypes.CDLL(str(library)).m_predict
    rows = []
    for values in _plain_rows(case):
        given = (value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value for value in values)
        result = Result()
        predict(ctypes.byref(Row(*given)), ctypes.byref(result))
        rows.append({name: np.array(getattr(result, name)) for name in NAMES})
    return _stacked(rows)


SQL_TYPES = {"f8": "DOUBLE", "f4": "FLOAT", "i8": "BIGINT", "b1": "BOOLEAN"}


def _sql(case: Case, room: Room) -> Answer:
    """Run the exported tables and query on a table whose columns have the types of the case's."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB runs the exported query")
    model, n_rows = case.model, case.n_rows
    text = to_sql(model, table="some rows", key="row id")
    columns = [_sql_column(case.table[name]) for name in model.feature_names]
    quoted = [f'"{name.replace(chr(34), 2 * chr(34))}"' for name in model.feature_names]
    fields = ", ".join(f"{name} {kind}" for name, (kind, _) in zip(quoted, columns, strict=True))
    with duckdb.connect() as connection:
        connection.execute(f'CREATE TABLE "some rows" ("row id" INTEGER, {fields})')
        rows = [[i, *values] for i, values in enumerate(zip(*(values for _, values in columns), strict=True))]
        places = ", ".join("?" * (len(columns) + 1))
        connection.executemany(f'INSERT INTO "some rows" VALUES ({places})', rows)  # noqa: S608
        connection.execute(text.tables)
        found = connection.execute(text.query).fetchnumpy()

    def turned(name: str) -> AnyArray:
        values = np.asarray(found[name], dtype=np.float64)
        return values.reshape(n_rows, model.n_outputs, model.n_features).transpose(0, 2, 1)

    prediction = turned("prediction")[:, 0]
    if len(model.classes) == 2:
        prediction = np.concatenate([1 - prediction, prediction], axis=1)
    return Answer(turned("contribution"), turned("lower"), turned("upper"), turned("score")[:, 0], prediction)


def _sql_column(column: AnyArray) -> tuple[str, list[Any]]:
    """Return the type and the values of a column; of missing numbers every other one is NULL, the others are NaN."""
    values, missing = column.tolist(), is_missing(column)
    kind = SQL_TYPES.get(column.dtype.str[1:])
    if kind is None:
        known = {type(value) for value, is_none in zip(values, missing, strict=True) if not is_none}
        kind = "VARCHAR" if known <= {str} else "BOOLEAN" if known == {bool} else "DOUBLE"
    return kind, [None if missing[i] and (i % 2 or kind == "VARCHAR") else value for i, value in enumerate(values)]


# What the page's own HTML does: the content in one element, the report in another, then the script.
ASK = """([script, content, rows]) => {
    document.body.innerHTML = '<div id="report" hidden></div><script type="application/json" id="content"></script>';
    document.getElementById('content').textContent = content;
    (0, eval)(script);
    return rows.map(row => window.nae.predict(row));
}"""


def _page(case: Case, room: Room) -> Answer:
    """Let the report's script build its page in a browser, and ask that page."""
    path = write_report(with_statistics(case.model, case.table), case.table, room.folder / "report.html", max_rows=2)
    content, script = re.findall("<script[^>]*>(.*?)</script>", path.read_text(encoding="ascii"), re.DOTALL)
    rows = [[None if value != value else value for value in row] for row in _plain_rows(case)]
    answers = room.page().evaluate(ASK, [script, content, rows])
    model = case.model
    shape = (len(rows), model.n_features, model.n_outputs)
    found = {key: np.array([answer[key] for answer in answers], dtype=np.float64) for key in answers[0]}
    prediction = found["prediction"]
    if len(model.classes) == 2:
        prediction = np.concatenate([1 - prediction, prediction], axis=1)
    values, lower, upper = (found[key].reshape(shape) for key in ("values", "lower", "upper"))
    return Answer(values, lower, upper, found["score"], prediction)


EVALUATORS = (
    Evaluator("numba", _numba, takes_offset=True, is_quick=False),
    Evaluator("records", _records, takes_offset=True),
    Evaluator("archive", _archive, takes_offset=True),
    Evaluator("json", _json),
    Evaluator("json by steps", partial(_json, by_steps=True)),
    Evaluator("onnx", _onnx),
    Evaluator("c", _c),
    Evaluator("sql", _sql),
    Evaluator("page", _page, is_quick=False),
)
