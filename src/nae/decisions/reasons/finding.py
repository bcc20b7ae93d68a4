"""Find the reasons of rows: the features that count most for an outcome, and what their order survives."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from nae._typing import AnyArray, Array, IntArray
from nae.decisions.outcomes import Outcome, read_outcome
from nae.decisions.reasons.comparing import Compared
from nae.decisions.reasons.margins import Order, Survival
from nae.decisions.reasons.noise import read_tolerance, spans_of
from nae.decisions.reasons.reasons import Reasons
from nae.decisions.reasons.references import Reference, read_reference
from nae.decisions.reasons.wording import Wording, read_wording
from nae.encoding.beside import read_offset
from nae.encoding.cells import Cells
from nae.encoding.columns import Columns, is_missing
from nae.encoding.schema import Number
from nae.errors import ConfigError
from nae.explanation.local import as_given
from nae.explanation.units import check_unit
from nae.ranges import Span
from nae.tables.model import TableModel

__all__ = ["find_reasons"]

_PLACES = 2**22  # contributions of members that are kept at once
_EQUAL = 1e-5  # of the largest difference of a row; smaller ones are rounding


def find_reasons(
    model: TableModel,
    read: Callable[[Any], Columns],
    X: Any,
    *,
    k: Any = 4,
    toward: Any = None,
    against: Any = None,
    reference: Any = "mean",
    tolerance: Mapping[str, float] | None = None,
    unit: str = "score",
    offset: Any = None,
    output: str | int | None = None,
    wording: Any = None,
) -> Reasons:
    """Return the reasons of rows; see :meth:`nae.tables.answers.decides.Decides.reasons`."""
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
        raise ConfigError(f"k must be an integer of at least 1, the number of reasons per row; got {k!r}.")
    outcome = read_outcome(model, toward, against=against, output=output)
    words = read_wording(wording, model.feature_names)
    named = np.flatnonzero([words.of(name).named for name in model.feature_names])
    if not len(named):
        raise ConfigError("Of the wording, at least one feature must be named; every feature has named = false.")
    search = _Search(
        model=model,
        outcome=outcome,
        reference=read_reference(model, reference, read, outcome.direction),
        unit=check_unit(model, unit),
        amounts=read_tolerance(model, tolerance),
        named=named,
        n_reasons=min(int(k), len(named)),
    )
    return search.reasons(read(X), offset, words)


def _as_read(model: TableModel, columns: Columns) -> tuple[AnyArray, ...]:
    """Return the columns to show; booleans are True and False, however they were written."""
    found = as_given(model, columns)
    return tuple(
        _booleans(array) if isinstance(kind, Number) and kind.is_boolean else array
        for kind, array in zip(model.schema.features, found, strict=True)
    )


def _booleans(array: AnyArray) -> AnyArray:
    shown: AnyArray = np.empty(len(array), dtype=object)
    shown[:] = [
        None if is_none else bool(float(value)) for value, is_none in zip(array, is_missing(array), strict=True)
    ]
    return shown


@dataclass(frozen=True, eq=False)
class _Part:
    """What is found for a few rows; the names are those of :class:`Reasons`."""

    score: Array
    reference_score: Array
    prediction: Array
    reference_prediction: Array
    differences: Array
    own: Array
    features: IntArray
    margin: Array
    places: Array
    listed: Array
    found: Array
    agreeing: IntArray
    resolution: Array


@dataclass(frozen=True, eq=False)
class _Search:
    """What is asked about rows."""

    model: TableModel
    outcome: Outcome
    reference: Reference
    unit: str
    amounts: Array  # (feature,), the tolerance
    named: IntArray  # the features that may be named
    n_reasons: int

    def reasons(self, columns: Columns, offset: Any, wording: Wording) -> Reasons:
        """Return the reasons of rows."""
        model, parts = self.model, list(self._parts(columns, offset))
        return Reasons(
            outcome=self.outcome.name,
            title=self.outcome.title if self.unit == "score" else self.outcome.measure,
            measure=self.outcome.measure,
            reference=self.reference.name,
            unit=self.unit,
            classes=model.classes,
            feature_names=model.feature_names,
            n_members=model.n_members,
            tolerance=self.amounts,
            wording=wording,
            rows=np.arange(columns.n_rows),
            columns=_as_read(model, columns),
            **{item.name: np.concatenate([getattr(one, item.name) for one in parts]) for item in fields(_Part)},
        )

    def _parts(self, columns: Columns, offset: Any) -> Iterator[_Part]:
        """Yield what is found for the rows, a bounded number at once."""
        model = self.model
        cells = model.schema.locate(columns, dtype=model.experts.dtype)
        moved = read_offset(offset, len(cells), model.n_outputs, is_per_class=len(model.classes) > 2)
        moved = np.zeros((len(cells), model.n_outputs)) if moved is None else moved
        spans = spans_of(model, columns, self.amounts)
        step = max(1, _PLACES // (model.n_features * model.n_outputs * model.n_members))
        for start in range(0, max(len(cells), 1), step):
            rows = slice(start, start + step)
            yield self._part(cells.take(rows), moved[rows], [span.take(rows) for span in spans])

    def _part(self, cells: Cells, offset: Array, spans: Sequence[Span]) -> _Part:
        rows = Compared.of(
            self.model, cells, reference=self.reference, outcome=self.outcome, offset=offset, unit=self.unit
        )
        order = Order.of(rows.differences, self.named, self.n_reasons)
        resolution = _EQUAL * np.abs(rows.differences).max(axis=1)
        is_none = np.take_along_axis(rows.differences, order.listed, axis=1) <= resolution[:, None]
        survival = Survival.of(rows, order, spans)
        means = self.model.link.inverse(rows.start), self.model.link.inverse(rows.end)
        start, end = (self.outcome.predicted(mean) for mean in means)
        side = 1.0 if self.model.classes else self.outcome.share.sum()  # a low prediction is shown as it is
        is_score = self.unit == "score"
        return _Part(
            score=rows.end @ self.outcome.direction if is_score else end,
            reference_score=rows.start @ self.outcome.direction if is_score else start,
            prediction=side * end,
            reference_prediction=side * start,
            differences=rows.differences,
            own=rows.own,
            features=np.where(is_none, -1, order.listed),
            margin=np.where(is_none, np.nan, order.ahead(rows.differences, rows.differences)[0]),
            places=np.where(is_none[..., None], np.nan, survival.places),
            listed=np.where(is_none[..., None], np.nan, survival.listed),
            found=np.where(is_none, np.nan, survival.found),
            agreeing=np.where(is_none, 0, survival.agreeing),
            resolution=resolution,
        )
