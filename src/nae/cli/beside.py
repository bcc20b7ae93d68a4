"""Columns of a table that are not features: the offset and the weight of every row."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from nae._typing import Array
from nae.cli.columns import column_of, find_column, to_numbers
from nae.cli.console import say
from nae.errors import DataError
from nae.quality import check_offset
from nae.tables import TableModel
from nae.tables.summary import TrainingSummary

__all__ = ["Beside", "find_beside", "find_remembered", "note_offset"]


@dataclass(frozen=True)
class Beside:
    """The names of the columns: one offset per output or class, and one weight."""

    offset: tuple[str, ...] = ()
    weight: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.offset, *((self.weight,) if self.weight is not None else ()))

    @property
    def words(self) -> str:
        """A phrase that names the columns, to follow the rows that are measured."""
        parts = [f"offset {', '.join(map(repr, self.offset))}"] if self.offset else []
        parts += [f"weight {self.weight!r}"] if self.weight is not None else []
        return f", with the {' and the '.join(parts)}" if parts else ""

    def offset_of(self, table: pa.Table) -> Array | None:
        """Return the offset of every row, (row, output)."""
        return np.stack([_numbers(table, name) for name in self.offset], axis=1) if self.offset else None

    def weight_of(self, table: pa.Table) -> Array | None:
        """Return the weight of every row."""
        return None if self.weight is None else _numbers(table, self.weight)

    def remembered_in(self, training: TrainingSummary) -> TrainingSummary:
        """Return a model's training summary with the names of these columns."""
        return replace(training, offset=self.offset or training.offset, weight=self.weight or training.weight)


def find_beside(table: pa.Table, offset: Sequence[str] | None, weight: str | None) -> Beside:
    """Return the requested columns, under their names in the table."""
    found = tuple(find_column(name, table, role="offset column") for name in offset or ())
    return Beside(found, None if weight is None else find_column(weight, table, role="weight column"))


def find_remembered(
    model: TableModel, table: pa.Table, offset: Sequence[str] | None, weight: str | None, *, is_measured: bool = True
) -> Beside:
    """Return the requested columns, or else the columns that the model remembers and the table has.

    A model that was fitted with an offset cannot be measured without.
    """
    there = {name.strip() for name in table.column_names}
    if not offset and model.offset_names and {name.strip() for name in model.offset_names} <= there:
        offset = model.offset_names
    remembered = model.training.weight
    if weight is None and remembered is not None and remembered.strip() in there:
        weight = remembered
    if is_measured:
        check_offset(model, offset or None, hint="Name its column with --offset.")
    return find_beside(table, offset, weight)


def note_offset(model: TableModel) -> None:
    """Explain what a prediction without an offset means, if the model was fitted with one."""
    if model.offset_names is not None:
        named = " --offset ".join(map(shlex.quote, model.offset_names)) or "COLUMN"
        what = ", a rate for one unit of exposure" if model.link.name == "log" else ""
        say(f"note: predicted for an offset of 0{what}; --offset {named} adds the rows' own offset.")


def _numbers(table: pa.Table, name: str) -> Array:
    values = np.asarray(to_numbers(column_of(table, name), name).to_numpy(), dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        held = "nothing" if np.isnan(values[wrong[0]]) else "infinity"
        raise DataError(f"Column {name!r} must hold a finite number in every row; row {wrong[0] + 1} holds {held}.")
    return values
