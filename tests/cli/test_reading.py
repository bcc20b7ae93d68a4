import bz2
import gzip
import io
import json
import lzma
import re
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from nae.cli import reading
from nae.cli.columns import to_numbers
from nae.cli.reading import read_file
from nae.errors import DataError
from nae.scanning.dialect import guess_delimiter

TABLE = pa.table({"a": [1.5, 2.5, None], "b": ["x", "y,z", None]})
TRICKY = (
    '\ufeffname;"size; in m²";note;target \r\n'
    'Köln;1,5;"two\r\nlines";10,25\r\n'
    '"Aa;chen";2,25;plain;20,5\r\n'
    "Ulm;;;30\r\n"
)


def as_csv(table: pa.Table, delimiter: str = ",") -> bytes:
    sink = io.BytesIO()
    pa.csv.write_csv(table, sink, pa.csv.WriteOptions(delimiter=delimiter))
    return sink.getvalue()


def as_parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pa.parquet.write_table(table, sink)
    return sink.getvalue()


def as_feather(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pa.feather.write_feather(table, sink)
    return sink.getvalue()


def as_stream(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def as_lines(table: pa.Table) -> bytes:
    return "\n".join(json.dumps(row) for row in table.to_pylist()).encode()


def zipped(content: bytes, names: tuple[str, ...] = ("a.csv",)) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name in names:
            archive.writestr(name, content)
    return sink.getvalue()


def packed(content: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


def read(tmp_path: Path, content: bytes) -> pa.Table:
    path = tmp_path / "data"  # no ending: the content says what it is
    path.write_bytes(content)
    return read_file(str(path))


@pytest.mark.parametrize(
    "content",
    [
        as_csv(TABLE),
        as_csv(TABLE, "\t"),
        as_csv(TABLE, "|"),
        as_parquet(TABLE),
        as_feather(TABLE),
        as_stream(TABLE),
        as_lines(TABLE),
        json.dumps(TABLE.to_pylist()).encode(),
    ],
    ids=["csv", "tsv", "pipes", "parquet", "feather", "arrow stream", "json lines", "json list"],
)
def test_every_format_is_known_by_its_content(tmp_path: Path, content: bytes) -> None:
    assert read(tmp_path, content).to_pydict() == TABLE.to_pydict()


@pytest.mark.parametrize(
    "pack",
    [gzip.compress, bz2.compress, lzma.compress, zipped, lambda c: packed(c, "zstd"), lambda c: packed(c, "lz4")],
    ids=["gz", "bz2", "xz", "zip", "zstd", "lz4"],
)
@pytest.mark.parametrize("make", [as_csv, as_parquet], ids=["csv", "parquet"])
def test_compressed_files_are_unpacked(tmp_path: Path, pack: object, make: object) -> None:
    assert read(tmp_path, pack(make(TABLE))).to_pydict() == TABLE.to_pydict()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_semicolons_decimal_commas_a_mark_and_quoted_newlines_are_read(tmp_path: Path, encoding: str) -> None:
    text = TRICKY if encoding == "utf-8" else TRICKY.lstrip("\ufeff")
    table = read(tmp_path, text.encode(encoding))
    assert table.column_names == ["name", "size; in m²", "note", "target "]
    assert table.to_pydict() == {
        "name": ["Köln", "Aa;chen", "Ulm"],
        "size; in m²": [1.5, 2.25, None],
        "note": ["two\r\nlines", "plain", None],
        "target ": [10.25, 20.5, 30.0],
    }


def test_the_western_code_page_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, "town\nKöln\n".encode("cp1252")).to_pydict() == {"town": ["Köln"]}


def test_a_column_is_text_when_its_last_value_is(tmp_path: Path) -> None:
    content = "a\n" + "1\n" * 200_000 + "late\n"
    assert read(tmp_path, content.encode()).column("a")[-1].as_py() == "late"


@pytest.mark.parametrize("name", ["[m²]", "{x}"])
def test_a_header_may_begin_like_json(tmp_path: Path, name: str) -> None:
    assert read(tmp_path, f"{name},b\n1,2\n".encode()).column_names == [name, "b"]


def test_a_comma_inside_quotes_is_no_delimiter() -> None:
    assert guess_delimiter('a;b\n"1,2,3";4\n"5,6,7";8\n') == ";"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "must hold a table; it is empty"),
        (b" \n ", "must hold a table; it is empty"),
        (b"a,b\n", "must hold rows"),
        (b"a,b\n1,2\n3\n", r"must have 2 fields in every row; row 2 has 1: '3'"),
        (b"a,a\n1,2\n", "'a' stands for 2 columns"),
        (b"\x1f\x8bnonsense", "is compressed and cannot be unpacked"),
        (zipped(b"a\n1\n", ("a.csv", "b.csv")), "the archive holds 2 files"),
        (b"PAR1 and then nothing", "cannot be read"),
        (b"\x00\x01\x02\x03", "neither text nor a format known here"),
        (b'[{"a": 1', "cannot be read as JSON"),
        (b'[{"a": 1}, 2]', "must hold a list of JSON objects"),
        (b'{"a": 1}\n{"a": ', "cannot be read"),
    ],
)
def test_a_broken_file_is_one_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        read(tmp_path, content)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "homes.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match=r"No file is at .*home.csv\. Did you mean 'homes.csv'\?"):
        read_file(str(tmp_path / "home.csv"))


def test_a_folder_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder"):
        read_file(str(tmp_path))


def test_stdin_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(gzip.compress(b"a\n1\n"))

    monkeypatch.setattr("sys.stdin", Stdin())
    assert read_file("-").to_pydict() == {"a": [1]}


def arrow_with_wrong_offsets() -> bytes:
    """Return an Arrow file whose text begins and ends far beyond the file."""
    sink = io.BytesIO()
    table = pa.table({"kind": ["oak", "pine", "elm"]})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    offsets = np.array([0, 3, 7, 10], np.int32)
    return sink.getvalue().replace(offsets.tobytes(), (offsets * 1_000_000).tobytes())


DAMAGED = {
    "a Parquet file without its middle": lambda: parquet()[:40] + parquet()[60:],
    "an Arrow file that points out of itself": arrow_with_wrong_offsets,
    "half a character of UTF-16": lambda: "size\n1\n".encode("utf-16")[:-1],
    "a number that no integer of a file holds": lambda: b'[{"size": ' + b"9" * 400 + b"}]",
}


def parquet() -> bytes:
    sink = io.BytesIO()
    pa.parquet.write_table(pa.table({"size": [1.0, 2.0], "kind": ["oak", "pine"]}), sink)
    return sink.getvalue()


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(DAMAGED[name]())
    with pytest.raises(DataError, match=r"t cannot be read: .+|t must be UTF-16 text"):
        read_file(str(tmp_path / "t"))


def test_digits_of_other_scripts_are_numbers_as_python_has_them() -> None:
    column = pa.chunked_array([["1٢", None, "2_000"]])
    assert to_numbers(column, "size").to_pylist() == [12.0, None, 2000.0]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_file_that_is_not_what_its_mark_says_is_one_sentence(tmp_path: Path, encoding: str) -> None:
    content = "a,b\n1,2\n".encode(encoding)[:-1]
    with pytest.raises(DataError, match=rf"must be {encoding.upper()} text, as its first bytes say; byte \d+ is not"):
        read(tmp_path, content)


PACKERS = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zip": zipped,
    "zstd": partial(packed, codec="zstd"),
    "lz4": partial(packed, codec="lz4"),
}


@pytest.mark.parametrize("kind", PACKERS)
def test_what_unpacks_to_more_than_a_plain_file_may_have_is_refused(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"a,b\n" + b"1,2\n" * 1_000_000
    small = PACKERS[kind](content)
    monkeypatch.setattr(reading, "_LARGE", len(content))
    assert reading._unpack(small, "t") == content  # as large as a plain one may be, however small it was packed
    monkeypatch.setattr(reading, "_LARGE", 100_000)
    monkeypatch.setattr(reading, "_PIECE", 10_000)
    match = r"must unpack to at most 0\.1 MB .* its .*B hold more, at least \d+ times .*--stream"
    with pytest.raises(DataError, match=match) as caught:
        read(tmp_path, small)
    times = int(re.search(r"at least (\d+) times", str(caught.value))[1])
    assert (times - 1) * len(small) <= 110_000  # what was unpacked until then, of four million
