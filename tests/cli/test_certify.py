import json
from pathlib import Path

import numpy as np
import pytest

from nae.encoding import Category, Number
from nae.tables import load
from tests.cli.conftest import Command
from tests.laws.models import make_model

FEATURES = (Number("income", np.array([0.0, 1.0, 2.0])), Category(" town:old", ("Ulm", "Bonn")))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a model that increases with income and has one expert per feature."""
    model = make_model(np.random.default_rng(0), features=FEATURES, n_experts=1, link="logit")
    model.experts[:3, 0, 0, 0] = [0.0, 1.0, 2.0]
    model.save(tmp_path / "m.nae")
    return tmp_path / "m.nae"


def test_what_is_proven_exits_with_0(nae: Command, path: Path) -> None:
    code, out, err = nae(
        "certify", path, "--monotone", "income:+", "--max-effect", "town:old:99", "--isolated", "town:old"
    )
    assert (code, err) == (0, "")
    assert out.count("Proven: ") == 3
    assert (
        "Proven: A higher income never lowers the log-odds of class 0. For any input, the change is at most 0 (limit 0,"
        in out
    )


def test_what_is_refuted_exits_with_1_and_shows_two_inputs(nae: Command, path: Path) -> None:
    code, out, err = nae("certify", path, "--monotone", "income:-", "--unchanged", "income")
    assert (code, err) == (1, "")
    assert "Refuted: A higher income never raises the log-odds of class 0. Changing income from 2 to 0" in out
    assert "Proven: No other feature changes the effect of income." in out


def test_a_curve_and_outputs_in_order_can_be_certified(nae: Command, path: Path, tmp_path: Path) -> None:
    code, out, _ = nae("certify", path, "--curved", "income:convex")
    assert (code, out.count("Proven: ")) == (0, 1)
    assert "Between 0 and 2, the log-odds of class 0 is a convex function of income." in out
    model = make_model(np.random.default_rng(0), features=FEATURES, n_outputs=2)
    model.save(tmp_path / "two.nae")
    code, out, _ = nae("certify", tmp_path / "two.nae", "--ordered")
    assert code == 1
    assert "Refuted: The score of class 0 is never above that of class 1. The scores of class 0 and class 1 are" in out


@pytest.mark.parametrize(("way", "code"), [("+", 0), ("-", 1)])
def test_without_a_statement_the_promises_of_the_file_are_certified(
    nae: Command, path: Path, way: str, code: int
) -> None:
    load(path).with_training(constraints={"monotone": {"income": way}, "isolated": [" town:old"]}).save(path)
    found, out, err = nae("certify", path)
    assert (found, err) == (code, "")
    assert out.count("Proven: ") == 2 - code
    assert out.count("Refuted: ") == code
    shown = nae("show", path)[1]
    assert f"Promises\n  {'Refuted' if code else 'Proven'}: A higher income never " in shown
    assert [one["verdict"] for one in json.loads(nae("show", path, "--json")[1])["promises"]][1] == "proven"


def test_either_of_two_classes_can_be_certified(nae: Command, path: Path) -> None:
    assert nae("certify", path, "--monotone", "income:-", "--class", "no")[0] == 0
    code, _, err = nae("certify", path, "--monotone", "income:-", "--class", "noo")
    assert (code, "Did you mean 'no'?" in err) == (2, True)


def test_json_has_every_number(nae: Command, path: Path) -> None:
    code, out, _ = nae("certify", path, "--monotone", "income:-", "--json")
    found = json.loads(out)
    assert code == 1
    assert found["type"] == "certificates"
    (one,) = found["certificates"]
    assert one["verdict"] == "refuted"
    assert one["bound"] == pytest.approx(2.0)
    assert one["counterexample"]["violation"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "needs at least one statement; none is given, and the model promises nothing"),
        (("--curved", "income:round"), "A curvature must be 'convex' or 'concave'; got 'round' for 'income'"),
        (("--ordered",), "ordered needs outputs with an order, such as several quantiles; this model has 2 classes"),
        (("--monotone", "income"), "--monotone must be a feature, a colon and a value, such as income:+; got 'income'"),
        (("--monotone", "income:up"), "got 'up' for 'income'"),
        (("--monotone", "incom:+"), "Did you mean 'income'?"),
        (("--monotone", "town:old:+"), "needs a feature with an order; ' town:old' is a category of 2 levels"),
        (("--monotone", "income:+", "--monotone", "income:-"), "takes every feature once; got 'income' twice"),
        (("--max-effect", "income:much"), "--max-effect must end in a number, such as postcode:0.05; got 'much'"),
        (("--max-effect", "income:-1"), "must be a number of at least 0"),
    ],
)
def test_a_statement_that_makes_no_sense_is_one_sentence(
    nae: Command, path: Path, words: tuple[str, ...], error: str
) -> None:
    code, out, err = nae("certify", path, *words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert error in err


def test_the_help_states_the_exit_codes(nae: Command) -> None:
    said = " ".join(nae("certify", "--help")[1].split())
    assert "The exit code is 0 if all are proven, and 1 if any is not." in said
