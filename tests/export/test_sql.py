"""Exported SQL beyond its answers (tests/agreement): types of columns, names, and the files."""

from typing import Any

import numpy as np
import pytest

from nae.encoding import Category, Number
from nae.encoding.schema import Feature
from nae.errors import UserError
from nae.export import to_sql, write_sql
from nae.tables import TableModel
from tests.laws.models import make_model

NUMBER = Number("y", np.array([0.0, 1.0]))


def of_features(*features: Feature) -> TableModel:
    """Return a random model of given features."""
    return make_model(np.random.default_rng(0), features=features)


@pytest.mark.parametrize(
    ("levels", "values", "kind"),
    [
        (("1.0", "2.5"), ("1.0", "2.5", None), "DECIMAL(3, 1)"),
        (("1", "2"), ("1", "2", "3", None), "HUGEINT"),
        (("a", "b"), ("a", "b", None), "ENUM('a', 'b')"),
    ],
    ids=str,
)
def test_levels_are_found_in_columns_of_types_that_numpy_lacks(
    levels: tuple[str, ...], values: tuple[str | None, ...], kind: str
) -> None:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB runs the exported query")
    model = of_features(Category("c", levels), NUMBER)
    lines = [
        f"SELECT {i} AS id, CAST({'NULL' if value is None else repr(value)} AS {kind}) AS c, 0.5 AS y"
        for i, value in enumerate(values)
    ]
    text = to_sql(model)
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE rows AS {' UNION ALL '.join(lines)}")
        connection.execute(text.tables)
        found = connection.execute(f"SELECT ANY_VALUE(score) FROM ({text.query}) GROUP BY id ORDER BY id").fetchall()  # noqa: S608
    expected = model.decision_function({"c": list(values), "y": [0.5] * len(values)})
    np.testing.assert_allclose([score for (score,) in found], expected)


@pytest.mark.parametrize("key", ["y", "Y"])
def test_the_key_is_no_feature(key: str) -> None:
    with pytest.raises(UserError, match=f"key must not be a feature; got '{key}'"):
        to_sql(of_features(NUMBER), key=key)


def test_the_files_hold_tables_and_query(tmp_path: Any) -> None:
    tables, query = write_sql(of_features(NUMBER), tmp_path / "m.sql")
    assert tables.read_text().startswith('CREATE OR REPLACE TABLE "nae_features"')
    assert query.name == "m.query.sql"
    assert query.read_text().startswith("WITH inputs")
