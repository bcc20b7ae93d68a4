"""Prediction intervals: where the target of a row will be, with a stated probability."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nae._typing import Array
from nae._words import counted
from nae.encoding.columns import Columns
from nae.errors import UserError
from nae.explanation.printed import digest
from nae.explanation.serial import Serial, make_frame
from nae.tables.evidence import check_coverage
from nae.tables.model import TableModel
from nae.uncertainty.calibrating import knowing
from nae.uncertainty.ends import row_ends
from nae.uncertainty.levels import known_by, without_by
from nae.uncertainty.remembering import scales
from nae.uncertainty.responses import response_of
from nae.uncertainty.source import Basis

__all__ = ["PredictionInterval", "predict_interval"]


@dataclass(frozen=True, eq=False)
class PredictionInterval(Serial):
    """The prediction of every row, and an interval that holds the target of a stated share of rows."""

    type_name: ClassVar[str] = "prediction interval"

    prediction: Array  # (row,) or (row, output)
    lower: Array
    upper: Array
    outputs: tuple[str, ...]
    coverage: float
    basis: Basis
    """What the intervals were measured on, and whether their coverage is guaranteed."""
    levels: tuple[str, ...] = ()
    """The level of a column whose residuals stand for the row, per row; empty where all rows have the same."""

    def __len__(self) -> int:
        return len(self.lower)

    def __repr__(self) -> str:
        title = f"PredictionInterval({counted(len(self), 'row')}, {self.coverage:.4g}, {self.basis})"
        shown = {name: column.tolist() for name, column in self.columns.items()}
        return digest(title, {"row": [str(row) for row in range(len(self))]} | shown, "to_frame()")

    @property
    def width(self) -> Array:
        """The distance of the ends, (row,) or (row, output)."""
        return self.upper - self.lower

    @property
    def columns(self) -> dict[str, Array]:
        """Prediction and ends by name, (row,) each."""
        found: dict[str, Array] = {}
        for at, name in enumerate(self.outputs):
            suffix = "" if len(self.outputs) == 1 else f" of {name}"
            for word, values in (("prediction", self.prediction), ("lower", self.lower), ("upper", self.upper)):
                found[f"{word}{suffix}"] = values.reshape(len(self), -1)[:, at]
        return found

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame, one row per row of the table."""
        return make_frame(self.columns, backend)


def predict_interval(
    model: TableModel,
    read: Callable[[Any], Columns],
    X: Any,
    *,
    coverage: float = 0.9,
    offset: Any = None,
    calibrate_on: Any = None,
    by: str | None = None,
) -> PredictionInterval:
    """Return the intervals of a table's rows; see :meth:`nae.tables.answers.doubts.Doubts.predict_interval`."""
    if model.classes:
        raise UserError("predict_interval needs a model of numbers; this one predicts classes. Use predict_set.")
    check_coverage(coverage)
    model = knowing(model, read, calibrate_on, by=by)
    cells = model.cells(read(without_by(X, model, known_by(model))))
    score = model.decision_function(cells, offset=offset).reshape(len(cells), -1)
    basis, levels, (low, high) = row_ends(model, coverage, X, len(cells))
    response, size = response_of(model), scales(model, cells, score)
    lower, upper = response.targets(score, size * low), response.targets(score, size * high)
    if basis.is_whole:
        lower, upper = whole_within(lower, upper)
    squeeze = (slice(None), 0) if model.n_outputs == 1 else slice(None)
    return PredictionInterval(
        prediction=np.asarray(model.link.inverse(score))[squeeze],
        lower=lower[squeeze],
        upper=upper[squeeze],
        outputs=model.outputs,
        coverage=coverage,
        basis=basis,
        levels=levels,
    )


def whole_within(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return the smallest and the largest whole number between two ends; if there is none, the nearest to both."""
    first, last = np.ceil(lower - 1e-9), np.floor(upper + 1e-9)
    nearest = np.rint((lower + upper) / 2)
    is_none = first > last
    return np.where(is_none, nearest, first), np.where(is_none, nearest, last)
