"""Certificates: for every statement about a model, whether its tables prove it, an input refutes it, or neither.

A statement is proven if the upper bound of :mod:`nae.certificates.proofs` is within what the statement allows. If not,
a search looks for two inputs that break it. The conditions of the proofs are sufficient, not necessary, so some true
statements remain undecided.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from nae._words import counted
from nae.certificates import Pair, Tables, attack, tables_of
from nae.encoding.schema import Category
from nae.errors import ConfigError, UserError
from nae.explanation.inputs import rounded_up, shown_value, values_on
from nae.explanation.printed import digest
from nae.explanation.scores import ScoreOf, scores_of
from nae.explanation.serial import Serial, make_frame
from nae.tables.model import TableModel

__all__ = ["Certificate", "Certificates", "Counterexample", "certify"]

PROVEN, REFUTED, UNDECIDED = "proven", "refuted", "undecided"
_DIRECTIONS = {"increasing": 1, "+": 1, 1: 1, "decreasing": -1, "-": -1, -1: -1}


@dataclass(frozen=True)
class Counterexample:
    """Two inputs that break a statement. None is a missing value."""

    features: tuple[str, ...]
    first: tuple[Any, ...]  # the value of every feature
    second: tuple[Any, ...]
    scores: tuple[float, ...]  # of the two inputs
    of: str  # what is compared: 'score', or the feature whose contributions are
    compared: tuple[float, ...]  # the two scores or contributions
    violation: float  # how far beyond the limit they are apart

    @property
    def changed(self) -> tuple[str, ...]:
        """The features in which the two inputs differ."""
        pairs = zip(self.features, self.first, self.second, strict=True)
        return tuple(name for name, one, other in pairs if one != other)

    @property
    def sentence(self) -> str:
        """The counterexample in words."""
        rows = list(zip(self.features, self.first, self.second, strict=True))
        same = ", ".join(f"{name} = {shown_value(one)}" for name, one, other in rows if one == other)
        moved = ", ".join(
            f"{name} from {shown_value(one)} to {shown_value(other)}" for name, one, other in rows if one != other
        )
        what = "the score" if self.of == "score" else f"the contribution of {self.of}"
        where = f", with {same}" if same else ""
        return f"Changing {moved} takes {what} from {self.compared[0]:.6g} to {self.compared[1]:.6g}{where}."


@dataclass(frozen=True)
class Certificate:
    """One statement and its verdict. All numbers are in units of the score."""

    kind: str  # monotone, max effect, isolated or unchanged
    feature: str
    output: str  # the target or class, or two classes: 'a against b'
    claim: str  # the statement in words
    verdict: str  # proven, refuted or undecided
    limit: float  # the change that the statement allows
    bound: float  # the largest change that the tables allow, for any input; it may be infinite
    tolerance: float  # a violation up to this size counts as none
    rounding: float  # the most by which rounding changes a computed score
    found: float | None = None  # the largest change that the search found; None if the statement is proven
    counterexample: Counterexample | None = None

    @property
    def margin(self) -> float:
        """How far the bound is from a violation; negative if nothing is proven."""
        return self.limit + self.tolerance - self.bound

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if self.verdict == PROVEN:
            numbers = f"limit {self.limit:.4g}, tolerance {self.tolerance:.2g}, rounding {rounded_up(self.rounding)}"
            return f"Proven: {self.claim} For any input, the change is at most {rounded_up(self.bound)} ({numbers})."
        if self.counterexample is not None:
            return f"Refuted: {self.claim} {self.counterexample.sentence}"
        return (
            f"Undecided: {self.claim} The tables allow a change of up to {rounded_up(self.bound)}; "
            f"the largest that a search found is {self.found or 0.0:.4g}."
        )


@dataclass(frozen=True, eq=False)
class Certificates(Serial):
    """The verdicts on several statements."""

    type_name: ClassVar[str] = "certificates"

    certificates: tuple[Certificate, ...]

    def __len__(self) -> int:
        return len(self.certificates)

    def __getitem__(self, at: int) -> Certificate:
        return self.certificates[at]

    def __repr__(self) -> str:
        names = (PROVEN, REFUTED, UNDECIDED)
        counts = [f"{sum(one.verdict == name for one in self.certificates)} {name}" for name in names]
        title = f"Certificates({counted(len(self), 'statement')}: {', '.join(counts)})"
        return digest(
            title,
            {
                "statement": [one.claim for one in self.certificates],
                "verdict": [one.verdict for one in self.certificates],
                "limit": [f"{one.limit:.4g}" for one in self.certificates],
                "at most": [rounded_up(one.bound) for one in self.certificates],
                "found": ["" if one.found is None else f"{one.found:.4g}" for one in self.certificates],
            },
            "text, to_frame()",
        )

    @property
    def all_proven(self) -> bool:
        """Whether every statement is proven."""
        return all(one.verdict == PROVEN for one in self.certificates)

    @property
    def text(self) -> str:
        """One sentence per statement."""
        return "\n".join(one.sentence for one in self.certificates)

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame, one row per statement and output."""
        names = ("kind", "feature", "output", "claim", "verdict", "limit", "bound", "margin", "tolerance", "rounding")
        columns: dict[str, Any] = {name: [getattr(one, name) for one in self.certificates] for name in names}
        return make_frame(columns | {"sentence": [one.sentence for one in self.certificates]}, backend)


class _Statement(NamedTuple):
    kind: str
    feature: int
    sign: int = 0
    limit: float = 0.0


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
    statements = [
        *(_monotone(model, name, way) for name, way in _mapping(monotone, "monotone", "increasing").items()),
        *(_max_effect(model, name, limit) for name, limit in _mapping(max_effect, "max_effect", 0.05).items()),
        *(_Statement("isolated", model.schema.index(name)) for name in _names(isolated, "isolated")),
        *(_Statement("unchanged", model.schema.index(name)) for name in _names(unchanged, "unchanged")),
    ]
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


def _decide(tables: Tables, output: ScoreOf, statement: _Statement) -> Certificate:
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


def _bound(tables: Tables, statement: _Statement) -> float:
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


def _monotone(model: TableModel, name: str, way: Any) -> _Statement:
    at = model.schema.index(name)
    if not isinstance(way, (str, int, np.integer)) or isinstance(way, bool) or way not in _DIRECTIONS:
        raise ConfigError(f"A direction must be 'increasing' (+) or 'decreasing' (-); got {way!r} for {name!r}.")
    feature = model.schema.features[at]
    if isinstance(feature, Category):
        raise ConfigError(
            f"A monotone statement needs a feature with an order; {name!r} is a category of "
            f"{counted(len(feature.levels), 'level')}. Use max_effect or isolated for it."
        )
    return _Statement("monotone", at, sign=_DIRECTIONS[way])


def _max_effect(model: TableModel, name: str, limit: Any) -> _Statement:
    at = model.schema.index(name)
    is_number = isinstance(limit, (int, float, np.number)) and not isinstance(limit, bool)
    if not is_number or not 0 <= limit < math.inf:
        raise ConfigError(f"A max effect must be a number of at least 0, in units of the score; got {limit!r}.")
    return _Statement("max effect", at, limit=float(limit))


def _mapping(given: Any, parameter: str, example: object) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ConfigError(
            f"{parameter} must be a dict by the names of features, such as {{'income': {example!r}}}; got {given!r}."
        )
    return given


def _names(given: Any, parameter: str) -> list[str]:
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(name, str) for name in names):
        raise ConfigError(f"{parameter} must be a list of the names of features; got {given!r}.")
    return names
