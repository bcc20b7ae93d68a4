"""SQL gives the model's own answers, in DuckDB."""

from typing import Any

import numpy as np
import pytest

from nae.encoding import Columns, Number
from nae.errors import UserError
from nae.export import to_sql, write_sql
from nae.tables import TableModel
from tests.export.agreement import CASES, Answer, assert_answers, case, expected_answer, plain_columns

duckdb = pytest.importorskip("duckdb", reason="DuckDB runs the exported query")


def answer_of(model: TableModel, columns: dict[str, list[Any]]) -> Answer:
    """Run the exported tables and query on columns."""
    text = to_sql(model, table="some rows", key="row id")
    connection = duckdb.connect()
    kinds = ["DOUBLE" if isinstance(feature, Number) else "VARCHAR" for feature in model.schema.features]
    fields = ", ".join(f'"{name}" {kind}' for name, kind in zip(columns, kinds, strict=True))
    connection.execute(f'CREATE TABLE "some rows" ("row id" INTEGER, {fields})')
    rows = [[i, *values] for i, values in enumerate(zip(*columns.values(), strict=True))]
    places = ", ".join("?" * (len(columns) + 1))
    connection.executemany(f'INSERT INTO "some rows" VALUES ({places})', rows)  # noqa: S608
    connection.execute(text.tables)
    found = connection.execute(text.query).fetchnumpy()
    connection.close()
    shape = (len(rows), model.n_outputs, model.n_features)

    def turned(name: str) -> Any:
        return np.asarray(found[name], dtype=np.float64).reshape(shape).transpose(0, 2, 1)

    prediction = turned("prediction")[:, 0]
    if len(model.classes) == 2:
        prediction = np.concatenate([1 - prediction, prediction], axis=1)
    return Answer(turned("score")[:, 0], prediction, turned("contribution"), turned("lower"), turned("upper"))


def assert_same_in_sql(model: TableModel, table: Columns) -> None:
    assert_answers(answer_of(model, plain_columns(model, table)), expected_answer(model, table))


@pytest.mark.parametrize("shape", CASES)
def test_sql_answers_as_the_model_does(shape: dict[str, Any]) -> None:
    assert_same_in_sql(*case(shape, n_rows=12))


def test_the_key_is_no_feature() -> None:
    model, _ = case({"gate": "additive"})
    with pytest.raises(UserError, match="key must not be a feature; got 'f1'"):
        to_sql(model, key="f1")


def test_the_files_hold_tables_and_query(tmp_path: Any) -> None:
    model, _ = case({"gate": "additive"})
    tables, query = write_sql(model, tmp_path / "m.sql")
    assert tables.read_text().startswith('CREATE OR REPLACE TABLE "nae_features"')
    assert query.name == "m.query.sql"
    assert query.read_text().startswith("WITH inputs")
