"""Chunks of equally many rows as numpy arrays, however the files are divided; each row knows its file and number."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nae._typing import AnyArray, Array
from nae.encoding import Columns, read_table
from nae.encoding.beside import check_offset, check_weight
from nae.errors import DataError
from nae.scanning.bad_rows import BadRows
from nae.scanning.delimited import join_tables
from nae.scanning.scan import RowBatch, Scan

__all__ = ["Chunk", "Roles", "read_chunks"]


@dataclass(frozen=True)
class Roles:
    """The names of the columns by their role."""

    features: tuple[str, ...]
    target: tuple[str, ...]
    weight: str | None = None
    offset: tuple[str, ...] = ()

    @property
    def all(self) -> list[str]:
        """All columns to read."""
        others = (*self.target, *((self.weight,) if self.weight else ()), *self.offset)
        return list(dict.fromkeys((*self.features, *others)))


@dataclass(frozen=True, eq=False)
class Chunk:
    """A chunk of rows of positive weight."""

    columns: Columns
    target: tuple[AnyArray, ...]  # one array per target: numbers, or labels of any type
    weight: Array
    offset: Array | None  # (B, O)
    batches: tuple[RowBatch, ...]

    def __len__(self) -> int:
        return len(self.weight)

    def where(self, row: int) -> str:
        """Return the file and the row number of a row of the chunk, in words."""
        for batch in self.batches:
            if row < len(batch.rows):
                return f"row {batch.rows[row]} of {batch.file}"
            row -= len(batch.rows)
        raise IndexError(row)


def read_chunks(scan: Scan, roles: Roles, what: str, *, bad_rows: BadRows | None = None) -> Iterator[Chunk]:
    """Yield chunks of ``scan.block_rows`` rows (the last one may have fewer), and report progress as ``what``."""
    pending: list[RowBatch] = []
    n_pending = n_read = 0
    total = scan.count_rows()
    for batch in scan.batches(roles.all, bad_rows):
        n_read += len(batch.rows)
        kept = _with_weight(batch, roles.weight)
        pending.append(kept)
        n_pending += len(kept.rows)
        while n_pending >= scan.block_rows:
            full, pending = _cut(pending, scan.block_rows)
            n_pending -= scan.block_rows
            yield _chunk(full, roles)
        if scan.progress is not None:
            scan.progress(what, n_read, total)
    if n_pending:
        yield _chunk(pending, roles)


def _with_weight(batch: RowBatch, name: str | None) -> RowBatch:
    """Return the rows of positive weight."""
    if name is None:
        return batch
    weight = _floats(batch.table.column(name))
    check_weight(weight, where=lambda row: f"row {batch.rows[row]} of {batch.file}")
    if weight.all():
        return batch
    return RowBatch(batch.table.filter(pa.array(weight > 0)), batch.file, batch.rows[weight > 0])


def _cut(batches: list[RowBatch], n_rows: int) -> tuple[list[RowBatch], list[RowBatch]]:
    """Return batches with the first ``n_rows`` rows, and batches with the rest."""
    full: list[RowBatch] = []
    rest: list[RowBatch] = []
    for batch in batches:
        n_here = min(n_rows, len(batch.rows))
        n_rows -= n_here
        if n_here:
            full.append(RowBatch(batch.table.slice(0, n_here), batch.file, batch.rows[:n_here]))
        if n_here < len(batch.rows):
            rest.append(RowBatch(batch.table.slice(n_here), batch.file, batch.rows[n_here:]))
    return full, rest


def _chunk(batches: list[RowBatch], roles: Roles) -> Chunk:
    table = join_tables([batch.table for batch in batches])
    weight = np.ones(table.num_rows) if roles.weight is None else _floats(table.column(roles.weight))
    offset = None
    if roles.offset:
        offset = np.column_stack([_floats(table.column(name)) for name in roles.offset])
    made = Chunk(
        read_table(table.select(list(roles.features))),
        tuple(_labels(table.column(name), name) for name in roles.target),
        weight,
        offset,
        tuple(batches),
    )
    if offset is not None:
        check_offset(offset, where=made.where)
    return made


def _floats(column: pa.ChunkedArray) -> Array:
    return np.asarray(read_table(pa.table({"": column})).arrays[0], dtype=np.float64)


def _labels(column: pa.ChunkedArray, name: str) -> AnyArray:
    """Return a target with its own type: integers stay integers if none is missing."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    try:
        return np.asarray(column.to_numpy())
    except pa.ArrowException:
        raise DataError(f"The target {name!r} must hold numbers or classes; it holds {column.type}.") from None
