"""The example of docs/decisions_with_models.md runs and says what the page says."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "decisions_with_models.md"


def blocks(title: str) -> list[str]:
    """Return the Python code of a section."""
    section = PAGE.read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)


@pytest.mark.slow
@pytest.mark.skipif("NAE_DATA" not in os.environ, reason="NAE_DATA does not name the folder with the tables")
def test_the_example_of_drift_says_what_the_page_says() -> None:
    names: dict[str, Any] = {}
    claims = blocks("Scorecards and relativities")[0].partition("\ntable =")[0]
    for block in (claims, *blocks("Is it drifting?")):
        exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102
    assert not names["fresh"].has_drifted
    assert names["young"].drifted == ("ageph", "bm")
    assert names["young"].score[0].size == pytest.approx(1.15, abs=0.15)
    assert "ageph drifted: the mean of its values went from 47.12 to 25.93" in names["young"].text


@pytest.mark.slow
@pytest.mark.skipif("NAE_DATA" not in os.environ, reason="NAE_DATA does not name the folder with the tables")
def test_the_example_of_groups_says_what_the_page_says() -> None:
    names: dict[str, Any] = {}
    imports = blocks("Scorecards and relativities")[0].partition("\npolicies")[0]
    for block in (imports, *blocks("Is it fair?"), *blocks("Are the probabilities true?")):
        exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102
    groups = names["groups"]
    opportunity = groups.gaps[2]
    assert (opportunity.most, opportunity.least) == ("73.73 to 100.679", "18.119 to 52.498")
    assert opportunity.value == pytest.approx(0.14, abs=0.02)
    assert not opportunity.may_be_chance
    assert names["curve"].is_calibrated
    assert names["curve"].error == pytest.approx(0.022, abs=0.004)
