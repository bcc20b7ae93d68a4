"""The steps of a model in SQL: for each its tables, and the parts of the query that read them.

Every part is a named query. Values before the experts have the columns (id, member, unit, value), weights
(id, member, feature, expert, weight), contributions (id, feature, output, contribution, lower, upper).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nae._typing import AnyArray
from nae.tables.lowered import Clip, Lowered, Mix, OneExpert, Step
from nae.tables.routing import EqualRouting, Routing, SoftmaxRouting
from nae.tables.steps import Multiply, OwnTerms, Rectify, SumTerms, Terms

__all__ = ["EMITTERS", "START", "Context", "Emitted", "make_table", "quoted"]


@dataclass(frozen=True)
class Context:
    """What a step must know besides itself."""

    model: Lowered
    prefix: str

    def table(self, name: str) -> str:
        """Return the quoted name of one of the model's tables."""
        return quoted(f"{self.prefix}_{name}")


@dataclass(frozen=True)
class Emitted:
    """A step in SQL."""

    name: str  # of the query that holds its result
    query: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


START = Emitted("cells")
"""What stands before the first step."""


def quoted(name: str) -> str:
    """Return a name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def make_table(name: str, columns: str, rows: list[str]) -> str:
    """Return the statements that make a table."""
    made = f"CREATE OR REPLACE TABLE {quoted(name)} ({columns});\n"
    for start in range(0, len(rows), 10_000):
        made += f"INSERT INTO {quoted(name)} VALUES\n" + ",\n".join(rows[start : start + 10_000]) + ";\n"
    return made


def _slot_table(name: str, values: AnyArray) -> str:
    """Return the statements for a table (slot, unit, member), with the step from each value to the next slot's."""
    steps = np.zeros_like(values, dtype=np.float64)
    steps[:-1] = values[1:].astype(np.float64) - values[:-1]
    rows = [
        f"({slot}, {member}, {unit}, {float(values[slot, unit, member])!r}, {float(steps[slot, unit, member])!r})"
        for slot, unit, member in np.ndindex(values.shape)
    ]
    return make_table(name, "slot INTEGER, member INTEGER, unit INTEGER, value DOUBLE, step DOUBLE", rows)


def _bias_table(name: str, values: AnyArray) -> str:
    rows = [f"({member}, {unit}, {float(values[unit, member])!r})" for unit, member in np.ndindex(values.shape)]
    return make_table(name, "member INTEGER, unit INTEGER, value DOUBLE", rows)


def _term_tables(step: Terms, prefix: str) -> tuple[str, str]:
    return _slot_table(f"{prefix}_terms", step.terms), _bias_table(f"{prefix}_bias", step.bias)


def _sum_terms(step: SumTerms, given: Emitted, context: Context) -> Emitted:
    query = (
        f"""sums AS (
  SELECT c.id, t.member, t.unit, SUM(t.value + c.part * t.step) AS value
  FROM {given.name} c JOIN {context.table("terms")} t USING (slot) GROUP BY ALL
)""",
        f"""hidden AS (
  SELECT s.id, member, unit, s.value + b.value AS value FROM sums s JOIN {context.table("bias")} b USING (member, unit)
)""",
    )
    return Emitted("hidden", query, _term_tables(step, context.prefix))


def _own_terms(step: OwnTerms, given: Emitted, context: Context) -> Emitted:
    query = f"""own AS (
  SELECT c.id, t.member, b.unit, t.value + c.part * t.step + b.value AS value
  FROM {given.name} c JOIN {context.table("terms")} t USING (slot)
  JOIN {context.table("bias")} b ON b.member = t.member AND b.unit = t.unit * {context.model.n_features} + c.feature
)"""
    return Emitted("own", (query,), _term_tables(step, context.prefix))


def _rectify(step: Rectify, given: Emitted, context: Context) -> Emitted:
    query = f"rectified AS (SELECT id, member, unit, GREATEST(value, 0) AS value FROM {given.name})"
    return Emitted("rectified", (query,))


def _multiply(step: Multiply, given: Emitted, context: Context) -> Emitted:
    query = (
        f"""mixed AS (
  SELECT h.id, x.member, x.unit, SUM(h.value * x.value) AS value
  FROM {given.name} h JOIN {context.table("mix")} x ON x.member = h.member AND x.hidden = h.unit GROUP BY ALL
)""",
        f"""moved AS (
  SELECT m.id, member, unit, m.value + b.value AS value
  FROM mixed m JOIN {context.table("mix_bias")} b USING (member, unit)
)""",
    )
    rows = [f"({m}, {h}, {j}, {float(step.matrix[m, h, j])!r})" for m, h, j in np.ndindex(step.matrix.shape)]
    columns = "member INTEGER, hidden INTEGER, unit INTEGER, value DOUBLE"
    mix = make_table(f"{context.prefix}_mix", columns, rows)
    return Emitted("moved", query, (mix, _bias_table(f"{context.prefix}_mix_bias", step.bias)))


def _share(step: Routing, given: Emitted, context: Context, *, raised: str) -> Emitted:
    """Turn logits into weights; ``raised`` is the share of an active expert before they sum to one."""
    n_features = context.model.n_features
    query = (
        f"""logits AS (
  SELECT id, member, unit % {n_features} AS feature, unit // {n_features} AS expert, value AS logit FROM {given.name}
)""",
        """ranked AS (
  SELECT *, MAX(logit) OVER own AS most, ROW_NUMBER() OVER (own ORDER BY logit DESC, expert) AS place
  FROM logits WINDOW own AS (PARTITION BY id, member, feature)
)""",
        f"""raised AS (
  SELECT id, member, feature, expert, CASE WHEN place <= {step.n_active} THEN {raised} ELSE 0 END AS value
  FROM ranked
)""",
        """weights AS (
  SELECT id, member, feature, expert, value / SUM(value) OVER (PARTITION BY id, member, feature) AS weight FROM raised
)""",
    )
    return Emitted("weights", query)


def _one_expert(step: OneExpert, given: Emitted, context: Context) -> Emitted:
    members = f"range({context.model.n_members}) AS m(member)"
    query = f"weights AS (SELECT c.id, m.member, c.feature, 0 AS expert, 1.0 AS weight FROM {given.name} c, {members})"
    return Emitted("weights", (query,))


def _mix(step: Mix, given: Emitted, context: Context) -> Emitted:
    n_outputs, n = context.model.n_outputs, step.n_extreme
    lower = "MIN(value)" if n == 1 else f"list_avg(list_sort(list(value))[:{n}])"
    upper = "MAX(value)" if n == 1 else f"list_avg(list_reverse_sort(list(value))[:{n}])"
    query = (
        f"""experts AS (
  SELECT c.id, c.feature, e.member, e.unit // {n_outputs} AS expert, e.unit % {n_outputs} AS output,
    e.value + c.part * e.step AS value
  FROM cells c JOIN {context.table("experts")} e USING (slot)
)""",
        f"""members AS (
  SELECT id, feature, member, output, SUM(weight * value) AS value, {lower} AS lower, {upper} AS upper
  FROM experts JOIN {given.name} USING (id, feature, member, expert) GROUP BY id, feature, member, output
)""",
        """contributions AS (
  SELECT id, feature, output, AVG(value) AS contribution, LEAST(AVG(lower), AVG(value)) AS lower,
    GREATEST(AVG(upper), AVG(value)) AS upper
  FROM members GROUP BY id, feature, output
)""",
    )
    by_unit = step.experts.reshape(len(step.experts), -1, context.model.n_members)  # a unit is an expert's output
    return Emitted("contributions", query, (_slot_table(f"{context.prefix}_experts", by_unit),))


def _clip(step: Clip, given: Emitted, context: Context) -> Emitted:
    """Keep contributions and bounds within the range at their cell; the two ends stand as two members of a table."""
    inside = ", ".join(f"LEAST(GREATEST(c.{name}, r.low), r.high) AS {name}" for name in _BOUNDED)
    query = (
        f"""ranges AS (
  SELECT c.id, c.feature, l.unit AS output, l.value + c.part * l.step AS low, u.value + c.part * u.step AS high
  FROM cells c JOIN {context.table("clamps")} l ON l.slot = c.slot AND l.member = 0
  JOIN {context.table("clamps")} u ON u.slot = c.slot AND u.member = 1 AND u.unit = l.unit
)""",
        f"""clipped AS (
  SELECT c.id, c.feature, c.output, {inside} FROM {given.name} c JOIN ranges r USING (id, feature, output)
)""",
    )
    ends = np.stack([step.lower, step.upper], axis=-1)
    return Emitted("clipped", query, (_slot_table(f"{context.prefix}_clamps", ends),))


_BOUNDED = ("contribution", "lower", "upper")
EMITTERS: dict[type[Step], Callable[[Any, Emitted, Context], Emitted]] = {
    SumTerms: _sum_terms,
    OwnTerms: _own_terms,
    Rectify: _rectify,
    Multiply: _multiply,
    SoftmaxRouting: partial(_share, raised="exp(logit - most)"),
    EqualRouting: partial(_share, raised="1.0"),
    OneExpert: _one_expert,
    Mix: _mix,
    Clip: _clip,
}
"""Every step in SQL, given the step before it."""
