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
from nae.uncertainty.remembering import calibrated, ends_of, scales
from nae.uncertainty.responses import response_of
from nae.uncertainty.source import Basis, basis_of

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
) -> PredictionInterval:
    """Return the intervals of a table's rows; see :meth:`nae.tables.answers.doubts.Doubts.predict_interval`."""
    if model.classes:
        raise UserError("predict_interval needs a model of numbers; this one predicts classes. Use predict_set.")
    check_coverage(coverage)
    if calibrate_on is not None:
        model = calibrated(model, read(calibrate_on[0]), *calibrate_on[1:])
    basis, tails = basis_of(model, coverage)
    cells = model.cells(read(X))
    score = model.decision_function(cells, offset=offset).reshape(len(cells), -1)
    response, size = response_of(model), scales(model, cells, score)
    low, high = ends_of(model, tails, coverage)
    squeeze = (slice(None), 0) if model.n_outputs == 1 else slice(None)
    return PredictionInterval(
        prediction=np.asarray(model.link.inverse(score))[squeeze],
        lower=response.targets(score, size * low)[squeeze],
        upper=response.targets(score, size * high)[squeeze],
        outputs=model.outputs,
        coverage=coverage,
        basis=basis,
    )
