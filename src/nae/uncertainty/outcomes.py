"""Rows with their scores and their truth: those that members held out, or those that a user gives."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import AnyArray, Array, IntArray
from nae.encoding.cells import Cells
from nae.quality.rows import read_rows
from nae.tables.model import TableModel

__all__ = ["Outcomes", "read_outcomes"]


_N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Rows that were predicted without having been learned from."""

    cells: Cells
    score: Array  # (B, O), offset included
    truth: Array  # (B, O) numbers, or (B, 1) positions among the classes
    weight: Array  # (B,)
    fold: IntArray | None = None  # (B,), the fold that each row was held out with

    @property
    def folds(self) -> IntArray:
        """The fold of each row; those that have none are dealt out to five, one after the other."""
        return np.arange(len(self)) % _N_FOLDS if self.fold is None else self.fold

    def __len__(self) -> int:
        return len(self.weight)

    def take(self, rows: AnyArray | slice) -> "Outcomes":
        """Return some of the rows."""
        fold = None if self.fold is None else self.fold[rows]
        return Outcomes(self.cells.take(rows), self.score[rows], self.truth[rows], self.weight[rows], fold)


def read_outcomes(model: TableModel, X: Any, y: Any, *, offset: Any = None) -> Outcomes:
    """Return the rows of a table whose target is known, each with weight one."""
    rows = read_rows(model, X, y, None, offset)
    score = model.decision_function(rows.cells, offset=rows.offset).reshape(len(rows.truth), -1)
    truth = rows.truth if model.classes else np.broadcast_to(rows.truth, score.shape)
    return Outcomes(rows.cells, score, truth, np.ones(len(score)))
