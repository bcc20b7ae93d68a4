"""The largest and the smallest score that any input within limits can have: a proven bound, and an input near it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nae._words import counted
from nae.certificates import Tables, tables_of
from nae.encoding.cells import Cells
from nae.encoding.columns import Columns
from nae.encoding.schema import Category, Number
from nae.errors import ConfigError
from nae.explanation.inputs import shown_value, values_on
from nae.explanation.printed import digest
from nae.explanation.ranges import check_budget
from nae.explanation.scores import ScoreOf, scores_of
from nae.explanation.serial import Serial, make_frame
from nae.explanation.within import read_domains, value_within
from nae.ranges import Boxes, Domain, Problem, climb, row_at
from nae.tables.model import TableModel

__all__ = ["Extreme", "Extremes", "extremes"]

_WORK = 2**21  # boxes times logits, if no budget is given
_N_STARTS = 3


@dataclass(frozen=True)
class Extreme:
    """The largest or the smallest score: what is proven, and what was found."""

    side: str  # smallest or largest
    output: str
    values: tuple[Any, ...]  # the input that was found, a value for every feature; None is a missing value
    score: float  # of this input
    bound: float  # no input within the limits has a score beyond this one

    @property
    def gap(self) -> float:
        """How far the bound is from the score that was found: the extreme lies between the two."""
        return abs(self.bound - self.score)


@dataclass(frozen=True, eq=False)
class Extremes(Serial):
    """The smallest and the largest score of every output."""

    type_name: ClassVar[str] = "extremes"

    features: tuple[str, ...]
    extremes: tuple[Extreme, ...]  # smallest and largest by turns

    def __len__(self) -> int:
        return len(self.extremes)

    def __getitem__(self, at: int) -> Extreme:
        return self.extremes[at]

    @property
    def smallest(self) -> Extreme:
        """The smallest score of the first output."""
        return self.extremes[0]

    @property
    def largest(self) -> Extreme:
        """The largest score of the first output."""
        return self.extremes[1]

    def __repr__(self) -> str:
        return digest(
            f"Extremes({counted(len(self) // 2, 'score')})",
            {
                "extreme": [f"{one.side} {one.output}" for one in self.extremes],
                "found": [f"{one.score:.6g}" for one in self.extremes],
                "proven": [f"{one.bound:.6g}" for one in self.extremes],
                "gap": [f"{one.gap:.2g}" for one in self.extremes],
            },
            "text, to_frame()",
        )

    @property
    def text(self) -> str:
        """One sentence per extreme."""
        return "\n".join(self._sentence(one) for one in self.extremes)

    def _sentence(self, one: Extreme) -> str:
        where = ", ".join(
            f"{name} = {shown_value(value)}" for name, value in zip(self.features, one.values, strict=True)
        )
        word = "below" if one.side == "smallest" else "above"
        return f"The {one.side} {one.output} is {one.score:.6g} or up to {one.gap:.2g} {word}; found at {where}."

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame, one row per extreme, with the inputs that were found."""
        columns: dict[str, Any] = {
            name: [getattr(one, name) for one in self.extremes] for name in ("side", "output", "score", "bound", "gap")
        }
        inputs = {name: [one.values[i] for one in self.extremes] for i, name in enumerate(self.features)}
        return make_frame(columns | {f"at {name}": values for name, values in inputs.items()}, backend)


def extremes(
    model: TableModel, *, within: Mapping[str, Any] | None = None, budget: int | None = None, output: str | None = None
) -> Extremes:
    """Return the extremes of the score; see :meth:`nae.tables.answers.proves.Proves.extremes`."""
    limited = {domain.feature: domain for domain in read_domains(model, (), within)}
    free = [name for i, name in enumerate(model.feature_names) if i not in limited]
    domains = {domain.feature: domain for domain in read_domains(model, free, within)}
    ordered = [domains[i] for i in range(model.n_features)]
    if budget is None:
        budget = int(np.clip(_WORK // (model.n_experts * model.n_features * model.n_members), 64, 4096))
    found: list[Extreme] = []
    for score in _scores(model, output):
        tables = tables_of(model, score.direction)
        found += [
            _extreme(model, score, tables, ordered, within or {}, budget=check_budget(budget), sign=sign)
            for sign in (-1, 1)
        ]
    return Extremes(model.feature_names, tuple(found))


def _scores(model: TableModel, output: str | None) -> list[ScoreOf]:
    if len(model.classes) > 2 and output is None:
        raise ConfigError(
            f"The extremes of a model of {len(model.classes)} classes are those of one class's log-odds against each "
            f"other class; none is named. Pass one, such as output={model.classes[0]!r}."
        )
    return scores_of(model, output, is_score=True)


def _extreme(
    model: TableModel,
    score: ScoreOf,
    tables: Tables,
    domains: Sequence[Domain],
    within: Mapping[str, Any],
    *,
    budget: int,
    sign: int,
) -> Extreme:
    """Return the largest (``sign`` 1) or the smallest value of one score."""
    margin = 2 * tables.rounding
    row, reached = _climbed(tables, _random_rows(domains), domains, sign)
    boxes = Boxes.of(Problem.of(tables, row, domains, sign=sign), budget)
    boxes.halve(sign * reached + tables.tolerance + margin)
    refined = [line.domain for line in boxes.problem.lines]
    near = [row_at(refined, vertices) for vertices in boxes.best_vertices(_N_STARTS)]
    best, _ = _climbed(tables, [row, *near], refined, sign)
    values = _values(model, best, within)
    return Extreme(
        side="largest" if sign > 0 else "smallest",
        output=score.title,
        values=values,
        score=float(np.ravel(_score_of(model, values) @ score.direction)[0]),
        bound=sign * float(boxes.highest[0] + margin),
    )


def _random_rows(domains: Sequence[Domain]) -> list[Cells]:
    random = np.random.default_rng(0)
    return [row_at(domains, np.array([random.integers(len(one)) for one in domains])) for _ in range(_N_STARTS)]


def _climbed(tables: Tables, starts: Sequence[Cells], domains: Sequence[Domain], sign: int) -> tuple[Cells, float]:
    found = [climb(tables, start, domains, sign) for start in starts]
    return max(found, key=lambda one: sign * one[1])


def _score_of(model: TableModel, values: tuple[Any, ...]) -> Any:
    """Return the scores of one input as the model computes them, (1, output)."""
    columns = tuple(_column(value) for value in values)
    cells = model.schema.locate(Columns(columns, model.feature_names), dtype=model.experts.dtype)
    return model.decision_function(cells).reshape(1, -1)


def _column(value: Any) -> Any:
    return np.array([value], dtype=np.float64 if isinstance(value, float) else object)


def _values(model: TableModel, row: Cells, within: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the value of every feature of a row, within its limits."""
    on_slots = values_on(model, row.slot[0])
    return tuple(_value(model, row, i, within, on_slots[i]) for i in range(model.n_features))


def _value(model: TableModel, row: Cells, i: int, within: Mapping[str, Any], on_slot: Any) -> Any:
    feature, fraction = model.schema.features[i], float(row.fraction[0, i])
    between = _between(feature, int(row.slot[0, i] - model.schema.offsets[i]), fraction) if fraction else on_slot
    return value_within(feature, within[feature.name], between) if feature.name in within else between


def _between(feature: Number | Category, knot: int, fraction: float) -> float:
    if not isinstance(feature, Number):
        raise TypeError(f"{feature.name!r} has no values between two slots.")
    low, high = (float(end) for end in feature.knots[knot : knot + 2])
    return low * (1 - fraction) + high * fraction
