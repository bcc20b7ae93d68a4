"""Many files on the command line: fitted in pieces, predicted file to file, gone on with where it stopped."""

import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import nae as library
from nae._files import whole_file
from nae.cli import batch
from nae.cli.reading import read_file
from tests.cli.conftest import make_table

FAST = ("--members", 2, "--epochs", 3)


@pytest.fixture
def parts(tmp_path):
    """Return a folder with a table in three files."""
    place = tmp_path / "in"
    place.mkdir()
    table = make_table(600)
    for number in range(3):
        pa.parquet.write_table(table.slice(200 * number, 200), place / f"part{number}.parquet")
    return place


@pytest.mark.parametrize("form", ["pattern", "folder", "files"])
def test_many_files_are_one_table(nae, parts, tmp_path, form):
    data = {"pattern": [parts / "*.parquet"], "folder": [parts], "files": sorted(parts.iterdir())}[form]
    path = tmp_path / "m.nae"
    code, out, said = nae("fit", *data, "-t", "price", "--ignore", "sold", "-o", path, *FAST)
    assert code == 0, said
    assert "3 files, 3 features; 'price' holds numbers" in said
    assert "nae predict" in said
    assert "-o out/" in said
    assert "RMSE" in out
    facts = library.load(path).training
    assert facts.n_rows + facts.n_test_rows == 600
    assert 80 < facts.n_test_rows < 160
    assert facts.quality["RMSE"] < facts.baseline_quality["RMSE"]


def test_a_single_file_is_streamed_when_asked(nae, parts, tmp_path):
    words = ("fit", parts / "part0.parquet", "-t", "sold", "--ignore", "price", "-o", tmp_path / "m.nae", *FAST)
    code, out, said = nae(*words, "--stream", "--cache", tmp_path, "--test-size", 0)
    assert code == 0, said
    assert "1 file, 3 features; 'sold' has 2 classes" in said
    assert "AUC" in out
    assert library.load(tmp_path / "m.nae").training.n_test_rows == 0


@pytest.mark.filterwarnings("always::nae.errors.NAEWarning")
def test_rows_without_a_target_or_that_cannot_be_parsed_are_spoken_of(nae, parts, tmp_path):
    place = tmp_path / "csv"
    place.mkdir()
    for number, source in enumerate(sorted(parts.iterdir())):
        pa.csv.write_csv(pa.parquet.read_table(source).drop_columns(["sold"]), place / f"{number}.csv")
    lines = (place / "1.csv").read_text().splitlines()
    lines[7] = lines[7].rpartition(",")[0] + ","  # no price
    lines[9] += ",1"
    (place / "1.csv").write_text("\n".join(lines) + "\n")
    words = ("fit", place / "*.csv", "-t", "price", "-o", tmp_path / "m.nae", *FAST)
    code, _, said = nae(*words)
    assert code == 2
    assert "row 9 of" in said
    assert "has 5 fields instead of 4" in said
    code, _, said = nae(*words, "--on-bad-rows", "skip", "--test-size", 0)
    assert code == 0, said
    assert "1 row left out that cannot be parsed: row 9 of" in said
    assert "left out, without a target: 1 row." in said
    assert library.load(tmp_path / "m.nae").training.n_rows == 598


def test_predictions_go_from_file_to_file_and_are_not_made_twice(nae, folder, parts, tmp_path):
    model, out = folder / "price.nae", tmp_path / "out"
    code, _, said = nae("predict", model, parts / "*.parquet", "-o", f"{out}/")
    assert code == 0, said
    assert "600 predictions in 3 files" in said
    names = [f"part{number}.parquet" for number in range(3)]
    assert sorted(path.name for path in out.iterdir()) == names
    for name in names:
        table = pa.parquet.read_table(parts / name)
        expected = library.load(model).predict(table.select(["size", "town", "garden"]))
        assert pa.parquet.read_table(out / name).column("prediction").to_pylist() == pytest.approx(expected.tolist())
    before = {name: (out / name).stat().st_mtime_ns for name in names}
    (out / names[1]).unlink()
    code, _, said = nae("predict", model, parts, "-o", out, "--keep")
    assert code == 0, said
    assert "kept 2 files that existed already." in said
    assert "200 predictions in 1 file." in said
    assert (out / names[0]).stat().st_mtime_ns == before[names[0]]
    assert "town" in pa.parquet.read_table(out / names[1]).column_names
    assert nae("predict", model, parts, "-o", out) == (0, "", "kept 3 files that existed already.\n")


def test_many_files_are_not_predicted_into_one(nae, folder, parts, tmp_path):
    code, _, said = nae("predict", folder / "price.nae", parts, "-o", tmp_path / "scores.csv")
    assert code == 2
    assert "--output must be a folder if several files are predicted; got" in said
    assert said.endswith(f"Choose a folder, such as {tmp_path}/scores/.\n")
    assert not (tmp_path / "scores.csv").exists()


def test_a_file_without_a_column_of_the_model_is_named(nae, folder, parts, tmp_path):
    table = pa.parquet.read_table(parts / "part1.parquet")
    pa.parquet.write_table(table.drop_columns(["garden"]), parts / "part1.parquet")
    code, _, said = nae("predict", folder / "price.nae", parts, "-o", tmp_path / "out")
    assert code == 2
    assert "part1.parquet: The table must have the column 'garden' the model was trained on" in said
    assert "The model knows 'size', 'town', 'garden'; the table has 'size', 'town', 'price', 'sold'." in said
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["part0.parquet"]


def test_predicting_goes_on_where_it_broke_off(nae, folder, parts, tmp_path, monkeypatch):
    out, write = tmp_path / "out", batch._Writer.write

    def break_off(self, table):
        if len(list(out.glob("*.parquet"))) == 1:
            raise KeyboardInterrupt
        write(self, table)

    with monkeypatch.context() as patch:
        patch.setattr(batch._Writer, "write", break_off)
        code, _, _ = nae("predict", folder / "sold.nae", parts, "-o", out)
    assert code == 130
    assert [path.name for path in out.iterdir()] == ["part0.parquet"]  # whole, and nothing half-written beside it
    code, _, said = nae("predict", folder / "sold.nae", parts, "-o", out)
    assert code == 0
    assert "kept 1 file that existed already." in said
    assert [len(pa.parquet.read_table(path)) for path in sorted(out.iterdir())] == [200, 200, 200]


@pytest.mark.parametrize("form", ["csv", "tsv", "arrow", "jsonl"])
def test_predictions_may_have_another_format(nae, folder, parts, tmp_path, form):
    code, _, said = nae("predict", folder / "price.nae", parts, "-o", tmp_path / "o", "--format", form)
    assert code == 0, said
    code, out, _ = nae("predict", folder / "price.nae", parts / "part0.parquet")
    found = read_file(str(tmp_path / "o" / f"part0.{form}"))
    expected = pa.csv.read_csv(pa.BufferReader(out.encode()))
    assert found.column("prediction").to_pylist() == pytest.approx(expected.column("prediction").to_pylist())


def test_a_number_that_is_none_is_null_in_json_lines_of_one_file_and_of_many(nae, folder, parts, tmp_path):
    table = pa.parquet.read_table(parts / "part0.parquet")
    table = table.append_column("note", pa.array([float("nan")] * table.num_rows))
    pa.parquet.write_table(table, parts / "part0.parquet")
    for one in parts.glob("part[1-9].parquet"):
        one.unlink()
    words = ("predict", folder / "price.nae", "--keep", "--format", "jsonl", "-o")
    assert nae(*words, tmp_path / "one.jsonl", parts / "part0.parquet")[0] == 0
    assert nae(*words, f"{tmp_path / 'many'}/", parts)[0] == 0
    text = (tmp_path / "many" / "part0.jsonl").read_text()
    assert text == (tmp_path / "one.jsonl").read_text()
    assert {json.loads(line, parse_constant=pytest.fail)["note"] for line in text.splitlines()} == {None}


def test_overlapping_runs_leave_whole_files(nae, folder, parts, tmp_path):
    out = tmp_path / "o"
    words = ("predict", folder / "price.nae", parts, "-o", f"{out}/", "--format", "csv")
    assert nae(*words)[0] == 0
    expected = {path.name: path.read_bytes() for path in out.iterdir()}
    for path in out.iterdir():
        path.unlink()
    with whole_file(out / "part0.csv") as other:  # another run, in the middle of the same file
        other.write(b"half")
        other.flush()
        assert nae(*words)[0] == 0
        assert (out / "part0.csv").read_bytes() == expected["part0.csv"]
        other.seek(0)
        other.write(expected["part0.csv"])
    assert {path.name: path.read_bytes() for path in out.iterdir()} == expected


def test_what_cannot_be_written_is_said(nae, folder, parts, tmp_path):
    code, _, said = nae("predict", folder / "price.nae", parts / "*.parquet")
    assert code == 2
    assert "must go to a folder, such as -o out/" in said
    code, _, said = nae("predict", folder / "price.nae", parts, "-o", parts)
    assert code == 2
    assert "would be overwritten" in said
    (tmp_path / "other").mkdir()
    pa.parquet.write_table(make_table(30), tmp_path / "other" / "part0.parquet")
    code, _, said = nae("predict", folder / "price.nae", parts, tmp_path / "other", "-o", tmp_path / "o")
    assert code == 2
    assert "two become part0.parquet" in said
    code, _, said = nae("predict", folder / "price.nae", parts, "-o", tmp_path / "o", "--format", "xml")
    assert code == 2
    assert "--format must be one of" in said


def test_names_keep_their_dots(nae, folder, parts, tmp_path):
    names = ["part.0.parquet", "part.1.parquet", ".a.parquet", "b.c.v2.parquet"]
    for name in names:
        (parts / name).write_bytes((parts / "part0.parquet").read_bytes())
    code, _, said = nae("predict", folder / "price.nae", *(parts / name for name in names), "-o", f"{tmp_path / 'o'}/")
    assert code == 0, said
    assert {path.name for path in (tmp_path / "o").iterdir()} == set(names)
    (parts / "a.csv").write_text("x\n1\n")
    (parts / "a.csv.gz").write_text("x\n1\n")
    code, _, said = nae(
        "predict", folder / "price.nae", parts / "a.csv", parts / "a.csv.gz", "-o", f"{tmp_path / 'p'}/"
    )
    assert code == 2
    assert "two become a.csv" in said


def test_formulas_are_quoted_when_asked(nae, folder, parts, tmp_path):
    table = pa.parquet.read_table(parts / "part0.parquet").slice(0, 6)
    texts = ["=1+1", "+a", "-b", "@c", "\td", "plain", None]
    table = table.append_column("=note", pa.array(texts[1:]).dictionary_encode()).append_column(
        "n", pa.array(texts[:6])
    )
    for one in parts.glob("part*.parquet"):
        one.unlink()
    pa.parquet.write_table(table, parts / "part0.parquet")
    words = ("predict", folder / "price.nae", parts / "part0.parquet", "--keep", "--quote-formulas")
    assert nae(*words, "-o", tmp_path / "one.csv")[0] == 0
    assert nae(*words, "-o", f"{tmp_path / 'many'}/", "--format", "csv")[0] == 0
    for path in (tmp_path / "one.csv", tmp_path / "many" / "part0.csv"):
        found = pa.csv.read_csv(path, convert_options=pa.csv.ConvertOptions(strings_can_be_null=True))
        assert found.column("'=note").to_pylist() == ["'+a", "'-b", "'@c", "'\td", "plain", None]
        assert found.column("n").to_pylist() == ["'=1+1", "'+a", "'-b", "'@c", "'\td", "plain"]
        assert found.column("prediction").type == pa.float64()
    assert nae(*words[:-1], "-o", tmp_path / "plain.csv")[0] == 0
    assert "'=" not in (tmp_path / "plain.csv").read_text()
    for output in (tmp_path / "one.parquet", f"{tmp_path / 'more'}/"):
        code, _, said = nae(*words, "-o", output)
        assert code == 2
        assert "--quote-formulas is for CSV and TSV; the output is parquet. Leave it out." in said
