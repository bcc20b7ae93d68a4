"""Offsets, weights and class weights on the command line: no features, remembered, asked for where they are missing."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import nae as library
from nae.cli.app import run
from nae.cli.console import digits
from nae.cli.reading import read_file
from tests.cli.conftest import Command

TINY = ("--members", "1", "--epochs", "12")
FEATURES = ["age", "town"]


def claims(n_rows: int = 600) -> pa.Table:
    """Return counts under very different exposures, with weights, and a class."""
    random = np.random.default_rng(0)
    age, years = random.uniform(size=n_rows), random.uniform(0.02, 3, size=n_rows)
    y = random.poisson(years * np.exp(age))
    return pa.table(
        {
            "age": age.round(3),
            "town": np.array(["Ulm", "Köln"])[random.integers(0, 2, size=n_rows)].tolist(),
            "log years": np.log(years),
            "times": random.integers(1, 4, size=n_rows),
            "claims": y,
            "any": (y > 0).astype(int),
        }
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the table, and a model of its rate."""
    place = tmp_path_factory.mktemp("claims")
    pa.csv.write_csv(claims(), place / "claims.csv")
    words = ["fit", f"{place / 'claims.csv'}", "-t", "claims", "--loss", "poisson", "--ignore", "any", "-q"]
    beside = ["--offset", "log years", "--weight", "times", "--jobs", "1"]
    assert run([*words, *beside, "-o", f"{place / 'rate.nae'}", *TINY]) == 0
    return place


def test_offset_and_weight_are_no_features_and_are_remembered(nae: Command, place: Path) -> None:
    model = library.load(place / "rate.nae")
    assert model.feature_names == tuple(FEATURES)
    assert (model.offset_names, model.training.weight) == (("log years",), "times")
    assert model.training.quality["Poisson deviance"] < model.training.baseline_quality["Poisson deviance"]
    shown = nae("show", place / "rate.nae")[1]
    assert "offset: log years" in shown
    assert "weight: times" in shown
    assert "quality on held-out rows: Poisson deviance" in shown
    card = json.loads(nae("show", place / "rate.nae", "--json")[1])
    low, high = card["quality"][0]["interval"]
    assert low < card["quality"][0]["model"] < high


def test_report_and_compare_measure_with_what_the_file_remembers(nae: Command, place: Path, tmp_path: Path) -> None:
    page, data = tmp_path / "r.html", place / "claims.csv"
    code, _, said = nae("report", place / "rate.nae", data, "-o", page)
    assert code == 0, said
    assert "120 rows the model was not trained on, with the offset 'log years' and the weight 'times'." in said
    found = re.search(r'id="content">(.*?)</script>', page.read_text())
    assert found is not None
    content = json.loads(found[1])
    scores = {score["name"]: score for score in content["quality"]["scores"]}
    remembered = library.load(place / "rate.nae").training
    assert scores["Poisson deviance"]["model"] == pytest.approx(remembered.quality["Poisson deviance"])
    assert scores["Poisson deviance"]["baseline"] == pytest.approx(remembered.baseline_quality["Poisson deviance"])
    assert "An offset (log years) is added to the score" in content["offsetNote"]
    code, out, said = nae("compare", place / "rate.nae", place / "rate.nae", data)
    assert code == 0, said
    shown = digits(remembered.quality["Poisson deviance"])
    assert re.search(rf"Poisson deviance[ │]+{shown}[ │]+{shown}", out)


@pytest.mark.parametrize("command", ["report", "compare"])
def test_a_table_without_the_offset_is_refused_and_one_that_calls_it_otherwise_is_not(
    nae: Command, place: Path, tmp_path: Path, command: str
) -> None:
    data, model = tmp_path / "d.csv", place / "rate.nae"
    table = claims()
    pa.csv.write_csv(table.rename_columns([name.replace("log years", "o") for name in table.column_names]), data)
    words = (
        ("report", model, data, "-o", tmp_path / "r.html") if command == "report" else ("compare", model, model, data)
    )
    code, _, said = nae(*words)
    assert code == 2
    assert "must be measured with one; its offset was 'log years', and none was given. Name its column with" in said
    assert nae(*words, "--offset", "o")[0] == 0
    code, _, said = nae(*words, "--offset", "oo")
    assert (code, "The table has no offset column 'oo'. Did you mean 'o'?" in said) == (2, True)


def test_a_report_without_a_target_needs_no_offset(nae: Command, place: Path, tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    pa.csv.write_csv(claims().select(FEATURES), data)
    assert nae("report", place / "rate.nae", data, "-o", tmp_path / "r.html")[0] == 0
    assert "This page predicts for an offset of 0, which is an exposure of 1." in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("is_many", [False, True])
def test_rates_are_predicted_with_a_note_and_counts_with_the_offset(
    nae: Command, place: Path, tmp_path: Path, is_many: bool
) -> None:
    out = tmp_path / "out"
    words = ("predict", place / "rate.nae", *[place / "claims.csv"], "-o", f"{out}/" if is_many else f"{out}.csv")
    code, _, said = nae(*words)
    assert code == 0, said
    assert "note: predicted for an offset of 0, a rate for one unit of exposure; --offset 'log years' adds" in said
    written = out / "claims.csv" if is_many else tmp_path / "out.csv"
    rate = np.array(read_file(str(written)).column("prediction"))
    written.unlink()
    code, _, said = nae(*words, "--offset", "log years")
    assert (code, "note:" in said) == (0, False)
    count = np.array(read_file(str(written)).column("prediction"))
    np.testing.assert_allclose(count, rate * np.exp(claims().column("log years").to_numpy()), rtol=1e-6)


def test_one_row_is_explained_with_its_offset(nae: Command, place: Path) -> None:
    words = ("explain", place / "rate.nae", place / "claims.csv", "--row", 3)
    code, out, said = nae(*words)
    assert (code, "note: predicted for an offset of 0" in said) == (0, True)
    code, out, said = nae(*words, "--offset", "log years", "--json")
    assert (code, said) == (0, "")
    assert json.loads(out)["offset"] == [[pytest.approx(claims().column("log years")[2].as_py())]]
    assert "+ offset" in nae(*words, "--offset", "log years")[1]
    code, _, said = nae("explain", place / "rate.nae", "--offset", "log years")
    assert (code, "--offset is for one row" in said) == (2, True)


def test_many_files_are_fitted_with_offset_and_weight(nae: Command, place: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.nae"
    words = ("fit", place / "claims.csv", "-t", "claims", "--loss", "poisson", "--ignore", "any", "--stream", "-q")
    code, _, said = nae(*words, "--offset", "log years", "--weight", "times", "-o", path, *TINY)
    assert code == 0, said
    model = library.load(path)
    assert model.feature_names == tuple(FEATURES)
    assert (model.offset_names, model.training.weight) == (("log years",), "times")
    assert model.training.quality["Poisson deviance"] < model.training.baseline_quality["Poisson deviance"]


@pytest.mark.parametrize("how", [(), ("--stream",)])
def test_class_weights_shift_what_is_predicted_and_no_probability(
    nae: Command, place: Path, tmp_path: Path, how: tuple[str, ...]
) -> None:
    shares = []
    for given in ((), ("--class-weight", "1=2000")):
        path = tmp_path / "m.nae"
        words = ("fit", place / "claims.csv", "-t", "any", "--task", "classification", "--ignore", "claims", "-q")
        code, _, said = nae(*words, *given, *how, "-o", path, *TINY)
        assert code == 0, said
        model = library.load(path)
        chosen = model.predict(claims()) == model.classes[1]
        shares.append((chosen.mean(), model.predict_proba(claims())[:, 1].mean()))
    assert shares[1][0] > shares[0][0]
    assert shares[1][1] == pytest.approx(shares[0][1], abs=0.01)


def test_what_cannot_be_is_said(nae: Command, place: Path, tmp_path: Path) -> None:
    words = ("fit", place / "claims.csv", "-t", "claims", "-o", tmp_path / "m.nae", *TINY)
    assert "--class-weight is for classes; numbers are predicted" in nae(*words, "--class-weight", "balanced")[2]
    assert "The table has no weight column 'time'. Did you mean 'times'?" in nae(*words, "--weight", "time")[2]
    assert "Column 'town' must hold numbers; row 1 holds" in nae(*words, "--offset", "town")[2]
    data = tmp_path / "d.csv"
    data.write_text("a,w,y\n" + "".join(f"{i},{i if i != 7 else ''},{i % 5}\n" for i in range(40)))
    code, _, said = nae("fit", data, "-t", "y", "--weight", "w", "-o", tmp_path / "m.nae", *TINY)
    assert (code, "Column 'w' must hold a finite number in every row; row 8 holds nothing." in said) == (2, True)


def test_models_of_different_losses_are_compared(nae: Command, place: Path, tmp_path: Path) -> None:
    path = tmp_path / "plain.nae"
    words = ("fit", place / "claims.csv", "-t", "claims", "--ignore", "any", "--ignore", "times", "-q", "-o", path)
    assert nae(*words, *TINY)[0] == 0
    code, out, said = nae("compare", place / "rate.nae", path, place / "claims.csv")
    assert code == 0, said
    assert re.search(r"Poisson deviance[ │]+[\d.]+[ │]+–", out)
    assert re.search(r"RMSE[ │]+[\d.]+[ │]+[\d.]+", out)
    assert library.load(path).offset_names is None
    code, out, said = nae("compare", path, place / "rate.nae", place / "claims.csv")
    assert code == 0, said
    assert re.search(r"R²[ │]+-?[\d.]+[ │]+–", out)
    assert "deviance" not in out
    assert "D²" not in out  # of another loss it would not mean the same
