"""Read tables. The first bytes of a file tell its format, so stdin and unusual endings work as well."""

import bz2
import gzip
import io
import json
import lzma
import re
import sys
import zipfile
import zlib
from glob import has_magic
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from nae._words import sized
from nae.errors import DataError, NAEError, did_you_mean
from nae.scanning.dialect import Dialect, decode, guess_delimiter

__all__ = ["is_streamed", "read_file"]

_BLOCK = 2**31 - 2  # the largest block that pyarrow accepts
_LARGE = 1 << 30  # bytes; larger files are read in pieces
_PIECE = 1 << 22  # bytes unpacked at a time


def is_streamed(sources: list[str]) -> bool:
    """Return whether a table is read in pieces: several files, a pattern, a folder, or a large file."""
    if len(sources) != 1:
        return True
    path = Path(sources[0])
    if sources[0] == "-":
        return False
    if path.is_file():
        return path.stat().st_size > _LARGE
    return path.is_dir() or has_magic(sources[0])


def read_file(source: str) -> pa.Table:
    """Return the table in a file, or on stdin for ``-``."""
    name = "stdin" if source == "-" else source
    content = _unpack(_read_bytes(source), name)
    try:
        table = _parse(content, name)
        table.validate(full=True)  # Arrow trusts the offsets and texts in the file, which may be damaged
    except NAEError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:  # Arrow also raises plain exceptions
        raise DataError(f"{name} cannot be read: {_first_line(error)}.") from error
    return _checked(table, name)


def _read_bytes(source: str) -> bytes:
    if source == "-":
        return sys.stdin.buffer.read()
    path = Path(source)
    if path.is_dir():
        raise DataError(f"A table must be a file; {source} is a folder.")
    if not path.exists():
        near = [found.name for found in path.parent.iterdir() if found.is_file()] if path.parent.is_dir() else []
        hint = did_you_mean(path.name, near) if near else ""
        raise DataError(f"No file is at {source}.{hint if 'mean' in hint else ''}")
    return path.read_bytes()


def _unpack(content: bytes, name: str) -> bytes:
    """Return the content, decompressed if it is compressed."""
    try:
        stream = _unpacking(content, name)
        return content if stream is None else _read_bounded(stream, name, len(content))
    except (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{name} is compressed and cannot be unpacked: {_first_line(error)}.") from error


def _unpacking(content: bytes, name: str) -> Any:
    """Return a stream of the decompressed content, or None if the content is not compressed."""
    packed = io.BytesIO(content)
    if content.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=packed)
    if content.startswith(b"BZh"):
        return bz2.BZ2File(packed)
    if content.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMAFile(packed)
    if content.startswith(b"PK\x03\x04"):
        return _only_member(packed, name)
    codec = {b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}.get(content[:4])
    return None if codec is None else pa.CompressedInputStream(packed, codec)


def _only_member(packed: io.BytesIO, name: str) -> Any:
    archive = zipfile.ZipFile(packed)
    members = [member for member in archive.namelist() if not member.endswith("/")]
    if len(members) != 1:
        raise DataError(f"{name} must hold one table; the archive holds {len(members)} files.")
    return archive.open(members[0])


def _read_bounded(stream: Any, name: str, n_packed: int) -> bytes:
    """Return the content of a stream. Content larger than a plain file that is read at once is an error."""
    parts, size = [], 0
    with stream:
        while part := stream.read(_PIECE):
            size += len(part)
            if size > _LARGE:
                times = max(1, size // n_packed)
                raise DataError(
                    f"{name} must unpack to at most {sized(_LARGE)} to be read at once; its {sized(n_packed)} hold "
                    f"more, at least {times} times as much. Have it read in pieces (nae fit --stream, "
                    "nae predict -o FOLDER/), or unpack it first."
                )
            parts.append(part)
    return b"".join(parts)


def _parse(content: bytes, name: str) -> pa.Table:
    if content.startswith(b"PAR1"):
        return pyarrow.parquet.read_table(pa.BufferReader(content))
    if content.startswith(b"ARROW1"):
        return pa.ipc.open_file(pa.BufferReader(content)).read_all()
    if content.startswith(b"\xff\xff\xff\xff"):
        return pa.ipc.open_stream(pa.BufferReader(content)).read_all()
    text = decode(content, name)
    if not text.strip():
        raise DataError(f"{name} must hold a table; it is empty.")
    if re.match(r"\s*\[\s*\{", text):
        return _parse_json_list(text, name)
    return _parse_json_lines(text) if re.match(r'\s*\{\s*["}]', text) else _parse_csv(text, name)


def _parse_json_list(text: str, name: str) -> pa.Table:
    try:
        records = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name} cannot be read as JSON: {_first_line(error)}.") from error
    if not records or not all(isinstance(record, dict) for record in records):
        raise DataError(f"{name} must hold a list of JSON objects, one per row.")
    return pa.Table.from_pylist(records)


def _parse_json_lines(text: str) -> pa.Table:
    content = text.encode()
    options = pa.json.ReadOptions(block_size=min(max(len(content), 1) + 1, _BLOCK))
    return pa.json.read_json(pa.BufferReader(content), read_options=options)


def _parse_csv(text: str, name: str) -> pa.Table:
    delimiter = guess_delimiter(text)
    content = text.encode()
    table = _read_csv(content, Dialect(delimiter), name)
    if delimiter != ",":
        other = _read_csv(content, Dialect(delimiter, decimal=","), name)
        if _n_numbers(other) > _n_numbers(table):
            return other
    return table


def _read_csv(content: bytes, dialect: Dialect, name: str) -> pa.Table:
    wrong: list[Any] = []

    def remember(row: Any) -> str:
        wrong.append(row)
        return "skip"

    table = pa.csv.read_csv(
        pa.BufferReader(content),
        # One block, so that all values decide the type of a column; one thread, so that rows are numbered in errors.
        read_options=pa.csv.ReadOptions(block_size=min(len(content) + 1, _BLOCK), use_threads=False),
        parse_options=pa.csv.ParseOptions(
            delimiter=dialect.delimiter, newlines_in_values=True, invalid_row_handler=remember
        ),
        convert_options=pa.csv.ConvertOptions(strings_can_be_null=True, decimal_point=dialect.decimal),
    )
    if wrong:
        first = wrong[0]
        raise DataError(
            f"{name} must have {first.expected_columns} fields in every row; "
            f"row {(first.number or 2) - 1} has {first.actual_columns}: {first.text[:60]!r}."
        )
    return table


def _n_numbers(table: pa.Table) -> int:
    return sum(pa.types.is_floating(kind) or pa.types.is_integer(kind) for kind in table.schema.types)


def _checked(table: pa.Table, name: str) -> pa.Table:
    if table.num_columns == 0 or table.num_rows == 0:
        raise DataError(f"{name} must hold rows; it has {table.num_columns} columns and no row.")
    names = table.column_names
    twice = next((column for column in names if names.count(column) > 1), None)
    if twice is not None:
        raise DataError(f"Column names of {name} must differ; {twice!r} stands for {names.count(twice)} columns.")
    return table


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
