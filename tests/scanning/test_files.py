"""Files: found, opened and read in pieces; what cannot be parsed is named, and never dropped in silence."""

import gzip
import weakref

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet
import pytest

import nae
from nae.errors import ConfigError, DataError
from nae.scanning.bad_rows import BadRows

BAD = "x,y,z\n1,2,a\n2,3\n3,oops,b\n4.5, 5 ,c\n,,\n6,7,8,9\n7,8,q\n"


def rows_of(scan) -> pa.Table:
    return pa.concat_tables([batch.table for batch in scan.batches(scan.columns)])


@pytest.fixture
def folder(tmp_path):
    table = pa.table({"x": np.arange(10.0), "y": np.arange(10), "z": ["a", "b"] * 5})
    pa.parquet.write_table(table.slice(0, 4), tmp_path / "b.parquet")
    pa.parquet.write_table(table.slice(4), tmp_path / "c.parquet", row_group_size=2)
    (tmp_path / "_SUCCESS").touch()
    return tmp_path


@pytest.mark.parametrize("form", ["pattern", "folder", "list", "dataset", "uri"])
def test_a_table_is_found_however_it_is_named(folder, form):
    source = {
        "pattern": folder / "*.parquet",
        "folder": folder,
        "list": [folder / "b.parquet", str(folder / "c.parquet")],
        "dataset": ds.dataset([folder / "b.parquet", folder / "c.parquet"]),
        "uri": folder.as_uri(),
    }[form]
    scan = nae.scan(source)
    assert rows_of(scan).column("y").to_pylist() == list(range(10))
    assert scan.columns == ("x", "y", "z")
    assert scan.count_rows() == (10 if form != "dataset" else None)


def test_text_and_arrow_files_hold_the_same_rows(folder, tmp_path):
    table = rows_of(nae.scan(folder))
    pa.csv.write_csv(table, tmp_path / "t.csv")
    (tmp_path / "u.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    (tmp_path / "t.tsv").write_text((tmp_path / "t.csv").read_text().replace(",", "\t"))
    pa.feather.write_feather(table, tmp_path / "t.feather")
    for name in ("t.csv", "u.csv.gz", "t.tsv", "t.feather"):
        found = rows_of(nae.scan(tmp_path / name))
        assert found.column("x").to_pylist() == table.column("x").to_pylist()
        assert found.column("z").to_pylist() == table.column("z").to_pylist()


def test_what_is_not_there_is_named(folder, tmp_path):
    with pytest.raises(DataError, match=r"No file matches .*\*\.csv"):
        nae.scan(folder / "*.csv")
    with pytest.raises(DataError, match=r"No file is at .*d\.parquet. Did you mean '[bc].parquet'"):
        nae.scan(folder / "d.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="must hold tables"):
        nae.scan(tmp_path / "empty")
    with pytest.raises(DataError, match="no column 'price'"):
        nae.scan(folder, columns=["price"])
    with pytest.raises(
        ConfigError, match="a file, a pattern, a folder, a list of these, or a pyarrow dataset; got int"
    ):
        nae.scan(3)
    with pytest.raises(ConfigError, match="on_bad_rows must be 'error' or 'skip'; got 'ignore'"):
        nae.scan(folder, on_bad_rows="ignore")


def test_files_must_be_of_one_format_and_have_the_columns(folder):
    (folder / "d.csv").write_text("x,y,z\n1,2,a\n")
    with pytest.raises(DataError, match="All files must be of one format"):
        nae.scan(folder)
    (folder / "d.csv").unlink()
    pa.parquet.write_table(pa.table({"x": [1.0], "z": ["a"]}), folder / "e.parquet")
    with pytest.raises(DataError, match=r"Every file must have the column 'y'; .*e\.parquet has none"):
        rows_of(nae.scan(folder))


def test_a_damaged_file_is_named(folder):
    (folder / "c.parquet").write_bytes((folder / "b.parquet").read_bytes()[:-20])
    with pytest.raises(DataError, match=r"c\.parquet cannot be read: "):
        rows_of(nae.scan(folder))


def test_a_row_that_cannot_be_parsed_is_an_error_that_names_file_and_row(tmp_path):
    (tmp_path / "bad.csv").write_text(BAD)
    with pytest.raises(DataError, match=r"row 2 of .*bad\.csv has 2 fields instead of 3. Pass on_bad_rows='skip'"):
        rows_of(nae.scan(tmp_path / "bad.csv"))
    (tmp_path / "bad.csv").write_text("x,y\n1,2\n2,oops\n")
    scan = nae.scan(tmp_path / "bad.csv", column_types={"y": "number"})
    with pytest.raises(DataError, match=r"row 2 of .*bad\.csv holds 'oops' in 'y', not a number"):
        rows_of(scan)


def test_rows_that_cannot_be_parsed_are_skipped_and_counted_when_asked(tmp_path):
    (tmp_path / "bad.csv").write_text(BAD)
    scan = nae.scan(tmp_path / "bad.csv", on_bad_rows="skip", column_types={"y": "number"})
    log = BadRows()
    (batch,) = scan.batches(scan.columns, log)
    assert batch.rows.tolist() == [1, 4, 5, 7]
    assert batch.table.column("y").to_pylist() == [2.0, 5.0, None, 8.0]
    assert log.count == 3
    assert sorted(bad.row for bad in log.first) == [2, 3, 6]
    assert "3 rows left out that cannot be parsed: row 2 of" in str(log)


def test_a_number_that_turns_to_text_further_down_is_found(tmp_path):
    lines = [f"{i},{i}" for i in range(400_000)]
    lines[390_000] = "390000,n.a."
    (tmp_path / "long.csv").write_text("x,y\n" + "\n".join(lines) + "\n")
    log = BadRows()
    scan = nae.scan(tmp_path / "long.csv", on_bad_rows="skip", column_types={"y": "number"})
    n_rows = sum(len(batch.rows) for batch in scan.batches(["y"], log))
    assert (n_rows, log.first[0].row) == (399_999, 390_001)


def test_a_split_is_complete_disjoint_and_the_same_every_time(folder):
    training, test = nae.scan(folder).split(0.4, seed=3)
    sides = [rows_of(one).column("y").to_pylist() for one in (training, test)]
    assert sorted(sides[0] + sides[1]) == list(range(10))
    assert sides[0]
    assert sides[1]
    assert rows_of(training).column("y").to_pylist() == sides[0]
    with pytest.raises(ConfigError, match="split only once"):
        training.split(0.5)


def test_rows_without_a_value_are_left_out_and_counted(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n2,\n3,4\n")
    log = BadRows()
    (batch,) = nae.scan(tmp_path / "t.csv").where_known("y").batches(["x"], log)
    assert batch.rows.tolist() == [1, 3]
    assert log.n_unknown == 1


def test_column_types_are_checked(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n")
    with pytest.raises(ConfigError, match="'number' or 'text'; got 'date' for 'x'"):
        nae.scan(tmp_path / "t.csv", column_types={"x": "date"})
    with pytest.raises(DataError, match="no column 'z'"):
        nae.scan(tmp_path / "t.csv", column_types={"z": "text"})
    assert nae.scan(tmp_path / "t.csv", column_types={"x": "text"}).files.types(["x"]) == [pa.string()]


def test_no_thread_of_arrow_needs_python_after_a_reading(tmp_path, monkeypatch):
    """A process that ends while one does is aborted: 'terminate called without an active exception'."""
    handlers: list[weakref.ref] = []
    make = pa.csv.ParseOptions

    def parse_options(**given):
        handlers.append(weakref.ref(given["invalid_row_handler"]))
        return make(**given)

    monkeypatch.setattr(pa.csv, "ParseOptions", parse_options)
    rows = "".join(f"{i},{i}\n" for i in range(60))
    (tmp_path / "plain.csv").write_text(f"a,b\n{rows}")
    (tmp_path / "doubled.csv").write_text(f"a,a\n{rows}")
    (tmp_path / "empty.csv").touch()
    for _ in range(30):
        source = nae.scan(tmp_path / "plain.csv")
        assert [one() for one in handlers] == [None] * len(handlers)
        for _batch in source.batches(["a"]):
            break  # in the middle
        assert [one() for one in handlers] == [None] * len(handlers)
        for name in ("doubled", "empty"):
            with pytest.raises(DataError):
                nae.scan(tmp_path / f"{name}.csv")
        assert [one() for one in handlers] == [None] * len(handlers)


def text_of(n_rows: int) -> str:
    return "x,täwn\n" + "".join(f"{i},€{i % 3}\n" for i in range(n_rows))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_text_is_read_however_it_is_encoded(tmp_path, encoding, pack):
    path = tmp_path / ("t.csv" if pack is bytes else "t.csv.gz")
    path.write_bytes(pack(text_of(60_000).encode(encoding)))
    table = rows_of(nae.scan(path))
    assert table.column_names == ["x", "täwn"]
    assert table.column("x").to_pylist() == list(range(60_000))
    assert table.column("täwn").to_pylist() == [f"€{i % 3}" for i in range(60_000)]


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
def test_rows_that_cannot_be_parsed_are_named_in_any_encoding(tmp_path, encoding):
    (tmp_path / "t.csv").write_bytes(("ä,b\n1,2\n3\n").encode(encoding))
    with pytest.raises(DataError, match=r"row 2 of .*t\.csv has 1 fields instead of 2"):
        rows_of(nae.scan(tmp_path / "t.csv"))


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (text_of(9).encode("utf-16-le"), "must be a table; it is neither text nor a format known here"),
        (b"x\0,y\n1,2\n", "must be a table; it is neither text nor a format known here"),
        ("x\0,y\n1,2\n".encode("utf-16"), "must be a table; it is neither text nor a format known here"),
        (text_of(9).encode("utf-16")[:-1], "cannot be read: .* truncated data"),
        (b"x,y\n" + b"1,2\n" * 300_000 + "1,é\n".encode("cp1252"), r"cannot be read: .*[Ii]nvalid UTF-?8"),
    ],
    ids=["without a mark", "null in a name", "null in UTF-16", "cut", "another encoding further down"],
)
def test_what_is_no_text_is_an_error(tmp_path, content, match):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(DataError, match=rf"t\.csv {match}"):
        rows_of(nae.scan(tmp_path / "t.csv"))
