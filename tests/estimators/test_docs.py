import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nae import NAEClassifier, NAERegressor

PAGE = Path(__file__).parents[2] / "docs" / "fitting.md"


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        exec(compile(block, PAGE.name, "exec"), found)  # noqa: S102
    return found


def test_columns_are_taken_as_the_page_about_fitting_says(names: dict[str, Any]) -> None:
    kinds = {feature.name: feature.kind for feature in names["model"].model_.schema.features}
    assert kinds == {"size": "number", "town": "category", "garden": "boolean", "sold": "number"}


def test_an_exposure_multiplies_a_rate_as_the_page_says(names: dict[str, Any]) -> None:
    np.testing.assert_allclose(names["expected"], names["per_year"] * names["years"], rtol=1e-6)


def test_probabilities_keep_the_shares_of_the_classes_as_the_page_says(names: dict[str, Any]) -> None:
    assert names["share"] == pytest.approx(names["is_large"].mean(), rel=1e-6)
    assert names["weighted"] > 1.5 * names["share"]


def test_the_page_names_parameters_that_there_are(names: dict[str, Any]) -> None:
    listed = PAGE.read_text().partition("## Parameters worth knowing")[2]
    first_cells = [line.split("|")[1] for line in listed.splitlines() if line.startswith("| `")]
    found = {word for cell in first_cells for word in re.findall(r"`(\w+)`", cell)}
    assert found - {"eval_set"} <= set(NAERegressor().get_params()) & set(NAEClassifier().get_params())
    assert names["probability"].shape == (400, 2)
