"""``nae fit`` asks for promises, and ``nae certify`` proves them."""

from pathlib import Path

import numpy as np
import pytest

from nae.cli.constraints import parse_constraints
from nae.errors import ConfigError
from tests.cli.conftest import Command

NOTHING = dict.fromkeys(("monotone", "max_effect", "isolated", "unchanged", "interactions", "curved", "smoothness"))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, {}),
        ({"monotone": ["age:+", "debt:-"]}, {"monotonic_cst": {"age": "+", "debt": "-"}}),
        ({"max_effect": ["town:0.5", "age:5%"]}, {"max_effect": {"town": 0.5, "age": "5%"}}),
        (
            {"isolated": ["sex"], "unchanged": ["sex", "town"]},
            {"interaction_cst": {"sex": {"changes": [], "changed_by": []}, "town": {"changed_by": []}}},
        ),
        ({"interactions": ["age, income", "town,debt"]}, {"interaction_cst": [["age", "income"], ["town", "debt"]]}),
        ({"interactions": ["pairwise"]}, {"interaction_cst": "pairwise"}),
        ({"curved": ["age:convex", "dose:concave"]}, {"convex": ["age"], "concave": ["dose"]}),
    ],
    ids=str,
)
def test_options_are_parameters(given: dict[str, list[str]], wanted: dict[str, object]) -> None:
    assert parse_constraints(**NOTHING | given) == wanted


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"curved": ["age:round"]}, "convex or concave; got 'round' for 'age'"),
        ({"interactions": ["pairwise", "a,b"]}, "stands alone"),
        ({"interactions": ["a,b"], "isolated": ["a"]}, "leave out --isolated"),
        ({"monotone": ["age"]}, "such as income:\\+; got 'age'"),
    ],
    ids=str,
)
def test_options_that_contradict_are_one_sentence(given: dict[str, list[str]], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        parse_constraints(**NOTHING | given)


def test_a_fit_promises_and_certify_proves(nae: Command, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = random.uniform(size=(120, 3))
    y = -rows[:, 0] + rows[:, 1] ** 2 + rows[:, 2]
    lines = [f"{a},{b},{c},{d}" for (a, b, c), d in zip(rows, y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["age,debt,dose,y", *lines]))
    code, _, err = nae(
        *("fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.nae", "--epochs", "3", "--members", "1"),
        *("--monotone", "age:+", "--max-effect", "debt:0.1", "--curved", "dose:convex", "--quiet"),
    )
    assert (code, err) == (0, "")
    code, out, _ = nae("certify", tmp_path / "m.nae")
    assert (code, out.count("Proven: ")) == (0, 3)
    code, _, err = nae("fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.nae", "--monotone", "aeg:+")
    assert code == 2
    assert "Did you mean 'age'?" in err
