import json
from pathlib import Path

import pyarrow.parquet
import pytest

import nae as library
from nae.decisions import Recourse
from tests.cli.conftest import Command


def test_recourse_is_printed_for_one_row_and_for_all(nae: Command, folder: Path, tmp_path: Path) -> None:
    rows = pyarrow.parquet.read_table(folder / "homes.parquet").slice(0, 3)
    pyarrow.parquet.write_table(rows, tmp_path / "few.parquet")
    words = ("explain", folder / "sold.nae", folder / "homes.parquet", "--recourse")
    code, out, err = nae(*words, "0.6:", "--row", 2, "--fixed", "town")
    assert code == 0, err
    assert out.startswith("Row 2: The probability of yes is ")
    assert "The target: the probability of yes is at least 60 %" in out
    found = Recourse.from_dict(
        json.loads(nae(*words, "yes", "--row", 2, "--json", "--changes", 1, "--cost", "size:2")[1])
    )
    assert found.k == 1
    every = json.loads(nae("explain", folder / "price.nae", tmp_path / "few.parquet", "--recourse", "1e6", "--json")[1])
    assert [Recourse.from_dict(one).is_impossible for one in every] == [True] * 3


def test_recourse_says_what_the_model_says(nae: Command, folder: Path) -> None:
    words = ("explain", folder / "sold.nae", folder / "homes.parquet", "--recourse", ":0.3", "--class", "no")
    found = Recourse.from_dict(json.loads(nae(*words, "--row", 1, "--json", "--like", folder / "homes.parquet")[1]))
    table = pyarrow.parquet.read_table(folder / "homes.parquet")
    model = library.load(folder / "sold.nae")
    same = model.recourse(table.slice(0, 1), target=(None, 0.3), output="no", like=table)
    assert same.to_dict() == found.to_dict()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--recourse", "yes"], "--recourse needs a table"),
        (["homes.parquet", "--recourse", "perhaps"], "target must be one of the model's classes; got 'perhaps'"),
        (["homes.parquet", "--recourse", "yes", "--row", "0"], "--row must be in [1, 300]; got 0."),
        (["homes.parquet", "--recourse", "yes", "--cost", "size"], "--cost must begin with a feature and a colon"),
        (["homes.parquet", "--recourse", "yes", "--fixed", "sise"], "Did you mean 'size'?"),
    ],
)
def test_what_makes_no_sense_is_refused(nae: Command, folder: Path, words: list[str], complaint: str) -> None:
    code, _, err = nae(
        "explain", folder / "sold.nae", *(folder / word if word.endswith("parquet") else word for word in words)
    )
    assert code == 2
    assert complaint in " ".join(err.split())


def test_a_report_says_what_would_have_to_change(nae: Command, folder: Path, tmp_path: Path) -> None:
    words = ("report", folder / "sold.nae", folder / "homes.parquet", "-o", tmp_path / "page.html", "--max-rows", 10)
    code, _, err = nae(*words, "--recourse", "yes", "--fixed", "town")
    assert code == 0, err
    assert "the model chooses yes" in (tmp_path / "page.html").read_text()
    assert nae(*words, "--recourse", "perhaps")[0] == 2
