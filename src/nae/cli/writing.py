"""Write tables. The ending of the file is its format; a second ending is its compression."""

import io
import json
import math
import re
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from nae._files import write_whole
from nae.errors import ConfigError, did_you_mean

__all__ = [
    "COMPRESSIONS",
    "DELIMITED",
    "FORMATS",
    "check_apart",
    "check_delimited",
    "check_folder",
    "check_output",
    "is_same_file",
    "json_lines",
    "without_formulas",
    "write_table",
]

DELIMITED = ("csv", "tsv")
_FORMULA = r"^[=+\-@\t\r]"
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}


def check_output(target: str, *, form: str | None = None, quotes_formulas: bool = False) -> None:
    """Raise an error for an output that cannot be written, before any work is done."""
    kind, _ = _format_of(target, form)
    if quotes_formulas:
        check_delimited([kind])
    check_folder(target)


def check_folder(target: str) -> None:
    """Raise an error for a file whose folder does not exist."""
    if target != "-" and not Path(target).absolute().parent.is_dir():
        raise ConfigError(f"The output must lie in a folder that exists; {Path(target).parent} does not.")


def check_apart(target: str, sources: Iterable[str]) -> None:
    """Raise an error if the output is one of the input files, which would be overwritten."""
    same = next((source for source in sources if target != "-" and is_same_file(target, source)), None)
    if same is not None:
        raise ConfigError(
            f"The output must be another file than those that are read; {target} is {same}, which would be lost. "
            "Take another name with -o."
        )


def is_same_file(target: str, source: str) -> bool:
    """Return whether two paths are one file; links are followed."""
    one, two = Path(target), Path(source)
    return one.absolute() == two.absolute() or (one.exists() and two.exists() and one.samefile(two))


def check_delimited(kinds: Collection[str]) -> None:
    """Raise an error if formulas are to be quoted in a format without formulas."""
    if not set(kinds) & set(DELIMITED):
        raise ConfigError(
            f"--quote-formulas is for CSV and TSV; the output is {', '.join(sorted(kinds))}. Leave it out."
        )


def without_formulas(table: pa.Table) -> pa.Table:
    """Return a table with an apostrophe before names and texts that a spreadsheet would take for a formula."""
    names = [f"'{name}" if re.match(_FORMULA, name) else name for name in table.column_names]
    return pa.table([_without_formulas(column) for column in table.columns], names=names)


def _without_formulas(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if str(kind) not in ("string", "large_string", "string_view"):
        return column
    texts = column.cast(pa.large_string())
    quoted = pc.replace_substring_regex(texts, r"\A", "'")
    return pc.if_else(pc.match_substring_regex(texts, _FORMULA), quoted, texts)


def write_table(table: pa.Table, target: str, *, form: str | None = None, quotes_formulas: bool = False) -> None:
    """Write a table to a file, or to stdout for ``-``."""
    kind, compression = _format_of(target, form)
    table = without_formulas(table) if quotes_formulas else table
    content = _compress(_render(table, kind), compression)
    if target == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_whole(target, content)


def _format_of(target: str, form: str | None) -> tuple[str, str | None]:
    """Return the format and the compression of an output."""
    endings = [] if target == "-" else [ending.lower() for ending in Path(target).suffixes]
    compression = COMPRESSIONS.get(endings[-1]) if endings else None
    ending = (endings[-2] if len(endings) > 1 else "") if compression else (endings[-1] if endings else "")
    if form is not None:
        if form not in FORMATS.values():
            known = sorted(set(FORMATS.values()))
            raise ConfigError(
                f"--format must be one of {known}; got {form!r}.{did_you_mean(form, known, is_listed=True)}"
            )
        return form, compression
    if target != "-" and ending not in FORMATS:
        raise ConfigError(
            f"The ending of {Path(target).name!r} must say the format, one of {', '.join(FORMATS)}; or give --format."
        )
    return FORMATS.get(ending, "csv"), compression


def _render(table: pa.Table, kind: str) -> bytes:
    sink = io.BytesIO()
    if kind == "parquet":
        pa.parquet.write_table(table, sink)
    elif kind == "arrow":
        pa.feather.write_feather(table, sink)
    elif kind == "jsonl":
        sink.write(json_lines(table))
    else:
        options = pa.csv.WriteOptions(delimiter="\t" if kind == "tsv" else ",", quoting_style="needed")
        pa.csv.write_csv(table, sink, options)
    return sink.getvalue()


def json_lines(table: pa.Table) -> bytes:
    """Return a table as JSON lines. NaN and infinity, which JSON does not have, become null."""
    lines = (json.dumps(_plain(row), ensure_ascii=False, default=str) for row in table.to_pylist())
    return "".join(f"{line}\n" for line in lines).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _compress(content: bytes, compression: str | None) -> bytes:
    if compression is None:
        return content
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, compression) as stream:
        stream.write(content)
    return bytes(sink.getvalue().to_pybytes())
