import json
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

import nae as library
from tests.cli.conftest import Command, make_table


def test_a_scorecard_is_printed_and_written_in_every_format(nae: Command, folder: Path, tmp_path: Path) -> None:
    code, out, _ = nae("scorecard", folder / "sold.nae", "--base", 500, "--points-to-double", 40, "--max-bins", 3)
    assert code == 0
    assert "40 points double the odds of yes" in out
    for name in ("card.csv", "card.xlsx", "card.html", "card.json", "card.parquet"):
        code, _, err = nae("scorecard", folder / "sold.nae", "--on", folder / "homes.parquet", "-o", tmp_path / name)
        assert code == 0, err
        assert "On 300 rows:" in err
        assert (tmp_path / name).stat().st_size > 500
    card = library.load(folder / "sold.nae").scorecard()
    assert json.loads((tmp_path / "card.json").read_text())["base"] == card.base
    assert pyarrow.csv.read_csv(tmp_path / "card.csv")["points"][0].as_py() == card.base


def test_a_scorecard_speaks_for_either_class(nae: Command, folder: Path, tmp_path: Path) -> None:
    assert nae("scorecard", folder / "sold.nae", "--class", "no", "-o", tmp_path / "no.json")[0] == 0
    assert json.loads((tmp_path / "no.json").read_text())["output"] == "no"


def test_relativities_are_written(nae: Command, folder: Path, tmp_path: Path) -> None:
    X = {name: make_table(80)[name].to_pylist() for name in ("town", "garden")}
    y = np.random.default_rng(0).poisson(1.0, 80)
    library.NAERegressor("poisson", n_members=1, max_epochs=2, random_state=0).fit(X, y).save(tmp_path / "claims.nae")
    assert nae("relativities", tmp_path / "claims.nae", "-o", tmp_path / "table.csv")[0] == 0
    assert pyarrow.csv.read_csv(tmp_path / "table.csv").column_names[:4] == ["feature", "values", "from", "below"]
    assert "factor" in nae("relativities", tmp_path / "claims.nae", "--reference", "lowest", "--max-bins", 0)[1]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["scorecard", "price.nae"], "needs a model of two classes"),
        (["relativities", "sold.nae"], "need a model with a log link"),
        (
            ["scorecard", "sold.nae", "--reference", "best"],
            "--reference must be average, lowest or common; got 'best'.",
        ),
        (["scorecard", "sold.nae", "-o", "sold.nae"], "The output must be another file"),
        (["scorecard", "sold.nae", "-o", "nowhere/card.xlsx"], "The output must lie in a folder that exists"),
        (["scorecard", "sold.nae", "-o", "card.doc"], "must say the format, one of .xlsx, .html, .json, .csv"),
    ],
)
def test_what_cannot_be_written_is_refused(nae: Command, folder: Path, words: list[str], complaint: str) -> None:
    code, _, err = nae(*(folder / word if "." in word else word for word in words))
    assert code == 2
    assert complaint in " ".join(err.split())
