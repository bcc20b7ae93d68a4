"""Certify statements: prove each from the tables, or search for inputs that refute it.

A statement is proven if the upper bound of :mod:`nae.certificates.proofs` is within what the statement allows. If not,
a search looks for two inputs that break it. The conditions of the proofs are sufficient, not necessary, so some true
statements remain undecided.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from nae.certificates import Pair, Tables, attack, tables_of
from nae.errors import UserError
from nae.explanation.certificates import PROVEN, REFUTED, UNDECIDED, Certificate, Certificates, Counterexample
from nae.explanation.inputs import values_on
from nae.explanation.scores import ScoreOf, scores_of
from nae.explanation.statements import Statement, read_statements
from nae.tables.model import TableModel

__all__ = ["certify"]


def certify(
    model: TableModel,
    *,
    monotone: Mapping[str, str | int] | None = None,
    max_effect: Mapping[str, float] | None = None,
    isolated: Iterable[str] | str = (),
    unchanged: Iterable[str] | str = (),
    output: str | None = None,
) -> Certificates:
    """Return the verdict on every statement; see :meth:`nae.tables.explains.Explains.certify`."""
    statements = read_statements(
        model, monotone=monotone, max_effect=max_effect, isolated=isolated, unchanged=unchanged
    )
    if not statements:
        raise UserError(
            "certify needs at least one statement; none is given. "
            f"Pass one, such as isolated=[{model.feature_names[0]!r}]."
        )
    outputs = scores_of(model, output, is_score=any(one.kind in ("monotone", "max effect") for one in statements))
    found = []
    for one in outputs:
        tables = tables_of(model, one.direction)
        found += [_decide(tables, one, statement) for statement in statements]
    return Certificates(tuple(found))


def _decide(tables: Tables, output: ScoreOf, statement: Statement) -> Certificate:
    kind, feature, sign, limit = statement
    bound = _bound(tables, statement)
    allowed = limit + tables.tolerance
    found, example, verdict = None, None, PROVEN
    if bound > allowed:
        is_isolated, is_unchanged = kind == "isolated", kind == "unchanged"
        pair = attack(tables, feature, sign=sign, of_others=is_isolated, by_others=is_unchanged)
        found, verdict = max(pair.gap, 0.0), UNDECIDED
        if pair.gap > allowed:
            verdict, example = REFUTED, _counterexample(tables, pair, limit)
    name = tables.model.feature_names[feature]
    claim = _claim(kind, name, output.title, sign=sign, limit=limit)
    return Certificate(
        kind, name, output.name, claim, verdict, limit, bound, tables.tolerance, tables.rounding, found, example
    )


def _bound(tables: Tables, statement: Statement) -> float:
    if statement.kind == "monotone":
        return tables.drop(statement.feature, statement.sign)
    bounds = {"max effect": tables.effect, "isolated": tables.changes, "unchanged": tables.changed}
    return bounds[statement.kind](statement.feature)


def _claim(kind: str, name: str, score: str, *, sign: int, limit: float) -> str:
    claims = {
        "monotone": f"A higher {name} never {'lowers' if sign > 0 else 'raises'} the {score}.",
        "max effect": f"{name} alone moves the {score} by at most {limit:g}.",
        "isolated": f"{name} changes how no other feature counts.",
        "unchanged": f"No other feature changes how {name} counts.",
    }
    return claims[kind]


def _counterexample(tables: Tables, pair: Pair, limit: float) -> Counterexample:
    from nae.certificates.slots import contributions

    rows = np.stack([pair.high, pair.low])
    found = contributions(tables, rows)
    scores = found.sum(axis=1) + float(tables.model.intercept @ tables.direction)
    compared = scores if pair.target is None else found[:, pair.target]
    names = tables.model.feature_names
    first, second = (values_on(tables.model, row) for row in rows)
    return Counterexample(
        features=names,
        first=first,
        second=second,
        scores=tuple(scores.tolist()),
        of="score" if pair.target is None else names[pair.target],
        compared=tuple(compared.tolist()),
        violation=pair.gap - limit,
    )
