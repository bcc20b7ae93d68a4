import json
from pathlib import Path

import numpy as np
import pytest

import nae as library
from nae import NAERegressor
from nae.editing import history
from nae.encoding import Category, Number
from nae.tables import TableModel
from tests.cli.conftest import Command
from tests.laws.models import make_model

FEATURES = (
    Number("income", np.array([0.0, 1.0, 2.0, 3.0])),
    Category("town:old", ("Ulm", "Bonn:Süd")),
    Number("garden", np.array([0.0, 1.0]), is_boolean=True),
)
SIGNED = ("--who", "risk team", "--why", "agreed limit")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    make_model(np.random.default_rng(0), features=FEATURES).save(tmp_path / "m.nae")
    return tmp_path / "m.nae"


def edited(nae: Command, path: Path, *words: object) -> TableModel:
    code, _, err = nae("edit", path, *words, *SIGNED, "-o", path.parent / "new.nae")
    assert code == 0, err
    return library.load(path.parent / "new.nae")


def test_the_file_keeps_what_was_edited_and_by_whom(nae: Command, path: Path) -> None:
    before = path.read_bytes()
    code, out, err = nae("edit", path, "--cap", "town:old:0.05", *SIGNED, "-o", path.parent / "new.nae")
    assert code == 0
    assert "cap town:old (limit=0.05)" in out
    assert "Proven: town:old alone moves the score by at most 0.05." in out
    assert f"wrote {path.parent / 'new.nae'}, with 1 edit in its record." in err
    assert path.read_bytes() == before
    (entry,) = history(library.load(path.parent / "new.nae"))
    assert (entry.who, entry.why) == ("risk team", "agreed limit")
    assert nae("certify", path.parent / "new.nae", "--max-effect", "town:old:0.05")[0] == 0


def test_edits_are_made_in_the_order_of_the_options(nae: Command, path: Path) -> None:
    words = ("--cap", "garden:1", "--monotone", "income:+", "--smooth", "income:2", "--set-level", "town:old:Ulm:0.1")
    found = [(one.what, one.feature) for one in history(edited(nae, path, *words))]
    assert found == [("smooth", "income"), ("set_level", "town:old"), ("monotone", "income"), ("cap", "garden")]


def test_values_may_hold_colons_and_words(nae: Command, path: Path) -> None:
    model = edited(
        nae, path, "--set-level", "town:old:Bonn:Süd:0.25", "--pin", "garden:true", "--pin", "income:missing"
    )
    assert [one.arguments for one in history(model)] == [
        {"level": "Bonn:Süd", "value": 0.25},
        {"at": 1.0},
        {"at": None},
    ]
    found = model.contributions([{"income": 1.0, "town:old": "Bonn:Süd", "garden": False}])
    assert found.feature("town:old") == pytest.approx(0.25)
    assert history(edited(nae, path, "--drop", " income"))[0].feature == "income"


def test_rows_measure_and_balance(nae: Command, tmp_path: Path) -> None:
    X = np.random.default_rng(0).uniform(size=(80, 2))
    fit = NAERegressor(n_members=1, max_epochs=1, random_state=0).fit(X, X[:, 0] + 3)
    fit.save(tmp_path / "m.nae")
    lines = ["x0,x1,y", *(f"{a},{b},{a + 3}" for a, b in X)]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    words = ("--drop", "x1", "--on", tmp_path / "rows.csv", "-t", "y")
    code, out, _ = nae("edit", tmp_path / "m.nae", *words, *SIGNED, "-o", tmp_path / "new.nae")
    assert code == 0
    assert "On 80 rows of" in out
    assert "RMSE" in out
    assert "The intercept was solved for again on these rows." in out
    again = NAERegressor.load(tmp_path / "new.nae")  # what was saved beside the model is still there
    assert again.predict(X).sum() == pytest.approx((X[:, 0] + 3).sum())


def test_show_prints_the_record(nae: Command, path: Path) -> None:
    edited(nae, path, "--drop", "income")
    (entry,) = history(library.load(path.parent / "new.nae"))
    out = nae("show", path.parent / "new.nae")[1]
    assert f"edited: drop income, by risk team, {entry.when}: agreed limit" in out
    shown = json.loads(nae("show", path.parent / "new.nae", "--json")[1])
    assert shown["edits"][0]["who"] == "risk team"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "Edit needs at least one change; none is given. Pass one, such as --cap income:0.05."),
        (("--cap", "income"), "--cap must be a feature, a colon and a value, such as postcode:0.05; got 'income'."),
        (("--cap", "income:low"), "--cap must end in a number, such as postcode:0.05; got 'low'."),
        (("--pin", "incom:3"), "--pin must begin with a feature and a colon, such as sex:missing; got 'incom:3'. Did"),
        (("--set-level", "town:old:Ulm"), "--set-level must end in a number, such as town:Ulm:0.1; got 'Ulm'."),
        (("--drop", "town"), "No feature is called 'town'. Did you mean 'town:old'?"),
        (("--drop", "income", "--on", "{path}/../none.csv"), "none.csv"),
        (("--drop", "income", "-o", "{path}"), "which would be lost"),
    ],
)
def test_what_cannot_be_edited_is_one_sentence(nae: Command, path: Path, words: tuple[str, ...], error: str) -> None:
    output = () if "-o" in words else ("-o", path.parent / "new.nae")
    code, out, err = nae("edit", path, *(word.format(path=path) for word in words), *SIGNED, *output)
    assert (code, out) == (2, "")
    assert error in err
    assert not (path.parent / "new.nae").exists()


def test_a_person_and_a_reason_are_asked_for(nae: Command, path: Path) -> None:
    code, _, err = nae("edit", path, "--drop", "income", "--who", "risk team", "-o", path.parent / "new.nae")
    assert code == 2
    assert "--why" in err
