"""Rows with their scores and their truth: those that members held out, or those that a user gives."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import AnyArray, Array, IntArray
from nae.encoding.cells import Cells
from nae.encoding.columns import Columns
from nae.encoding.target import check_domain
from nae.quality.baseline import Criterion
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
    level: AnyArray | None = None  # (B,), the level of each row in a column, as text

    @property
    def folds(self) -> IntArray:
        """The fold of each row; those that have none are dealt out to five, one after the other."""
        return np.arange(len(self)) % _N_FOLDS if self.fold is None else self.fold

    def __len__(self) -> int:
        return len(self.weight)

    def take(self, rows: AnyArray | slice) -> "Outcomes":
        """Return some of the rows."""
        fold, level = (None if part is None else part[rows] for part in (self.fold, self.level))
        return Outcomes(self.cells.take(rows), self.score[rows], self.truth[rows], self.weight[rows], fold, level)


def read_outcomes(
    model: TableModel, columns: Columns, y: Any, *, offset: Any = None, level: AnyArray | None = None
) -> Outcomes:
    """Return the rows of a table whose target is known, each with weight one."""
    rows = read_rows(model, columns, y, None, offset)
    if not model.classes:
        check_domain(float(rows.truth.min()), Criterion.of(model.training).domain)
    score = model.decision_function(rows.cells, offset=rows.offset).reshape(len(rows.truth), -1)
    truth = rows.truth if model.classes else np.broadcast_to(rows.truth, score.shape)
    own = None if level is None else level[rows.positions]
    return Outcomes(rows.cells, score, truth, np.ones(len(score)), level=own)
