"""``nae range`` and ``nae extremes`` print what the model proves."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import nae as library
from nae.encoding import Category, Number
from tests.cli.conftest import Command
from tests.laws.models import make_model

FEATURES = (
    Number(" income", np.array([0.0, 1.0, 2.0])),
    Category("town", ("Ulm", "Bonn, old"), ("Hof", "Aalen")),
    Number("age", np.array([20.0, 40.0])),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    make_model(np.random.default_rng(0), features=FEATURES, link="logit").save(tmp_path / "m.nae")
    return tmp_path / "m.nae"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    (tmp_path / "rows.csv").write_text("age,town,id\n25,Ulm,7\n60,,8\n")
    return tmp_path / "rows.csv"


def test_ranges_are_written_for_features_that_the_table_lacks(nae: Command, path: Path, rows: Path) -> None:
    code, out, err = nae("range", path, rows, "--unknown", "income", "--within", "town=Ulm,missing", "--keep")
    assert (code, err) == (0, "")
    found = list(csv.DictReader(io.StringIO(out)))
    model = library.load(path)
    expected = model.predict_range({"age": [25.0, 60.0]}, unknown=[" income"], within={"town": ["Ulm", None]})
    assert [float(row["lower score"]) for row in found] == pytest.approx(expected.lower.tolist())
    assert [float(row["upper probability of yes"]) for row in found] == pytest.approx(
        expected.upper_prediction[:, 1].tolist()
    )
    assert [row["id"] for row in found] == ["7", "8"]
    assert {row["certain"] for row in found} <= {"", "no", "yes"}


def test_limits_are_intervals_and_levels(nae: Command, path: Path, rows: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    words = ("--within", "income=0.5:", "--within", "town=Bonn, old", "--within", "age=30")
    code, _, err = nae("range", path, rows, *words, "--budget", 9, "-o", target)
    assert (code, err.strip()) == (0, f"wrote 2 ranges to {target}.")
    limits = {" income": (0.5, None), "town": "Bonn, old", "age": (30, 30)}
    expected = library.load(path).predict_range({"id": [0]}, within=limits, budget=9)
    for line in target.read_text().splitlines():
        assert json.loads(line)["upper score"] == pytest.approx(expected.upper[0])


def test_the_next_question_is_printed(nae: Command, path: Path, rows: Path) -> None:
    code, out, err = nae("range", path, rows, "--unknown", "income", "--unknown", "town", "--ask", 2)
    assert (code, err) == (0, "")
    assert "ask next for" in out
    assert "income" in out
    assert "town" in out


def test_extremes_are_printed(nae: Command, path: Path) -> None:
    code, out, err = nae("extremes", path, "--within", "age=30:35", "--within", "town=Hof")
    assert (code, err) == (0, "")
    assert "smallest log-odds of class 0" in " ".join(out.split())
    assert "'Hof'" in out
    code, out, _ = nae("extremes", path, "--class", "no", "--json")
    assert code == 0
    mirrored = -library.load(path).extremes().largest.score
    assert json.loads(out)["extremes"][0]["score"] == pytest.approx(mirrored)


def test_a_known_feature_must_be_in_the_table(nae: Command, path: Path, rows: Path) -> None:
    code, _, err = nae("range", path, rows, "--unknown", "age")
    assert (code, "must have the column ' income'" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "needs a feature that is unknown or within limits"),
        (("--unknown", "incom"), "Did you mean"),
        (("--within", "age"), "--within must be a feature and its limits, such as age=30:40; got 'age'"),
        (("--within", "agee=3:4"), "No feature is called 'agee'. Did you mean 'age'?"),
        (("--within", "age=3:x"), "The limits of 'age' must be numbers, such as 30:40; got '3:x'"),
        (("--within", "age=4:3"), "must be a pair (low, high)"),
        (("--within", "town=Ulmm"), "Did you mean 'Ulm'?"),
        (("--within", "age=3:4", "--within", "age=5:6"), "--within takes every feature once; got 'age' twice"),
        (("--unknown", "income", "--ask", "3"), "--ask must be a row from 1 to 2; got 3"),
        (("--unknown", "income", "--budget", "0"), "budget must be an integer of at least 1"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(
    nae: Command, path: Path, tmp_path: Path, words: tuple[str, ...], error: str
) -> None:
    rows = tmp_path / "whole.csv"
    rows.write_text("age,town,income\n25,Ulm,0.5\n60,,1\n")
    code, out, err = nae("range", path, rows, *words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert error in err
