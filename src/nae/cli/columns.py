"""Find columns of a file by name, ignoring blanks around it, and check them. Errors name the row.

Rows are counted from 1, as a reader of the file counts them below its header.
"""

import shlex
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from nae.encoding.columns import missing_column
from nae.encoding.schema import Category, Schema
from nae.errors import DataError, did_you_mean

__all__ = ["align", "check_finite", "column_of", "find_column", "match_name", "remarks", "to_numbers"]

_LONG = 20  # in a table with this many rows, a column that counts the rows is an index


def find_column(name: str, table: pa.Table, *, role: str = "column", known: Sequence[str] = ()) -> str:
    """Return the column called ``name``. Blanks around either name are ignored if the result is unambiguous.

    ``known`` are the columns of a model, where the name is one of them.
    """
    names = table.column_names
    found = match_name(name, names)
    if found is not None:
        return found
    if known:
        raise missing_column(name, names, known=known)
    raise DataError(f"The table has no {role} {name!r}.{did_you_mean(name, names)}")


def match_name(name: str, names: Sequence[str]) -> str | None:
    """Return which of ``names`` is meant: the same name, or the only one that differs just by blanks around it."""
    if name in names:
        return name
    found = [one for one in names if one.strip() == name.strip()]
    return found[0] if len(found) == 1 else None


def column_of(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Return a column."""
    return table.column(table.column_names.index(name))


def align(table: pa.Table, schema: Schema) -> pa.Table:
    """Return the columns a model needs, under the names it knows and in its order."""
    if not schema.has_names:
        if table.num_columns < len(schema):
            raise DataError(f"The table must have the model's {len(schema)} columns; it has {table.num_columns}.")
        return table.select(range(len(schema))).rename_columns(list(schema.names))
    found = [find_column(name, table, known=schema.names) for name in schema.names]
    columns = []
    for feature, name in zip(schema.features, found, strict=True):
        column = column_of(table, name)
        columns.append(column if isinstance(feature, Category) else to_numbers(column, name))
    return pa.table(columns, names=list(schema.names))


def check_finite(table: pa.Table, names: Sequence[str]) -> None:
    """Raise an error for infinities that names the row of the file."""
    for name in names:
        column = column_of(table, name)
        if pa.types.is_floating(column.type):
            rows = np.flatnonzero(np.isinf(column.to_numpy()))
            if len(rows):
                raise DataError(f"Column {name!r} must hold finite numbers; row {rows[0] + 1} holds infinity.")


def remarks(table: pa.Table, names: Sequence[str]) -> list[str]:
    """Return warnings about columns that count the rows, and about columns of numbers with a few texts."""
    found = []
    for name in names:
        column = column_of(table, name)
        if _is_index(column):
            found.append(
                f"Column {name!r} counts the rows, so it will not generalise; leave it out with "
                f"--ignore {shlex.quote(name)} unless the order of the rows has a meaning."
            )
        if not _is_text(column.type):
            continue
        present = [value for value in column.to_pylist() if value is not None]
        wrong = [value for value in present if not _is_number(value)]
        if present and 0 < len(wrong) < 0.1 * len(present):
            row = column.to_pylist().index(wrong[0]) + 1
            found.append(
                f"Column {name!r} is taken as categories: it holds numbers, but row {row} holds {wrong[0][:40]!r}."
            )
    return found


def _is_index(column: pa.ChunkedArray) -> bool:
    """Return whether a column is 0, 1, 2, … or 1, 2, 3, …, and too long for this to be a coincidence."""
    if not pa.types.is_integer(column.type) or len(column) < _LONG or column.null_count:
        return False
    values = column.to_numpy()
    return bool(values[0] in (0, 1) and np.array_equal(values, np.arange(values[0], values[0] + len(values))))


def to_numbers(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return a column of texts as numbers. Text that is not a number is an error that names the row."""
    if not _is_text(column.type):
        return column
    texts = column.to_pylist()
    for row, value in enumerate(texts, start=1):
        if value is not None and not _is_number(value):
            raise DataError(f"Column {name!r} must hold numbers; row {row} holds {value[:40]!r}.")
    # Arrow's cast would refuse digits of other scripts and underscores between digits, which Python accepts.
    return pa.chunked_array([pa.array([None if value is None else float(value) for value in texts], pa.float64())])


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
