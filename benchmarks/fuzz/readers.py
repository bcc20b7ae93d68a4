"""Damaged files of tables: CSV, JSON lines, Parquet and Arrow, compressed or not."""

import bz2
import contextlib
import gzip
import io
import json
import lzma
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from benchmarks.fuzz.models import FEATURES
from benchmarks.fuzz.targets import Attempt, Violation, draw, shown
from nae.cli.app import run
from nae.cli.reading import read_file
from nae.errors import NAEError
from nae.scanning import scan
from nae.tables import save
from tests.laws.models import make_model
from tests.tables.mutations import break_bytes, splice

__all__ = ["check_read", "prepare", "seeds"]

_TOKENS = (
    *(
        b",",
        b";",
        b"\t",
        b"|",
        b'"',
        b'""',
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
    ),
    *(b"\xff\xfe", b"NA", b"nan", b"inf", b"-inf", b"1e999", b"1e-999", b"9" * 400, b"-0", b"0x10", b"1,5", b"1.5.5"),
    *(b"true", b"null", b"{", b"}", b"[", b"]", b":", b"{}", b"[[", b"\\u0000", b"\\ud800", b"=1+1", b"x" * 3000, b" "),
    *(
        "é".encode("latin-1"),
        "é".encode(),
        "\U0001f600".encode(),
        b"size",
        b"kind",
        b"size,size",
        b"\x1b[31m",
        b"12:00",
    ),
)


def prepare(folder: Path, _: ExitStack) -> Attempt:
    """Return the attempt: read a changed file. One in eight is predicted on the command line, or streamed."""
    contents = seeds()
    plain = [one for one in contents if not one.startswith((b"PAR1", b"ARROW1", b"\xff\xff"))]
    model, path = folder / "m.nae", folder / "table"
    save(make_model(np.random.default_rng(0), features=FEATURES[:4]), model)

    def attempt(random: np.random.Generator) -> str:
        content = draw(contents if random.integers(2) else plain, random)
        for _ in range(draw((1, 1, 2, 4), random)):
            content = _changed(content, draw(contents, random), random) or b"\n"
        if random.integers(3) == 0:
            content = draw(_PACKED, random)(content)
        path.write_bytes(content)
        with shown(content, ending="table"):
            kind = random.integers(16)
            if kind == 0:
                return _check_command(model, path)
            if kind == 1:
                return check_streamed(path.rename(path.with_suffix(draw(_ENDINGS, random))))
            return check_read(path)

    return attempt


def seeds() -> list[bytes]:
    """Return small tables in every format."""
    rows = {
        "size": [0.5, None, -2.25, 1e9, 3.0, 7.0],
        "kind": ["oak", "pi,ne", 'say "elm"', None, "ümläut", ""],
        "is new": [True, False, None, True, True, False],
        "rooms": [1, 2, 3, 4, 2**53 + 1, -5],
    }
    table = pa.table(rows)
    csv = io.BytesIO()
    pa.csv.write_csv(table, csv)
    comma = csv.getvalue()
    lines = b"\n".join(_record(row) for row in table.to_pylist())
    found = [comma, comma.replace(b",", b";").replace(b".", b","), comma.replace(b",", b"\t"), lines]
    found += [b"[" + lines.replace(b"\n", b",") + b"]", comma.decode().encode("utf-16"), b"size,kind\n1,oak\n"]
    for how in ("none", "snappy"):
        packed = io.BytesIO()
        pa.parquet.write_table(table, packed, compression=how)
        found.append(packed.getvalue())
    for writer in (pa.ipc.new_file, pa.ipc.new_stream):
        packed = io.BytesIO()
        with writer(packed, table.schema) as stream:
            stream.write_table(table)
        found.append(packed.getvalue())
    return found


def check_read(path: Path) -> str:
    """Check that a file is read as a table with rows, or is refused in a sentence."""
    try:
        table = read_file(str(path))
    except NAEError as error:
        _check_sentence(str(error))
        return "refused"
    if table.num_rows < 1 or table.num_columns < 1 or len(set(table.column_names)) < table.num_columns:
        raise Violation("a table was read that has no rows, no columns, or two columns of one name")
    table.validate(full=True)
    return "read"


def check_streamed(path: Path) -> str:
    """Check that a file is read in pieces, or is refused in a sentence."""
    try:
        rows = scan(str(path))
        for _ in rows.batches(rows.columns):
            pass
    except NAEError as error:
        _check_sentence(str(error))
        return "streamed, refused"
    finally:
        path.unlink()
    return "streamed"


def _check_command(model: Path, path: Path) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        code = run(["predict", str(model), str(path), "-o", str(path.with_suffix(".csv"))])
    if code not in (0, 2):
        raise Violation(f"nae predict ended with {code}: {' '.join(said.getvalue().split())[:300]}")
    return f"predicted, code {code}"


def _check_sentence(text: str) -> None:
    if not text.strip() or len(text) > 5000 or "\x1b" in text:
        raise Violation(f"the complaint is no sentence: {text[:200]!r}")


def _changed(content: bytes, other: bytes, random: np.random.Generator) -> bytes:
    if not content:
        return other
    kind = random.integers(6)
    if kind == 0:
        return break_bytes(content, other, random)
    if kind == 1:
        return splice(content, other, random)
    at = int(random.integers(len(content)))
    if kind == 2:  # something again
        end = at + int(random.integers(1, 40))
        return content[:end] + content[at:end] * int(random.integers(1, 4)) + content[end:]
    token = draw(_TOKENS, random)
    return content[:at] + token + content[at + int(random.integers(len(token) + 1)) :]


def _record(row: dict[str, Any]) -> bytes:
    return json.dumps(row).encode()


def _zipped(content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("table.csv", content)
    return packed.getvalue()


def _packed(content: bytes, how: str) -> bytes:
    sink = io.BytesIO()
    with pa.CompressedOutputStream(sink, how) as stream:
        stream.write(content)
        stream.flush()
        return sink.getvalue()


_ENDINGS = (".csv", ".parquet", ".arrow", ".tsv", ".csv.gz", ".feather")
_PACKED = (gzip.compress, bz2.compress, lzma.compress, _zipped)
