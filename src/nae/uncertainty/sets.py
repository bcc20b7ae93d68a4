"""Prediction sets: the classes among which the true one is, with a stated probability."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nae._typing import Array, BoolArray
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
from nae.uncertainty.source import Basis

__all__ = ["PredictionSet", "predict_set"]


_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class PredictionSet(Serial):
    """The classes that every row may have, so that the true one is among them for a stated share of rows."""

    type_name: ClassVar[str] = "prediction set"

    members: Array  # (row, class), 1 where the class is in the set
    probability: Array  # (row, class)
    classes: tuple[str, ...]
    coverage: float
    basis: Basis
    """What the sets were measured on, and whether their coverage is guaranteed."""
    levels: tuple[str, ...] = ()
    """The level of a column whose residuals stand for the row, per row; empty where all rows have the same."""

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        title = f"PredictionSet({counted(len(self), 'row')}, {self.coverage:.4g}, {self.basis})"
        rows = {"row": [str(row) for row in range(len(self))], "set": [", ".join(one) for one in self.sets]}
        return digest(title, rows, "to_frame()")

    @property
    def contains(self) -> BoolArray:
        """Whether each class is in the set of each row, (row, class)."""
        return np.asarray(self.members > 0)

    @property
    def size(self) -> Array:
        """The number of classes in every set, (row,)."""
        return np.asarray(self.members.sum(axis=1))

    @property
    def sets(self) -> tuple[tuple[str, ...], ...]:
        """The names of the classes in every set, the most probable first."""
        order = np.argsort(-self.probability, axis=1, kind="stable")
        return tuple(
            tuple(self.classes[at] for at in own if is_in[at]) for own, is_in in zip(order, self.contains, strict=True)
        )

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame, one row per row of the table: the set as text, and its size."""
        return make_frame({"set": [", ".join(one) for one in self.sets], "size": self.size}, backend)


def predict_set(
    model: TableModel,
    read: Callable[[Any], Columns],
    X: Any,
    *,
    coverage: float = 0.9,
    offset: Any = None,
    calibrate_on: Any = None,
    by: str | None = None,
    allow_empty: bool = False,
) -> PredictionSet:
    """Return the sets of a table's rows; see :meth:`nae.tables.answers.doubts.Doubts.predict_set`."""
    if not model.classes:
        raise UserError("predict_set needs a classifier; this model predicts numbers. Use predict_interval.")
    check_coverage(coverage)
    model = knowing(model, read, calibrate_on, by=by)
    cells = model.cells(read(without_by(X, model, known_by(model))))
    chance = model.predict_proba(cells, offset=offset)
    basis, levels, (_, most) = row_ends(model, coverage, X, len(chance))
    is_in = chance >= 1 - most - _ROUNDING
    if not allow_empty:
        is_in[np.arange(len(chance)), chance.argmax(axis=1)] = True
    return PredictionSet(is_in.astype(np.float64), chance, model.classes, coverage, basis, levels)
