"""Which unknown feature to ask for next: the one whose answer narrows the range of the score most."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from nae._typing import Array, IntArray
from nae._words import counted
from nae.certificates import tables_of
from nae.encoding.columns import Columns, is_missing
from nae.encoding.frames import read_table
from nae.errors import DataError, UserError
from nae.explanation.printed import digest
from nae.explanation.ranges import OpenRows, check_budget
from nae.explanation.serial import Serial, make_frame
from nae.explanation.within import read_domains, without
from nae.ranges import Domain
from nae.tables.model import TableModel

__all__ = ["Question", "Questions", "next_question"]

_MOST_ANSWERS = 32  # that are tried per feature


@dataclass(frozen=True)
class Question:
    """What is known about the range of the score once a feature is known."""

    feature: str
    expected: float  # the mean width of the range over the answers, weighted by the training rows
    worst: float  # the width after the worst of these answers
    narrows: float  # the share of today's width that the answer takes away, in the mean


@dataclass(frozen=True, eq=False)
class Questions(Serial):
    """The unknown features of a row; the first one narrows the range most."""

    type_name: ClassVar[str] = "questions"

    width: float  # of today's range; with several outputs, the sum of their widths
    questions: tuple[Question, ...]

    def __len__(self) -> int:
        return len(self.questions)

    def __getitem__(self, at: int) -> Question:
        return self.questions[at]

    @property
    def feature(self) -> str:
        """The feature to ask for."""
        return self.questions[0].feature

    def __repr__(self) -> str:
        title = f"Questions({counted(len(self), 'unknown feature')}, the range is {self.width:.4g} wide)"
        return digest(title, self._columns, "to_frame()")

    @property
    def _columns(self) -> dict[str, list[Any]]:
        names = ("feature", "expected", "worst", "narrows")
        return {name: [getattr(one, name) for one in self.questions] for name in names}

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame, one row per unknown feature."""
        return make_frame(self._columns, backend)


def next_question(
    model: TableModel,
    read: Callable[[Any], Columns],
    row: Any,
    *,
    unknown: Any = None,
    within: Mapping[str, Any] | None = None,
    budget: int = 16,
) -> Questions:
    """Return the unknown features in order; see :meth:`nae.tables.answers.proves.Proves.next_question`."""
    names = _unknown_names(model, row, within) if unknown is None else unknown
    domains = read_domains(model, names, within)
    if not domains:
        raise UserError("next_question needs a feature that is unknown; the row has a value for every feature.")
    cells = model.schema.locate(read(without(row, model, domains)), dtype=model.experts.dtype)
    if len(cells) != 1:
        raise DataError(f"next_question needs a single row; got {len(cells)}.")
    open_row = OpenRows(model, cells, domains, check_budget(budget), np.zeros((1, model.n_outputs)))
    width = float(_widths(open_row)[0])
    found = [_question(open_row, domain, width) for domain in domains]
    return Questions(width, tuple(sorted(found, key=lambda one: one.expected)))


def _question(row: OpenRows, domain: Domain, width: float) -> Question:
    vertices, weights = _answers(row.model, domain)
    cells = domain.place(row.cells.take(np.zeros(len(vertices), dtype=np.int64)), vertices)
    others = tuple(one for one in row.domains if one.feature != domain.feature)
    widths: Array = np.zeros(len(cells))
    if others:
        offset = np.zeros((len(cells), row.model.n_outputs))
        widths = _widths(replace(row, cells=cells, domains=others, offset=offset))
    expected = float(widths @ weights)
    name = row.model.feature_names[domain.feature]
    return Question(name, expected, float(widths.max()), 1 - expected / width if width else 0.0)


def _answers(model: TableModel, domain: Domain) -> tuple[IntArray, Array]:
    """Return the vertices that stand for answers, and their weights, which sum to one.

    An answer is a known value, so missing and unseen do not count, unless there is nothing else.
    """
    first, n_values = int(model.schema.offsets[domain.feature]), model.schema.features[domain.feature].n_values
    known = np.flatnonzero(domain.slot < first + n_values)
    known = known if len(known) else np.arange(len(domain))
    weights = np.ones(len(known))
    if model.statistics is not None:
        weights = domain.read(model.statistics.weight)[known].astype(np.float64)
        weights = weights if weights.sum() > 0 else np.ones(len(known))
    return _thinned(known, weights)


def _thinned(vertices: IntArray, weights: Array) -> tuple[IntArray, Array]:
    """Return at most 32 vertices, each for an equal part of the weight, if there are more."""
    if len(vertices) > _MOST_ANSWERS:
        mass = np.cumsum(weights) / weights.sum()
        at = np.searchsorted(mass, (np.arange(_MOST_ANSWERS) + 0.5) / _MOST_ANSWERS)
        vertices, counts = np.unique(vertices[np.minimum(at, len(vertices) - 1)], return_counts=True)
        weights = counts.astype(np.float64)
    return vertices, np.asarray(weights / weights.sum())


def _widths(rows: OpenRows) -> Array:
    """Return the width of every row's range, (row,): the sum over the outputs."""
    ends = [rows.ends(tables_of(rows.model, direction)) for direction in np.eye(rows.model.n_outputs)]
    return np.asarray(sum(upper - lower for lower, upper in ends))


def _unknown_names(model: TableModel, row: Any, within: Mapping[str, Any] | None) -> Sequence[str]:
    """Return the names of the features that a row lacks, or that are missing in it."""
    columns = read_table(row, only=model.feature_names if model.schema.has_names else None)
    has_names = columns.names is not None and model.schema.has_names
    names = columns.names if has_names and columns.names is not None else model.feature_names
    values = dict(zip(names, columns.arrays, strict=False))
    absent = [name for name in model.feature_names if name not in values or is_missing(values[name]).any()]
    return [name for name in absent if name not in (within or {})]
