"""A model as SQL for DuckDB: a few tables, and one query that turns rows into contributions, scores and predictions."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nae._files import write_whole
from nae._typing import AnyArray
from nae.encoding.schema import Number
from nae.errors import UserError
from nae.export.source import model_of, require_unicode, scaled_spans
from nae.tables.model import TableModel

__all__ = ["SqlText", "to_sql", "write_sql"]

_REALS = ("FLOAT", "DOUBLE")  # types whose numbers may have a point


@dataclass(frozen=True)
class SqlText:
    """Statements that make the model's tables, and the query that reads them."""

    tables: str
    query: str


def to_sql(model: Any, *, table: str = "rows", key: str = "id", prefix: str = "nae") -> SqlText:
    """Return a model (or a fitted estimator) as SQL for DuckDB.

    Parameters
    ----------
    model
        A TableModel or a fitted estimator.
    table
        The table of rows to predict, with a column per feature: numbers (NULL or NaN for missing) and text.
    key
        Its column that tells the rows apart.
    prefix
        What the model's tables begin with.

    Returns
    -------
    SqlText
        The query gives a line per row, output and feature: ``contribution``, ``lower``, ``upper``, and the row's
        ``score`` and ``prediction`` (for classes: of probability of the output; for two classes of the second).
    """
    tables = model_of(model)
    require_unicode(tables, "SQL")
    folded = [name.casefold() for name in tables.feature_names]  # SQL's names do not tell a from A
    if key.casefold() in folded:
        raise UserError(f"key must not be a feature; got {key!r}.")
    if "" in folded:
        raise UserError("SQL has no columns without a name; rename '' before fit.")
    twice = next((name for name in tables.feature_names if folded.count(name.casefold()) > 1), None)
    if twice is not None:
        raise UserError(f"SQL cannot tell columns apart by upper and lower case; rename {twice!r} before fit.")
    parts = [_schema_tables(tables, prefix), _long_table(f"{prefix}_experts", _expert_rows(tables))]
    if tables.n_experts > 1:
        parts += _gate_tables(tables, prefix)
    parts.append(_long_table(f"{prefix}_outputs", _output_rows(tables), "output INTEGER, name VARCHAR, value DOUBLE"))
    return SqlText("\n".join(parts), _query(tables, table, key, prefix))


def write_sql(
    model: Any, path: str | os.PathLike[str], *, table: str = "rows", key: str = "id", prefix: str = "nae"
) -> tuple[Path, Path]:
    """Write the tables to ``path`` and the query beside it (``.query.sql``); return both paths."""
    found = to_sql(model, table=table, key=key, prefix=prefix)
    tables = Path(path)
    query = tables.with_suffix(".query.sql")
    write_whole(tables, found.tables)
    write_whole(query, found.query)
    return tables, query


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''").replace("\0", "' || chr(0) || '") + "'"  # no text literal holds the last one


def _schema_tables(model: TableModel, prefix: str) -> str:
    """Return intervals between knots and the slots of levels, and each feature's slots of missing and unseen values."""
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
            _table(f"{prefix}_features", "feature INTEGER, name VARCHAR, missing INTEGER, unseen INTEGER", features),
            _table(f"{prefix}_knots", "feature INTEGER, slot INTEGER, low DOUBLE, scale DOUBLE, span DOUBLE", knots),
            _table(f"{prefix}_levels", "feature INTEGER, level VARCHAR, slot INTEGER", levels),
        )
    )


def _table(name: str, columns: str, rows: list[str]) -> str:
    made = f"CREATE OR REPLACE TABLE {_quoted(name)} ({columns});\n"
    for start in range(0, len(rows), 10_000):
        made += f"INSERT INTO {_quoted(name)} VALUES\n" + ",\n".join(rows[start : start + 10_000]) + ";\n"
    return made


def _long_table(name: str, rows: list[str], columns: str = "") -> str:
    return _table(name, columns or "slot INTEGER, member INTEGER, unit INTEGER, value DOUBLE, step DOUBLE", rows)


def _slot_rows(values: AnyArray) -> list[str]:
    """Return the lines (slot, member, unit, value, step to the next slot) of a table (slot, unit, member)."""
    steps = np.zeros_like(values, dtype=np.float64)
    steps[:-1] = values[1:].astype(np.float64) - values[:-1]
    return [
        f"({slot}, {member}, {unit}, {float(values[slot, unit, member])!r}, {float(steps[slot, unit, member])!r})"
        for slot, unit, member in np.ndindex(values.shape)
    ]


def _expert_rows(model: TableModel) -> list[str]:
    """Return the lines of the experts; a unit is expert * outputs + output."""
    return _slot_rows(model.experts.reshape(model.schema.n_slots, -1, model.n_members))


def _gate_tables(model: TableModel, prefix: str) -> list[str]:
    gate = model.gate
    triple = "member INTEGER, unit INTEGER, value DOUBLE"
    parts = [
        _long_table(f"{prefix}_terms", _slot_rows(gate.terms)),
        _table(f"{prefix}_bias", triple, _pairs(gate.bias)),
    ]
    if gate.mix is not None and gate.mix_bias is not None:
        lines = [f"({m}, {h}, {j}, {float(gate.mix[m, h, j])!r})" for m, h, j in np.ndindex(gate.mix.shape)]
        parts.append(_table(f"{prefix}_mix", "member INTEGER, hidden INTEGER, unit INTEGER, value DOUBLE", lines))
        parts.append(_table(f"{prefix}_mix_bias", triple, _pairs(gate.mix_bias)))
    return parts


def _pairs(values: AnyArray) -> list[str]:
    return [f"({member}, {unit}, {float(values[unit, member])!r})" for unit, member in np.ndindex(values.shape)]


def _output_rows(model: TableModel) -> list[str]:
    pairs = zip(model.outputs, model.intercept.tolist(), strict=True)
    return [f"({i}, {_text(name)}, {value!r})" for i, (name, value) in enumerate(pairs)]


def _query(model: TableModel, table: str, key: str, prefix: str) -> str:
    steps = [_inputs(model, table, key), _cells(prefix)]
    steps += _routing(model, prefix) if model.n_experts > 1 else [_lone_weights(model)]
    steps += [_contributions(model, prefix)]
    return "WITH " + ",\n".join(steps) + _last(model, prefix, key)


def _inputs(model: TableModel, table: str, key: str) -> str:
    lines = []
    for i, feature in enumerate(model.schema.features):
        column, is_number = _quoted(feature.name), isinstance(feature, Number)
        number = f"CAST({column} AS DOUBLE)" if is_number else "CAST(NULL AS DOUBLE)"
        text = "CAST(NULL AS VARCHAR)" if is_number else _as_level(column)
        lines.append(
            f"  SELECT {_quoted(key)} AS id, {i} AS feature, {number} AS number, {text} AS text FROM {_quoted(table)}"
        )
    return "inputs AS (\n" + "\n  UNION ALL\n".join(lines) + "\n)"


def _as_level(column: str) -> str:
    """Return a column as the model writes levels: true as True, 1.0 as 1, NaN as missing."""
    text = f"CAST({column} AS VARCHAR)"
    cases = {"BOOLEAN": f"upper({text}[1]) || {text}[2:]"} | {kind: _real_level(text, kind) for kind in _REALS}
    whens = " ".join(f"WHEN '{kind}' THEN {then}" for kind, then in cases.items())
    return f"CASE typeof({column}) {whens} ELSE {text} END"


def _real_level(text: str, kind: str) -> str:
    """Return the text of a float as the model writes it: whole numbers without a point or an exponent."""
    value = f"TRY_CAST({text} AS {kind})"
    whole = f"TRY_CAST({value} AS HUGEINT)"
    return f"CASE WHEN isnan({value}) THEN NULL WHEN {whole} = {value} THEN CAST({whole} AS VARCHAR) ELSE {text} END"


def _cells(prefix: str) -> str:
    """Return slot and fraction of every value: the last knot at or below it, the first for values below all.

    What a missing number (NULL) is joined with differs between versions of DuckDB, so its slot is not asked for.
    """
    return f"""ends AS (
  SELECT feature, MIN(low) AS first, MAX(low) AS last FROM {_quoted(prefix + "_knots")} GROUP BY feature
),
known AS (
  SELECT i.id, i.feature, i.text, f.missing, f.unseen,
    CASE WHEN i.number IS NULL OR isnan(i.number) THEN NULL
         ELSE LEAST(GREATEST(i.number, e.first), e.last) END AS number
  FROM inputs i JOIN {_quoted(prefix + "_features")} f USING (feature) LEFT JOIN ends e USING (feature)
),
cells AS (
  SELECT n.id, n.feature,
    CASE WHEN e.feature IS NULL THEN COALESCE(l.slot, CASE WHEN n.text IS NULL THEN n.missing ELSE n.unseen END)
         WHEN n.number IS NULL THEN n.missing ELSE k.slot END AS slot,
    CASE WHEN n.number > k.low THEN (n.number * k.scale - k.low * k.scale) / k.span ELSE 0 END AS part
  FROM known n LEFT JOIN ends e USING (feature)
  LEFT JOIN {_quoted(prefix + "_levels")} l ON l.feature = n.feature AND l.level = n.text
  ASOF LEFT JOIN {_quoted(prefix + "_knots")} k ON k.feature = n.feature AND n.number >= k.low
)"""


def _routing(model: TableModel, prefix: str) -> list[str]:
    """Return hidden sums, logits, which experts are active, and their weights."""
    kind, n_features = model.gate.kind, model.n_features
    summed = f"SUM(t.value + c.part * t.step) AS value FROM cells c JOIN {_quoted(prefix + '_terms')} t USING (slot)"
    if kind == "diagonal":
        steps = [
            f"""logits AS (
  SELECT c.id, t.member, c.feature, t.unit AS expert, t.value + c.part * t.step + b.value AS logit
  FROM cells c JOIN {_quoted(prefix + "_terms")} t USING (slot)
  JOIN {_quoted(prefix + "_bias")} b ON b.member = t.member AND b.unit = t.unit * {n_features} + c.feature
)"""
        ]
    else:
        steps = [
            f"sums AS (SELECT c.id, t.member, t.unit, {summed} GROUP BY ALL)",
            f"""hidden AS (
  SELECT s.id, member, unit, s.value + b.value AS value
  FROM sums s JOIN {_quoted(prefix + "_bias")} b USING (member, unit)
)""",
        ]
        source = "hidden"
        if kind != "additive":
            value = "GREATEST(h.value, 0)" if kind == "deep" else "h.value"
            steps.append(f"""mixed AS (
  SELECT h.id, x.member, x.unit, SUM({value} * x.value) AS value
  FROM hidden h JOIN {_quoted(prefix + "_mix")} x ON x.member = h.member AND x.hidden = h.unit GROUP BY ALL
),
moved AS (
  SELECT m.id, member, unit, m.value + b.value AS value
  FROM mixed m JOIN {_quoted(prefix + "_mix_bias")} b USING (member, unit)
)""")
            source = "moved"
        steps.append(f"""logits AS (
  SELECT id, member, unit % {n_features} AS feature, unit // {n_features} AS expert, value AS logit FROM {source}
)""")
    raised = "1.0" if model.routing.name == "equal" else "exp(logit - most)"
    return [
        *steps,
        f"""ranked AS (
  SELECT *, MAX(logit) OVER own AS most, ROW_NUMBER() OVER (own ORDER BY logit DESC, expert) AS place
  FROM logits WINDOW own AS (PARTITION BY id, member, feature)
),
raised AS (
  SELECT id, member, feature, expert, CASE WHEN place <= {model.routing.n_active} THEN {raised} ELSE 0 END AS value
  FROM ranked
),
weights AS (
  SELECT id, member, feature, expert, value / SUM(value) OVER (PARTITION BY id, member, feature) AS weight FROM raised
)""",
    ]


def _lone_weights(model: TableModel) -> str:
    members = f"range({model.n_members}) AS m(member)"
    return f"weights AS (SELECT c.id, m.member, c.feature, 0 AS expert, 1.0 AS weight FROM cells c, {members})"


def _contributions(model: TableModel, prefix: str) -> str:
    outputs, active = model.n_outputs, model.routing.n_active
    if model.routing.name == "equal":
        lower = f"list_avg(list_sort(list(value))[:{active}])"
        upper = f"list_avg(list_reverse_sort(list(value))[:{active}])"
    else:
        lower, upper = "MIN(value)", "MAX(value)"
    return f"""experts AS (
  SELECT c.id, c.feature, e.member, e.unit // {outputs} AS expert, e.unit % {outputs} AS output,
    e.value + c.part * e.step AS value
  FROM cells c JOIN {_quoted(prefix + "_experts")} e USING (slot)
),
members AS (
  SELECT id, feature, member, output, SUM(weight * value) AS value, {lower} AS lower, {upper} AS upper
  FROM experts JOIN weights USING (id, feature, member, expert) GROUP BY id, feature, member, output
),
contributions AS (
  SELECT id, feature, output, AVG(value) AS contribution, LEAST(AVG(lower), AVG(value)) AS lower,
    GREATEST(AVG(upper), AVG(value)) AS upper
  FROM members GROUP BY id, feature, output
),
scores AS (
  SELECT c.id, c.output, SUM(c.contribution) + ANY_VALUE(o.value) AS score, ANY_VALUE(o.name) AS name
  FROM contributions c JOIN {_quoted(prefix + "_outputs")} o USING (output) GROUP BY c.id, c.output
)"""


def _last(model: TableModel, prefix: str, key: str) -> str:
    prediction = {
        "identity": "s.score",
        "log": "exp(s.score)",
        "logit": "1 / (1 + exp(-s.score))",
        "softmax": "s.probability",
    }[model.link.name]
    source = "scores"
    if model.link.name == "softmax":
        inner = "(SELECT *, MAX(score) OVER (PARTITION BY id) AS most FROM scores)"
        source = (
            f"(SELECT *, exp(score - most) / SUM(exp(score - most)) OVER (PARTITION BY id) AS probability FROM {inner})"
        )
    return f"""
SELECT c.id AS {_quoted(key)}, s.name AS output, f.name AS feature, c.contribution, c.lower, c.upper, s.score,
  {prediction} AS prediction
FROM contributions c JOIN {source} s USING (id, output) JOIN {_quoted(prefix + "_features")} f USING (feature)
ORDER BY c.id, c.output, c.feature
"""
