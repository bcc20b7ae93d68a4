"""Read delimited text in pieces. Every field is read as text first, so that errors can name the row."""

import codecs
import time
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from nae._typing import IntArray
from nae.encoding.columns import FIRST_ROUNDED
from nae.errors import DataError
from nae.scanning.bad_rows import BadRow
from nae.scanning.dialect import encoding_of

__all__ = ["DelimitedFile", "Handle", "first_text", "infer_types", "join_tables"]

_BLOCK = 1 << 22  # bytes that are parsed at once
_INFERENCE = 1 << 24  # bytes from which the types of the columns are inferred
_BEGINNING = 1 << 20  # bytes from which encoding, delimiter and decimal point are inferred
_PATIENCE = 5.0  # seconds
_WHOLE = (pa.int64(), pa.uint64())  # types that hold whole numbers which floats do not

Handle = Callable[[BadRow], None]


def infer_types(path: str, delimiter: str) -> dict[str, pa.DataType]:
    """Return the types of the columns, inferred from the beginning of a file: numbers, booleans or text."""
    try:
        convert = pa.csv.ConvertOptions(strings_can_be_null=True)
        with closing(_stream(path, delimiter, lambda row: None, convert, block_size=_INFERENCE)) as stream:
            schema = next(stream)
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise DataError(f"{path} cannot be read: {str(error).splitlines()[0].rstrip('.')}.") from error
    twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"Column names of {path} must differ; {twice!r} stands for several.")
    return {one.name: _plain_type(one.type) for one in schema}


def _plain_type(kind: pa.DataType) -> pa.DataType:
    # A column that begins with missing values only is assumed to hold numbers.
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)
    return pa.float64() if is_number else kind


@dataclass(frozen=True)
class DelimitedFile:
    """A file of delimited text."""

    path: str
    delimiter: str
    types: dict[str, pa.DataType]  # types of the columns to read

    def batches(self, handle: Handle) -> Iterator[tuple[pa.Table, IntArray]]:
        """Yield tables with the row numbers in the file. ``handle`` is called with rows that cannot be parsed."""
        wrong: list[BadRow] = []
        try:
            with closing(self._open(wrong)) as stream:
                n_read = 0  # number of rows that were split into fields
                skipped: list[int] = []
                for batch in islice(stream, 1, None):
                    for bad in wrong:
                        skipped.append(bad.row)
                        handle(bad)
                    wrong.clear()
                    numbers = _row_numbers(n_read, batch.num_rows, skipped)
                    n_read += batch.num_rows
                    yield self._convert(pa.table(batch), numbers, handle)
                for bad in wrong:
                    handle(bad)
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise DataError(f"{self.path} cannot be read: {str(error).splitlines()[0].rstrip('.')}.") from error

    def _open(self, wrong: list[BadRow]) -> Generator[Any, None, None]:
        def remember(row: Any) -> None:
            reason = f"has {row.actual_columns} fields instead of {row.expected_columns}"
            wrong.append(BadRow(self.path, (row.number or 2) - 1, reason))

        convert = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(self.types, pa.string()),
            include_columns=list(self.types),
            strings_can_be_null=True,
        )
        return _stream(self.path, self.delimiter, remember, convert, block_size=_BLOCK)

    def _convert(self, table: pa.Table, numbers: IntArray, handle: Handle) -> tuple[pa.Table, IntArray]:
        is_good = np.ones(table.num_rows, dtype=bool)
        for name, kind in self.types.items():
            if pa.types.is_string(kind):
                continue
            column = table.column(name)
            try:
                _cast(column, kind)
            except pa.ArrowInvalid:
                for i, value in enumerate(column.to_pylist()):
                    if is_good[i] and not _is_of(kind, value):
                        is_good[i] = False
                        what = "a number" if pa.types.is_floating(kind) else str(kind)
                        handle(BadRow(self.path, int(numbers[i]), f"holds {value[:40]!r} in {name!r}, not {what}"))
        if not is_good.all():
            table, numbers = table.filter(pa.array(is_good)), numbers[is_good]
        columns = [
            table.column(name) if pa.types.is_string(kind) else _cast(table.column(name), kind)
            for name, kind in self.types.items()
        ]
        return pa.table(columns, names=list(self.types)), numbers


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    trimmed = pc.utf8_trim_whitespace(column)
    found = pc.cast(trimmed, kind)
    largest = pc.max(pc.abs(found)).as_py() if pa.types.is_floating(kind) else None
    if largest is None or not largest >= FIRST_ROUNDED:
        return found
    exact = (_cast_or_none(trimmed, whole) for whole in _WHOLE)
    return next((one for one in exact if one is not None), found)


def join_tables(tables: list[pa.Table]) -> pa.Table:
    """Return tables below each other. Large whole numbers stay exact, also if only some of the tables hold such."""
    if all(table.schema.equals(tables[0].schema) for table in tables):
        return pa.concat_tables(tables)
    return pa.concat_tables([pa.table(columns, names=tables[0].column_names) for columns in _alike(tables)])


def _alike(tables: list[pa.Table]) -> list[list[pa.ChunkedArray]]:
    columns = []
    for name in tables[0].column_names:
        parts = [table.column(name) for table in tables]
        kinds = {part.type for part in parts}
        if len(kinds) > 1 and kinds <= {pa.float64(), *_WHOLE}:
            exact = ([_cast_or_none(part, whole) for part in parts] for whole in _WHOLE)
            rounded = [part.cast(pa.float64(), safe=False) for part in parts]
            parts = next((found for found in exact if all(one is not None for one in found)), rounded)
        columns.append(parts)
    return [list(row) for row in zip(*columns, strict=True)]


def _cast_or_none(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        return None


def _stream(
    path: str, delimiter: str, tell: Callable[[Any], None], convert: Any, *, block_size: int
) -> Generator[Any, None, None]:
    """Yield the schema of a file, then its batches. ``tell`` is called with every row of a wrong number of fields.

    Arrow reads ahead: its thread may hold the handler of such rows for a moment after the reader is closed, and then
    needs Python's lock. A process that ends in this moment is aborted, so this function waits for the thread.
    """

    def skip(row: Any) -> str:
        tell(row)
        return "skip"

    text = _open_text(path)
    held = [weakref.ref(skip)] if isinstance(text, pa.NativeFile) else [weakref.ref(skip), weakref.ref(text)]
    try:
        with pa.csv.open_csv(
            text,
            read_options=pa.csv.ReadOptions(block_size=block_size, use_threads=False),  # counts rows
            parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip),
            convert_options=convert,
        ) as reader:
            try:
                yield reader.schema
                yield from reader
            finally:
                del reader
    finally:
        del skip, text
        _wait_until_gone(held)


def _wait_until_gone(held: "list[weakref.ref[Any]]") -> None:
    end = time.monotonic() + _PATIENCE
    while any(one() is not None for one in held) and time.monotonic() < end:
        time.sleep(0.0005)


class _InUtf8:
    """A stream that converts text of another encoding to UTF-8."""

    closed = False

    def __init__(self, stream: Any, encoding: str) -> None:
        self._stream, self._ready = stream, b""
        self._decoder = codecs.getincrementaldecoder(encoding)("replace" if encoding == "cp1252" else "strict")

    def read(self, n_bytes: int) -> bytes:
        while len(self._ready) < n_bytes:
            part = bytes(self._stream.read(n_bytes))
            self._ready += self._decoder.decode(part, final=not part).encode()
            if not part:
                break
        found, self._ready = self._ready[:n_bytes], self._ready[n_bytes:]
        return found

    def close(self) -> None:
        self.closed = True
        self._stream.close()


def _open_text(path: str) -> Any:
    """Return a file as a stream of UTF-8."""
    encoding = _begin(path)[1]
    stream = pa.input_stream(path)
    return stream if encoding.startswith("utf-8") else _InUtf8(stream, encoding)


def _begin(path: str) -> tuple[str, str]:
    """Return the beginning of a file as text, and its encoding."""
    with pa.input_stream(path) as stream:
        content = bytes(stream.read(_BEGINNING))
    encoding = encoding_of(content, path, is_whole=len(content) < _BEGINNING)
    text = codecs.getincrementaldecoder(encoding)(errors="replace").decode(content)
    if "\0" in text:
        raise DataError(f"{path} must be a table; it is neither text nor a format known here.")
    return text, encoding


def _row_numbers(n_before: int, n_rows: int, skipped: list[int]) -> IntArray:
    """Return the row numbers in the file, counted from 1, including earlier rows and skipped rows."""
    numbers = np.arange(n_before + 1, n_before + n_rows + 1)
    for row in sorted(skipped):
        numbers[numbers >= row] += 1
    return numbers


def _is_of(kind: pa.DataType, value: str | None) -> bool:
    if value is None:
        return True
    try:
        pc.cast(pa.scalar(value.strip()), kind)
    except pa.ArrowInvalid:
        return False
    return True


def first_text(path: str) -> str:
    """Return the beginning of a file as text."""
    try:
        return _begin(path)[0]
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read: {str(error).splitlines()[0].rstrip('.')}.") from error
