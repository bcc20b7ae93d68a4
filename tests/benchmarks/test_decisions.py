from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from benchmarks import decisions
from benchmarks.decisions import Case, page_of, reasons_section, sufficient_section
from nae.encoding import Number
from nae.tables import TableModel
from tests.explanation.examples import remembering
from tests.laws.models import make_model

CASE = Case("small", {}, {"a": 0.1}, {"threshold": 0.0})


@pytest.fixture
def _few_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(decisions, "N_ROWS", 20)
    monkeypatch.setattr(decisions, "N_DECIDED", 2)
    return


def measured() -> list[tuple[Case, TableModel, Any]]:
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(0)
    features = tuple(Number(name, np.array([-1.0, 0.0, 1.0])) for name in "abc")
    model = remembering(make_model(random, features=features, n_members=2))
    return [(CASE, model, pandas.DataFrame({name: random.normal(size=20) for name in "abc"}))]


@pytest.mark.usefixtures("_few_rows")
def test_a_line_says_how_long_reasons_take_and_what_they_survive() -> None:
    lines = [line for line in reasons_section(measured()).splitlines() if line.startswith("| small")]
    assert [line.split("|")[1].strip() for line in lines] == [
        "small, mean",
        "small, prediction",
        "small, best",
        "small, a ± 0.1",
    ]
    assert lines[0].count("%") == 2  # nothing is said about a tolerance
    assert "(" in lines[3]


@pytest.mark.usefixtures("_few_rows")
def test_a_line_says_how_many_features_decide_alone() -> None:
    (line,) = [line for line in sufficient_section(measured()).splitlines() if line.startswith("| small")]
    assert line.split("|")[2].strip() == "3"


def test_a_section_replaces_the_old_one_with_its_title() -> None:
    page = page_of(["## A\n\n| 1 |", "## B\n\n| 2 |"])
    assert page.startswith("# Decisions\n\n## A\n\n| 1 |\n\n## B\n\n| 2 |\n\n")
    assert page_of(["## A\n\n| 3 |"], page) == page.replace("| 1 |", "| 3 |")
    assert page_of(["## C\n\n| 4 |"], page).index("## C") > page.index("## B")
