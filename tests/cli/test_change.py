import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nae.encoding import Category, Number
from tests.cli.conftest import Command
from tests.laws.models import make_model

FEATURES = (Number("income", np.array([0.0, 1.0, 2.0])), Category("town", ("Ulm", "Bonn")))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder with a model, the same with a slot moved by 0.25, and rows that do not reach it."""
    model = make_model(np.random.default_rng(0), features=FEATURES, link="logit")
    model.save(tmp_path / "old.nae")
    experts = model.experts.copy()
    experts[-1] += 0.25  # an unseen town
    replace(model, experts=experts).save(tmp_path / "new.nae")
    (tmp_path / "rows.csv").write_text("town,income,other\nUlm,0.5,1\nBonn,2,1\n")
    return tmp_path


@pytest.mark.parametrize(("most", "code", "word"), [("0.26", 0, "Within"), ("0.24", 1, "Beyond")])
def test_the_exit_code_says_whether_the_bound_is_exceeded(
    nae: Command, place: Path, most: str, code: int, word: str
) -> None:
    found, out, err = nae("compare", place / "old.nae", place / "new.nae", "--max-change", most)
    assert (found, err) == (code, "")
    assert "Changes, for any input" in out
    assert "town = 'unseen'" in out
    assert "A probability changes by at most 0.06" in out
    assert out.splitlines()[-1].startswith(f"{word} {most}: the score ")


def test_without_a_limit_two_models_alone_exit_with_0(nae: Command, place: Path) -> None:
    code, out, _ = nae("compare", place / "old.nae", place / "new.nae")
    assert code == 0
    assert "Within" not in out


@pytest.mark.parametrize(("town", "code"), [("Bonn", 0), ("Köln", 1)])
def test_rows_decide_if_they_are_given(nae: Command, place: Path, town: str, code: int) -> None:
    rows = place / "rows.csv"
    rows.write_text(rows.read_text().replace("Bonn", town))
    found, out, _ = nae("compare", place / "old.nae", place / "new.nae", "--on", rows, "--max-change", "0.1")
    assert found == code
    assert "Changes on 2 rows" in out
    assert f"on the rows of {rows}." in out


def test_the_change_is_that_of_the_named_class(nae: Command, place: Path) -> None:
    out = nae("compare", place / "old.nae", place / "new.nae", "--class", "no")[1]
    assert "The log-odds of no changes by" in out


def test_json_has_every_number(nae: Command, place: Path) -> None:
    code, out, _ = nae("compare", place / "old.nae", place / "new.nae", "--max-change", "0.1", "--json")
    assert code == 1
    found = json.loads(out)
    assert found["type"] == "changes"
    assert found["changes"][0]["upper"] == pytest.approx(0.25)
    rows = nae("compare", place / "old.nae", place / "new.nae", "--on", place / "rows.csv", "--json")[1]
    assert json.loads(rows)["changes"][0]["largest"] == 0


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("{place}/rows.csv", "--max-change", "1"), "got 3 files"),
        (("--max-change", "-1"), "--max-change must be a number of at least 0, in units of the score; got -1."),
        (("--max-change", "nan"), "--max-change must be a number"),
        (("--on", "{place}/row.csv"), "Did you mean 'rows.csv'?"),
        (("--class", "maybe"), "The model has no class 'maybe'."),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(nae: Command, place: Path, words: tuple[str, ...], error: str) -> None:
    given = [word.format(place=place) for word in words]
    code, out, err = nae("compare", place / "old.nae", place / "new.nae", *given)
    assert (code, out) == (2, "")
    assert error in err


def test_models_of_other_features_are_refused(nae: Command, place: Path) -> None:
    make_model(np.random.default_rng(0), features=FEATURES[:1], link="logit").save(place / "less.nae")
    code, _, err = nae("compare", place / "old.nae", place / "less.nae")
    assert code == 2
    assert "the same features; the first alone has 'town'" in err
