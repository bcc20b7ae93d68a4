"""Certify statements: prove each from the tables, or search for inputs that refute it.

A statement is proven if the upper bound of :mod:`nae.certificates` is within what the statement allows. If not, a
search looks for inputs that break it. The conditions of the proofs are sufficient, not necessary, so some true
statements remain undecided.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from nae._typing import Array, IntArray
from nae.certificates import Neighbours, Tables, attack, find_bend, tables_of
from nae.certificates.slots import contributions
from nae.errors import FormatError, UserError
from nae.explanation.certificates import PROVEN, REFUTED, UNDECIDED, Certificate, Certificates, Counterexample
from nae.explanation.inputs import values_on
from nae.explanation.scores import ScoreOf, pairs_of, scores_of
from nae.explanation.statements import Statement, read_promises, read_statements
from nae.tables.model import TableModel

__all__ = ["certify", "certify_promises", "verify"]


def certify(
    model: TableModel,
    *,
    monotone: Mapping[str, str | int] | None = None,
    max_effect: Mapping[str, float] | None = None,
    isolated: Iterable[str] | str = (),
    unchanged: Iterable[str] | str = (),
    curved: Mapping[str, str] | None = None,
    ordered: bool = False,
    output: str | None = None,
) -> Certificates:
    """Return the verdict on every statement; see :meth:`nae.tables.answers.proves.Proves.certify`."""
    given: dict[str, Any] = {
        "monotone": monotone,
        "max_effect": max_effect,
        "isolated": isolated,
        "unchanged": unchanged,
        "curved": curved,
        "ordered": ordered,
    }
    statements = read_statements(model, **given)
    if not statements:
        return certify_promises(model, output)
    return _certify(model, statements, output)


def verify(model: TableModel, *, name: str = "The model") -> Certificates:
    """Return the verdicts on what the model promises. A promise that is not proven is an error; see ``nae.load``."""
    if not model.training.constraints:
        return Certificates(())
    try:
        found = certify_promises(model)
    except UserError as error:
        raise FormatError(f"{name} must keep what its fit promised. {error}") from error
    for one in found.certificates:
        if one.verdict != PROVEN:
            raise FormatError(f"{name} must keep what its fit promised. {one.sentence}")
    return found


def certify_promises(model: TableModel, output: str | None = None) -> Certificates:
    """Return the verdict on what the model promises; it is an error if it promises nothing."""
    promises = read_promises(model)
    named = promises.pop("output", None)
    statements = read_statements(model, **promises)
    if not statements:
        raise UserError(
            "certify needs at least one statement; none is given, and the model promises nothing. "
            f"Pass one, such as isolated=[{model.feature_names[0]!r}]."
        )
    return _certify(model, statements, output or named, is_promise=True)


def _certify(
    model: TableModel, statements: list[Statement], output: str | None, *, is_promise: bool = False
) -> Certificates:
    tables: dict[str, Tables] = {}
    found = []
    for statement in statements:
        if statement.kind == "ordered":
            found.append(_on_outputs(model, statement.position))
            continue
        for score in _scores(model, statement, output, is_promise=is_promise):
            if score.name not in tables:
                tables[score.name] = tables_of(model, score.direction)
            found.append(_on_feature(tables[score.name], score, statement))
    return Certificates(tuple(found))


def _scores(model: TableModel, statement: Statement, output: str | None, *, is_promise: bool) -> list[ScoreOf]:
    """Return the scores that a statement is about. Without an output, a promise is about any two classes."""
    is_score = statement.kind in _ABOUT_SCORES
    if is_promise and not is_score:
        output = None
    if is_promise and is_score and output is None and len(model.classes) > 2:
        return pairs_of(model)
    return scores_of(model, output, is_score=is_score)


class _Find(NamedTuple):
    """The inputs that break a statement most, of those that were tried."""

    gap: float
    rows: IntArray  # of slots, (row, feature)
    shares: Array | None = None  # of a chord
    target: int | None = None  # the feature whose contributions are compared; None for the score


class _Kind(NamedTuple):
    """How a kind of statement about a feature is decided."""

    bound: Callable[[Tables, Statement], float]
    search: Callable[[Tables, Statement], _Find]


def _pair(tables: Tables, statement: Statement, *, of_others: bool = False, by_others: bool = False) -> _Find:
    found = attack(tables, statement.position, sign=statement.sign, of_others=of_others, by_others=by_others)
    return _Find(found.gap, np.stack([found.high, found.low]), target=found.target)


def _bend(tables: Tables, statement: Statement) -> _Find:
    found = find_bend(tables, statement.position, statement.sign)
    return _Find(found.gap, found.rows, found.shares)


_KINDS = {
    "monotone": _Kind(lambda tables, one: tables.drop(one.position, one.sign), _pair),
    "max effect": _Kind(lambda tables, one: tables.effect(one.position), _pair),
    "isolated": _Kind(
        lambda tables, one: tables.changes(one.position), lambda tables, one: _pair(tables, one, of_others=True)
    ),
    "unchanged": _Kind(
        lambda tables, one: tables.changed(one.position), lambda tables, one: _pair(tables, one, by_others=True)
    ),
    "curved": _Kind(lambda tables, one: tables.bend(one.position, one.sign), _bend),
}
_ABOUT_SCORES = ("monotone", "max effect", "curved")


def _on_feature(tables: Tables, score: ScoreOf, statement: Statement) -> Certificate:
    kind = _KINDS[statement.kind]
    bound = kind.bound(tables, statement)
    allowed = statement.limit + tables.tolerance
    found, example, verdict = None, None, PROVEN
    if bound > allowed:
        find = kind.search(tables, statement)
        found, verdict = max(find.gap, 0.0), UNDECIDED
        if find.gap > allowed:
            verdict, example = REFUTED, _counterexample(tables, find, statement.limit)
    return Certificate(
        kind=statement.kind,
        feature=tables.model.feature_names[statement.position],
        output=score.name,
        claim=statement.claim(tables.model, score.title),
        verdict=verdict,
        limit=statement.limit,
        bound=bound,
        tolerance=tables.tolerance,
        rounding=tables.rounding,
        found=found,
        counterexample=example,
        way=statement.way,
    )


def _counterexample(tables: Tables, find: _Find, limit: float) -> Counterexample:
    values = contributions(tables, find.rows)
    scores = values.sum(axis=1) + float(tables.model.intercept @ tables.direction)
    names = tables.model.feature_names
    compared = scores if find.target is None else values[:, find.target]
    if find.shares is not None:
        compared = np.array([scores[1], find.shares @ scores])
    return Counterexample(
        features=names,
        inputs=tuple(values_on(tables.model, row) for row in find.rows),
        scores=tuple(scores.tolist()),
        of="score" if find.target is None else names[find.target],
        compared=tuple(compared.tolist()),
        violation=find.gap - limit,
    )


def _on_outputs(model: TableModel, lower: int) -> Certificate:
    """Return whether an output and the one after it can cross."""
    pair, names = Neighbours.of(model, lower), model.outputs[lower : lower + 2]
    bound = pair.crossing()
    found, example, verdict = None, None, PROVEN
    if bound > pair.tolerance:
        crossing = pair.find()
        found, verdict = max(crossing.gap, 0.0), UNDECIDED
        if crossing.gap > pair.tolerance:
            verdict, example = REFUTED, _crossed(pair, crossing.row, names, crossing.gap)
    return Certificate(
        kind="ordered",
        feature="",
        output=f"{names[0]} and {names[1]}",
        claim=f"The score of {names[0]} is never above that of {names[1]}.",
        verdict=verdict,
        limit=0.0,
        bound=bound,
        tolerance=pair.tolerance,
        rounding=pair.rounding,
        found=found,
        counterexample=example,
    )


def _crossed(pair: Neighbours, row: IntArray, names: tuple[str, ...], gap: float) -> Counterexample:
    model = pair.apart.model
    scores = tuple(_score(tables, row) for tables in (pair.lower, pair.upper))
    inputs = (values_on(model, row),)
    return Counterexample(model.feature_names, inputs, scores, f"{names[0]} and {names[1]}", scores, gap)


def _score(tables: Tables, row: IntArray) -> float:
    return float(contributions(tables, row[None]).sum() + tables.model.intercept @ tables.direction)
