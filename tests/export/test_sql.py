"""SQL gives the model's own answers, in DuckDB."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nae.encoding import Category, Columns, Number, Schema
from nae.encoding.schema import Feature
from nae.errors import UserError
from nae.export import to_sql, write_sql
from nae.tables import GateTables, TableModel
from tests.export.agreement import CASES, Answer, assert_answers, case, expected_answer, plain_columns
from tests.laws.models import make_model

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


def of_features(*features: Feature) -> TableModel:
    """Return a random model of given features."""
    schema, random = Schema(features), np.random.default_rng(0)
    model = make_model(random)
    n_logits = model.n_experts * len(features)
    gate = GateTables("additive", random.standard_normal((schema.n_slots, n_logits, 1)), np.zeros((n_logits, 1)))
    experts = random.standard_normal((schema.n_slots, model.n_experts, 1, 1))
    return replace(model, schema=schema, experts=experts, gate=gate)


def scores_of(model: TableModel, rows: str) -> list[float]:
    """Run the exported tables and query on rows that DuckDB makes itself."""
    text = to_sql(model)
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE rows AS {rows}")
        connection.execute(text.tables)
        found = connection.execute(f"SELECT id, ANY_VALUE(score) FROM ({text.query}) GROUP BY id ORDER BY id")  # noqa: S608
        return [score for _, score in found.fetchall()]


@pytest.mark.parametrize("missing", ["NULL", "'nan'"])
def test_null_and_nan_are_missing_numbers(missing: str) -> None:
    model = of_features(Number("x", np.array([0.0, 1.0])), Number("y", np.array([0.0, 1.0])))
    found = scores_of(model, f"SELECT 1 AS id, CAST({missing} AS DOUBLE) AS x, 0.5 AS y")
    np.testing.assert_allclose(found, model.decision_function({"x": [None], "y": [0.5]}))


@pytest.mark.parametrize(
    ("levels", "values", "kind"),
    [
        (("1", "2"), (1.0, 2.0, 3.0, None), "DOUBLE"),
        (("1", "2.5"), (1.0, 2.5, np.nan, None), "DOUBLE"),
        (("1", "2"), (1, 2, 3, None), "BIGINT"),
        (("True", "False"), (True, False, None), "BOOLEAN"),
        (("1.0", "nan", "true"), ("1.0", "nan", "true", "1", None), "VARCHAR"),
    ],
    ids=str,
)
def test_levels_are_found_whatever_the_type_of_their_column(
    levels: tuple[str, ...], values: tuple[Any, ...], kind: str
) -> None:
    model = of_features(Category("c", levels), Number("y", np.array([0.0, 1.0])))
    lines = [
        f"SELECT {i} AS id, CAST({'NULL' if value is None else repr(str(value))} AS {kind}) AS c, 0.5 AS y"
        for i, value in enumerate(values)
    ]
    expected = model.decision_function({"c": list(values), "y": [0.5] * len(values)})
    np.testing.assert_allclose(scores_of(model, " UNION ALL ".join(lines)), expected)


@pytest.mark.parametrize("shape", CASES)
def test_sql_answers_as_the_model_does(shape: dict[str, Any]) -> None:
    assert_same_in_sql(*case(shape, n_rows=12))


def test_the_key_is_no_feature() -> None:
    model, _ = case({"gate": "additive"})
    for key in ("f1", "F1"):
        with pytest.raises(UserError, match=f"key must not be a feature; got '{key}'"):
            to_sql(model, key=key)


def test_names_that_differ_by_case_alone_are_an_error() -> None:
    model = of_features(Number("Age", np.zeros(1)), Number("age", np.zeros(1)))
    with pytest.raises(UserError, match="upper and lower case; rename 'Age'"):
        to_sql(model)


def test_the_files_hold_tables_and_query(tmp_path: Any) -> None:
    model, _ = case({"gate": "additive"})
    tables, query = write_sql(model, tmp_path / "m.sql")
    assert tables.read_text().startswith('CREATE OR REPLACE TABLE "nae_features"')
    assert query.name == "m.query.sql"
    assert query.read_text().startswith("WITH inputs")
