"""A model as SQL for DuckDB: a few tables, and one query for contributions, bounds, scores and predictions."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nae._files import write_whole
from nae.encoding.schema import Number
from nae.errors import UserError
from nae.export.source import lowered, require_unicode, scaled_spans
from nae.export.sql_steps import EMITTERS, START, Context, make_table, quoted
from nae.tables.lowered import Lowered

__all__ = ["SqlText", "to_sql", "write_sql"]

_REALS = ("FLOAT", "DOUBLE")  # types of numbers that may have a decimal point


@dataclass(frozen=True)
class SqlText:
    """The statements that make the tables of the model, and the query that reads them."""

    tables: str
    query: str


def to_sql(model: Any, *, table: str = "rows", key: str = "id", prefix: str = "nae") -> SqlText:
    """Return a model, or the model of a fitted estimator, as SQL for DuckDB.

    Parameters
    ----------
    model
        A TableModel or a fitted estimator.
    table
        The name of the table of rows. It has one column per feature: numbers (NULL or NaN if missing) or text.
    key
        The name of its key column.
    prefix
        How the names of the model's tables begin.

    Returns
    -------
    SqlText
        The query returns one line per row, output and feature, with ``contribution``, ``lower`` and ``upper``, and
        with the ``score`` and ``prediction`` of the row. For classifiers, the prediction is the output's probability;
        for two classes, it is the probability of the second.
    """
    found = lowered(model)
    require_unicode(found, "SQL")
    _check_names(found.schema.names, key)
    steps = [START]
    for step in found.steps:
        steps.append(EMITTERS[type(step)](step, steps[-1], Context(found, prefix)))
    tables = [_schema_tables(found, prefix), *(made for step in steps for made in step.tables)]
    tables.append(make_table(f"{prefix}_outputs", "output INTEGER, name VARCHAR, value DOUBLE", _output_rows(found)))
    query = [_inputs(found, table, key), _cells(prefix), *(line for step in steps for line in step.query)]
    query.append(_scores(prefix, steps[-1].name))
    return SqlText("\n".join(tables), "WITH " + ",\n".join(query) + _last(found, prefix, key, steps[-1].name))


def write_sql(
    model: Any, path: str | os.PathLike[str], *, table: str = "rows", key: str = "id", prefix: str = "nae"
) -> tuple[Path, Path]:
    """Write the tables to ``path`` and the query to a second file (``.query.sql``). Return both paths."""
    found = to_sql(model, table=table, key=key, prefix=prefix)
    tables = Path(path)
    query = tables.with_suffix(".query.sql")
    write_whole(tables, found.tables)
    write_whole(query, found.query)
    return tables, query


def _check_names(names: tuple[str, ...], key: str) -> None:
    folded = [name.casefold() for name in names]  # names in SQL do not depend on case
    if key.casefold() in folded:
        raise UserError(f"key must not be a feature; got {key!r}.")
    if "" in folded:
        raise UserError("A column in SQL must have a name; rename '' before fit.")
    twice = next((name for name in names if folded.count(name.casefold()) > 1), None)
    if twice is not None:
        raise UserError(f"Columns in SQL must differ in more than case; rename {twice!r} before fit.")


def _text(value: str) -> str:
    return (
        "'" + value.replace("'", "''").replace("\0", "' || chr(0) || '") + "'"
    )  # a text literal cannot hold a null character


def _schema_tables(model: Lowered, prefix: str) -> str:
    """Return the tables of knots, of levels, and of each feature's slots for missing and unseen values."""
    knots, levels, features = [], [], []
    for i, feature in enumerate(model.schema.features):
        first = int(model.schema.offsets[i])
        missing = first + feature.n_values
        features.append(f"({i}, {_text(feature.name)}, {missing}, {missing + 1})")
        if isinstance(feature, Number):
            columns = (feature.knots, *scaled_spans(feature.knots))
            lines = zip(*(column.tolist() for column in columns), strict=True)
            knots += [f"({i}, {first + j}, {low!r}, {scale!r}, {span!r})" for j, (low, scale, span) in enumerate(lines)]
        else:
            slots = {level: first + j for j, level in enumerate(feature.levels)}
            slots |= dict.fromkeys(feature.rare, first + len(feature.levels))
            levels += [f"({i}, {_text(level)}, {slot})" for level, slot in slots.items()]
    return "\n".join(
        (
            make_table(
                f"{prefix}_features", "feature INTEGER, name VARCHAR, missing INTEGER, unseen INTEGER", features
            ),
            make_table(
                f"{prefix}_knots", "feature INTEGER, slot INTEGER, low DOUBLE, scale DOUBLE, span DOUBLE", knots
            ),
            make_table(f"{prefix}_levels", "feature INTEGER, level VARCHAR, slot INTEGER", levels),
        )
    )


def _output_rows(model: Lowered) -> list[str]:
    pairs = zip(model.outputs, model.intercept.tolist(), strict=True)
    return [f"({i}, {_text(name)}, {value!r})" for i, (name, value) in enumerate(pairs)]


def _inputs(model: Lowered, table: str, key: str) -> str:
    lines = []
    for i, feature in enumerate(model.schema.features):
        column, is_number = quoted(feature.name), isinstance(feature, Number)
        number = f"CAST({column} AS DOUBLE)" if is_number else "CAST(NULL AS DOUBLE)"
        text = "CAST(NULL AS VARCHAR)" if is_number else _as_level(column)
        lines.append(
            f"  SELECT {quoted(key)} AS id, {i} AS feature, {number} AS number, {text} AS text FROM {quoted(table)}"
        )
    return "inputs AS (\n" + "\n  UNION ALL\n".join(lines) + "\n)"


def _as_level(column: str) -> str:
    """Return the text of a column as the model writes levels: true as True, 1.0 as 1, NaN as missing."""
    text = f"CAST({column} AS VARCHAR)"
    cases = {"BOOLEAN": f"upper({text}[1]) || {text}[2:]"} | {kind: _real_level(text, kind) for kind in _REALS}
    whens = " ".join(f"WHEN '{kind}' THEN {then}" for kind, then in cases.items())
    return f"CASE typeof({column}) {whens} ELSE {text} END"


def _real_level(text: str, kind: str) -> str:
    """Return the text of a float as the model writes it: whole numbers have neither a point nor an exponent."""
    value = f"TRY_CAST({text} AS {kind})"
    whole = f"TRY_CAST({value} AS HUGEINT)"
    return f"CASE WHEN isnan({value}) THEN NULL WHEN {whole} = {value} THEN CAST({whole} AS VARCHAR) ELSE {text} END"


def _cells(prefix: str) -> str:
    """Return the query for slot and fraction of every value.

    The slot of a number is that of the last knot at or below it, after the number was clipped to the knots. Versions of
    DuckDB join a missing number (NULL) with different knots, so the slot of a missing number does not use the join.
    """
    return f"""ends AS (
  SELECT feature, MIN(low) AS first, MAX(low) AS last FROM {quoted(prefix + "_knots")} GROUP BY feature
),
known AS (
  SELECT i.id, i.feature, i.text, f.missing, f.unseen,
    CASE WHEN i.number IS NULL OR isnan(i.number) THEN NULL
         ELSE LEAST(GREATEST(i.number, e.first), e.last) END AS number
  FROM inputs i JOIN {quoted(prefix + "_features")} f USING (feature) LEFT JOIN ends e USING (feature)
),
cells AS (
  SELECT n.id, n.feature,
    CASE WHEN e.feature IS NULL THEN COALESCE(l.slot, CASE WHEN n.text IS NULL THEN n.missing ELSE n.unseen END)
         WHEN n.number IS NULL THEN n.missing ELSE k.slot END AS slot,
    CASE WHEN n.number > k.low THEN (n.number * k.scale - k.low * k.scale) / k.span ELSE 0 END AS part
  FROM known n LEFT JOIN ends e USING (feature)
  LEFT JOIN {quoted(prefix + "_levels")} l ON l.feature = n.feature AND l.level = n.text
  ASOF LEFT JOIN {quoted(prefix + "_knots")} k ON k.feature = n.feature AND n.number >= k.low
)"""


def _scores(prefix: str, contributions: str) -> str:
    return f"""scores AS (
  SELECT c.id, c.output, SUM(c.contribution) + ANY_VALUE(o.value) AS score, ANY_VALUE(o.name) AS name
  FROM {contributions} c JOIN {quoted(prefix + "_outputs")} o USING (output) GROUP BY c.id, c.output
)"""


def _last(model: Lowered, prefix: str, key: str, contributions: str) -> str:
    prediction, source = _LINKS[model.link.name]
    return f"""
SELECT c.id AS {quoted(key)}, s.name AS output, f.name AS feature, c.contribution, c.lower, c.upper, s.score,
  {prediction} AS prediction
FROM {contributions} c JOIN {source} s USING (id, output) JOIN {quoted(prefix + "_features")} f USING (feature)
ORDER BY c.id, c.output, c.feature
"""


_SHARES = """(SELECT *, exp(score - most) / SUM(exp(score - most)) OVER (PARTITION BY id) AS probability
  FROM (SELECT *, MAX(score) OVER (PARTITION BY id) AS most FROM scores))"""
# For every link, the prediction and the query it is read from.
_LINKS = {
    "identity": ("s.score", "scores"),
    "log": ("exp(s.score)", "scores"),
    "logit": ("1 / (1 + exp(-s.score))", "scores"),
    "softmax": ("s.probability", _SHARES),
}
