import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from nae.cli.columns import align, check_finite, find_column, remarks
from nae.cli.console import digits, make_table, out, say
from nae.cli.options import parse_additivity, parse_class_weight, parse_duration
from nae.cli.quality import quality_table
from nae.cli.reading import read_file
from nae.cli.splits import split_rows
from nae.cli.writing import check_output, write_table
from nae.encoding import Schema
from nae.encoding.schema import Category, Number
from nae.errors import ConfigError, DataError
from nae.native import is_here, reason
from nae.quality import Measure, Quality
from nae.tables import load
from tests.cli.conftest import Command

TABLE = pa.table({"a": [1.5, None], "b": ["x", 'y,"z']})


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("1.5h", 5400), ("1d", 86400)]
)
def test_durations_are_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "5x", "-3s", "0", "1m2", "5m!"])
def test_a_duration_that_is_none_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="must look like 90s, 5m or 1h30m"):
        parse_duration(text)


def test_additivity_is_a_number_or_left_to_the_estimator() -> None:
    assert parse_additivity("0.9") == 0.9
    assert parse_additivity("auto") == "auto"
    assert parse_additivity(None) is None


def test_class_weights_are_balanced_or_named() -> None:
    assert parse_class_weight(None) is None
    assert parse_class_weight(["balanced"]) == "balanced"
    assert parse_class_weight(["yes=3", "a=b=0.5"]) == {"yes": 3.0, "a=b": 0.5}


@pytest.mark.parametrize("words", [["yes"], ["yes=much"], ["=3"], ["balanced", "yes=3"]])
def test_a_class_weight_that_is_none_is_an_error(words: list[str]) -> None:
    with pytest.raises(ConfigError, match="must be balanced, or a class and its weight such as yes=3; got"):
        parse_class_weight(words)


def test_what_is_equal_is_called_the_same() -> None:
    quality = Quality((Measure("RMSE", 1.0, 1.00001, "lower"), Measure("R²", 0.5, 0.0, "higher")), 9, "the mean")
    assert list(quality_table("", quality).columns[3].cells) == ["the same", "+0.500"]


def test_a_split_keeps_the_share_of_every_class() -> None:
    target = np.array(["a"] * 80 + ["b"] * 20, dtype=object)
    split = split_rows(target, test_size=0.25, seed=0, is_classes=True)
    assert (target[split.test] == "b").sum() == 5
    assert sorted([*split.training, *split.test]) == list(range(100))
    again = split_rows(target, test_size=0.25, seed=0, is_classes=True)
    np.testing.assert_array_equal(split.test, again.test)


def test_few_rows_are_all_trained_on() -> None:
    assert len(split_rows(np.arange(10.0), test_size=0.2, seed=0, is_classes=False).test) == 0


@pytest.mark.parametrize("size", [-0.1, 1.0])
def test_a_test_size_must_leave_rows(size: float) -> None:
    with pytest.raises(ConfigError, match=r"--test-size must be in \[0, 1\)"):
        split_rows(np.arange(100.0), test_size=size, seed=0, is_classes=False)


def test_a_column_is_found_although_a_blank_was_added() -> None:
    table = pa.table({"target ": [1], "other": [2]})
    assert find_column("target", table) == "target "
    with pytest.raises(DataError, match=r"no target column 'targte'\. Did you mean 'target '\?"):
        find_column("targte", table, role="target column")


def test_blanks_that_leave_two_columns_are_not_guessed_at() -> None:
    with pytest.raises(DataError, match="no column 'a'"):
        find_column("a", pa.table({" a": [1], "a ": [2]}))


def test_columns_are_brought_into_the_model_s_order_and_names() -> None:
    schema = Schema((Number("size", np.array([0.0, 1.0])), Category("town", ("Ulm",))))
    table = pa.table({"town ": ["Ulm"], "extra": [0], "size": ["0.5"]})
    assert align(table, schema).to_pydict() == {"size": [0.5], "town": ["Ulm"]}
    with pytest.raises(DataError, match="Column 'size' must hold numbers; row 2 holds 'big'"):
        align(pa.table({"town": ["Ulm", "Ulm"], "size": ["0.5", "big"]}), schema)


def test_infinity_is_named_with_its_row() -> None:
    with pytest.raises(DataError, match="'a' must hold finite numbers; row 2 holds infinity"):
        check_finite(pa.table({"a": [1.0, np.inf]}), ["a"])


def test_a_number_column_with_one_word_is_remarked_on() -> None:
    [remark] = remarks(pa.table({"a": [*map(str, range(20)), "n.a.?"]}), ["a"])
    assert "row 21 holds 'n.a.?'" in remark


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow", "feather", "jsonl", "csv.gz", "csv.zst"])
def test_what_is_written_is_read_again(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out.{ending}"
    write_table(TABLE, str(path))
    assert read_file(str(path)).to_pydict() == TABLE.to_pydict()


def test_what_json_does_not_have_is_written_as_null(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    write_table(pa.table({"a": [np.nan, np.inf, 1.0], "b": [[np.nan, 2.0], [], None]}), str(path))
    lines = [json.loads(line, parse_constant=pytest.fail) for line in path.read_text().splitlines()]
    assert [line["a"] for line in lines] == [None, None, 1.0]
    assert lines[0]["b"] == [None, 2.0]


def test_an_output_that_cannot_be_written_is_known_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must say the format"):
        check_output(str(tmp_path / "out.xlsx"))
    with pytest.raises(ConfigError, match="folder that exists"):
        check_output(str(tmp_path / "none" / "out.csv"))
    with pytest.raises(ConfigError, match=r"--format must be one of .* Did you mean 'parquet'"):
        check_output("-", form="parket")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4.0, "4.000"),
        (0.0, "0.000"),
        (0.0123, "0.01230"),
        (999.96, "1000"),
        (26595.4, "26595"),
        (-12.5, "-12.50"),
        (2e20, "2.000e+20"),
    ],
)
def test_numbers_keep_their_zeros_and_large_ones_their_digits(value: float, text: str) -> None:
    assert digits(value) == text


def test_numbers_may_have_a_sign() -> None:
    assert (digits(4, 3, signed=True), digits(-1234, 3, signed=True)) == ("+4.00", "-1234")


def test_the_device_and_the_reason_for_it_are_said(nae: Command, folder: Path, tmp_path: Path) -> None:
    words = ("fit", folder / "homes.parquet", "-t", "price", "-o", tmp_path / "m.nae", "--members", 1, "--epochs", 1)
    _, _, err = nae(*words, "--engine", "torch")
    assert "training by the engine torch on cpu: as asked for." in err
    assert load(tmp_path / "m.nae").training.engine == "torch"
    _, _, err = nae(*words, "--engine", "torch", "--quiet")
    assert err == ""


@pytest.mark.skipif(not is_here(), reason=reason())
def test_the_native_core_trains_where_nothing_else_is_asked_for(nae: Command, folder: Path, tmp_path: Path) -> None:
    words = ("fit", folder / "homes.parquet", "-t", "price", "-o", tmp_path / "m.nae", "--members", 1, "--epochs", 1)
    for asked in ((), ("--engine", "native"), ("--engine", "auto", "--device", "cpu")):
        _, _, err = nae(*words, *asked)
        assert "training by the engine native on cpu: the native core is the fastest on a processor" in err
        assert load(tmp_path / "m.nae").training.engine == "native"


def test_an_engine_that_there_is_not_is_a_sentence(nae: Command, folder: Path, tmp_path: Path) -> None:
    words = ("fit", folder / "homes.parquet", "-t", "price", "-o", tmp_path / "m.nae", "--engine", "steam")
    status, _, err = nae(*words)
    assert status != 0
    assert "engine must be one of ['auto', 'native', 'torch']; got 'steam'" in err
    assert "Traceback" not in err


def test_what_a_file_holds_does_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "a\x1b[31mb\rc\x9bd\u202ee\nf"
    say(hostile, style="bold red")
    table = make_table(hostile, hostile)
    table.add_row(hostile)
    table.caption = hostile
    out().print(table, hostile)
    said = capsys.readouterr()
    assert not re.search("[\x1b\r\x9b\u202e]", said.out + said.err)
    assert said.err == "a\\x1b[31mb\\rc\\x9bd\\u202ee\nf\n"
    assert said.out.count("\\x1b[31mb") == 5
