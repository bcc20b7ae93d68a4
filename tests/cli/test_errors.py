import errno
import os
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from nae.cli.app import app, run
from tests.cli.conftest import Command


def fails(nae: Command, *words: object) -> str:
    """Run what must fail and return the one line that says why; remarks may stand before it."""
    code, out, err = nae(*words)
    assert (code, out) == (2, "")
    assert err.count("error: ") == 1, err
    assert "Traceback" not in err
    lines = err.splitlines(keepends=True)
    assert lines[-1].startswith("error: ")
    return lines[-1]


def test_a_link_to_nowhere_is_not_proposed_in_its_own_place(nae: Command, tmp_path: Path) -> None:
    path = tmp_path / "m.nae"
    path.symlink_to(tmp_path / "none.nae")
    assert nae("show", path) == (2, "", f"error: No file is at {path}.\n")


def test_an_unknown_target_names_the_nearest(nae: Command, folder: Path) -> None:
    err = fails(nae, "fit", folder / "homes.parquet", "-t", "prize", "-o", folder / "x.nae")
    assert err == "error: The table has no target column 'prize'. Did you mean 'price'?\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("fit", "{data}", "-t", "price", "--additivity", "2", "-o", "{tmp}/m.nae"), "additivity"),
        (("fit", "{data}", "-t", "price", "--members", "0", "-o", "{tmp}/m.nae"), "n_members"),
        (("fit", "{data}", "-t", "price", "--time-limit", "soon", "-o", "{tmp}/m.nae"), "must look like"),
        (("fit", "{data}", "-t", "price", "-o", "{tmp}/none/m.nae"), "folder that exists"),
        (("fit", "{data}", "-t", "price", "-o", "-"), "must be written to a file"),
        (("fit", "{data}", "-t", "price", "-o", "{tmp}"), "is a folder"),
        (("fit", "{data}", "-t", "town", "--task", "regression", "-o", "{tmp}/m.nae"), "row 1 holds"),
        (("fit", "{data}", "-t", "sold", "--loss", "poisson", "-o", "{tmp}/m.nae"), "--loss is for regressions"),
        (("fit", "{data}", "-t", "price", "--positive-class", "yes", "-o", "{tmp}/m.nae"), "is for two classes"),
        (("fit", "{data}", "-t", "sold", "--positive-class", "yess", "-o", "{tmp}/m.nae"), "Did you mean 'yes'"),
        (("explain", "{folder}/sold.nae", "--class", "noo"), "Did you mean 'no'"),
        (("fit", "{data}", "-t", "price", "--loss", "poison", "-o", "{tmp}/m.nae"), "Did you mean 'poisson'"),
        (("fit", "{data}", "-t", "price", "--ignore", "towns", "-o", "{tmp}/m.nae"), "Did you mean 'town'"),
        (("fit", "{data}"), "--target"),
        (("fit", "{data}", "--targett", "price"), "--target"),
        (("fitt",), "fit"),
        (("predict", "{folder}/prise.nae", "{data}"), "Did you mean 'price.nae'"),
        (("predict", "{data}", "{data}"), "homes.parquet"),
        (("predict", "{folder}/price.nae", "{data}", "-o", "{tmp}/o.xlsx"), "must say the format"),
        (("explain", "{folder}/price.nae", "--row", "1"), "--row needs a table"),
        (("explain", "{folder}/price.nae", "{data}", "--row", "301"), r"--row must be in [1, 300]; got 301"),
        (("explain", "{folder}/price.nae", "--feature", "sise"), "Did you mean 'size'"),
        (("explain", "{folder}/price.nae", "--pair", "size", "towm"), "Did you mean 'town'"),
        (("explain", "{folder}/price.nae", "--pair", "a", "b", "--feature", "c"), "cannot be combined"),
        (("compare", "{folder}/price.nae", "{data}"), "at least two models"),
        (("compare", "{folder}/price.nae", "{folder}/sold.nae", "{data}"), "the same classes"),
        (("report", "{folder}/price.nae", "{data}", "-t", "prize"), "Did you mean 'price'"),
        (("export", "{folder}/price.nae", "-o", "{tmp}/m.txt"), "must be one of .onnx, .c, .sql and .json"),
        (("export", "{folder}/price.nae", "-o", "{tmp}/none/m.json"), "folder that exists"),
        (("serve", "{tmp}/none.nae"), "No file is at"),
        (("serve", "{tmp}"), "must hold model files"),
    ],
)
def test_what_the_user_can_mend_is_one_sentence(
    nae: Command, folder: Path, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    places = {"folder": folder, "tmp": tmp_path, "data": folder / "homes.parquet"}
    assert sentence in fails(nae, *(word.format(**places) for word in words))


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (["1,5"] * 30, "must vary; all its values are 5"),
        (["1,"] * 30, "must hold values; all of them are missing"),
        (["inf,1", *["1,2", "3,4"] * 15], "'a' must hold finite numbers; row 1 holds infinity"),
        ([f"{i},name{i}" for i in range(60)], "it holds 60 different texts"),
    ],
)
def test_a_target_that_cannot_be_learned_is_named(nae: Command, tmp_path: Path, rows: list[str], sentence: str) -> None:
    data = tmp_path / "d.csv"
    data.write_text("\n".join(["a,y", *rows]))
    assert sentence in fails(nae, "fit", data, "-t", "y", "-o", tmp_path / "m.nae")


@pytest.mark.parametrize("how", [(), ("--stream",)])
def test_a_column_of_dates_is_refused_with_a_way_out(nae: Command, tmp_path: Path, how: tuple[str, ...]) -> None:
    data = tmp_path / "sales.csv"
    data.write_text("sold on,price\n" + "".join(f"2024-01-{day:02d},{day}\n" for day in range(1, 29)))
    err = fails(nae, "fit", data, "-t", "price", "-o", tmp_path / "m.nae", *how)
    assert "Column 'sold on' must hold numbers, booleans, text or categories; it holds Date" in err
    assert "Turn it into numbers, such as days since a fixed day, or a year and a month" in err
    assert err.endswith("or drop the column (nae fit --ignore 'sold on').\n")


def test_a_column_that_is_missing_when_predicting_names_the_nearest(nae: Command, folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    data.write_text("siez,town,garden\n1,Ulm,true\n")
    err = fails(nae, "predict", folder / "price.nae", data)
    assert "must have the column 'size' the model was trained on. Did you mean 'siez'?" in err


def test_debug_shows_where_an_error_comes_from(nae: Command, tmp_path: Path) -> None:
    code, _, err = nae("show", tmp_path / "none.nae", "--debug")
    assert code == 2
    assert "Traceback" in err
    assert "FormatError" in err


def test_a_defect_of_the_program_is_no_fault_of_the_user(nae: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nae.cli.doctor._packages", lambda: 1 / 0)
    code, _, err = nae("doctor")
    assert code == 1
    assert err == "error: ZeroDivisionError: division by zero; this is a defect of nae, and --debug shows where.\n"


LOST = "The output must be another file than those that are read; {} is {}, which would be lost. Take another name"


def test_no_output_replaces_what_is_read(nae: Command, folder: Path, tmp_path: Path) -> None:
    data, link, model = tmp_path / "d.csv", tmp_path / "link.csv", tmp_path / "m.nae"
    pyarrow.csv.write_csv(pyarrow.parquet.read_table(folder / "homes.parquet"), data)
    link.symlink_to(data)
    model.write_bytes((folder / "price.nae").read_bytes())
    before = data.read_bytes(), model.read_bytes()
    for words in (
        ["fit", data, "-t", "price", "-o", data],
        ["fit", data, "-t", "price", "-o", link],
        ["fit", tmp_path / "d*.csv", "-t", "price", "-o", data],
        ["tune", data, "-t", "price", "-o", data],
        ["predict", model, data, "-o", data],
        ["report", model, data, "-o", data],
    ):
        assert LOST.format(words[-1], data) in fails(nae, *words)
    for words in (
        ["predict", model, data, "--format", "csv", "-o", model],
        ["report", model, data, "-o", model],
        ["export", model, "--format", "json", "-o", model],
    ):
        assert LOST.format(model, model) in fails(nae, *words)
    assert (data.read_bytes(), model.read_bytes()) == before


@pytest.mark.parametrize(
    "line",
    [
        "predict MODEL DATA -o out.csv",
        "predict MODEL DATA -o out.parquet",
        "report MODEL DATA -o out.html",
        "export MODEL -o out.json",
        "export MODEL -o out.c",
        "export MODEL -o out.sql",
    ],
)
def test_a_full_disk_leaves_the_old_output_and_is_no_defect(
    nae: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    words = line.split()
    path = tmp_path / words[-1]
    files = {"MODEL": folder / "price.nae", "DATA": folder / "homes.parquet", path.name: path}
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    err = fails(nae, *(files.get(word, word) for word in words))
    assert "No space left on device. Free some space, or write elsewhere.\n" in err
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_ctrl_c_is_a_code_of_its_own(nae: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nae.cli.doctor._packages", interrupt)
    assert nae("doctor") == (130, "", "stopped.\n")


def test_help_and_version_are_no_errors(nae: Command) -> None:
    for words in ((), ("--help",), ("fit", "--help")):
        assert nae(*words)[0] == 0
    assert nae("--version")[1].startswith("nae ")


def test_every_command_is_there() -> None:
    names = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert names >= {"fit", "predict", "explain", "report", "compare", "show", "export", "serve", "demo", "doctor"}
    assert run(["--version"]) == 0
