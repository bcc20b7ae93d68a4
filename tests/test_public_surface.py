import subprocess
import sys
from functools import cache

import pytest

import nae

HEAVY = (
    "torch",
    "sklearn",
    "sklearn.metrics",
    "sklearn.model_selection",
    "scipy",
    "pandas",
    "polars",
    "pyarrow",
    "matplotlib",
    "plotly",
    "rich",
)


@cache
def loaded_by(statement: str) -> set[str]:
    """Return which of the heavy packages a fresh Python has loaded after ``statement``."""
    code = f"{statement}\nimport sys\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_the_public_names_are_sorted_and_unique() -> None:
    assert nae.__all__ == sorted(set(nae.__all__))


@pytest.mark.parametrize("name", nae.__all__)
def test_a_public_name_can_be_imported(name: str) -> None:
    assert getattr(nae, name) is not None


def test_dir_shows_the_public_names() -> None:
    assert set(nae.__all__) <= set(dir(nae))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'nae' has no attribute 'NAERegresor'"):
        _ = nae.NAERegresor


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import nae") == set()


@pytest.mark.parametrize("name", ["TableModel", "Contributions", "load", "metrics", "presets", "quality", "datasets"])
def test_a_part_that_needs_no_training_loads_nothing_heavy(name: str) -> None:
    assert loaded_by(f"from nae import {name}") == set()


@pytest.mark.parametrize("name", ["NAERegressor", "NAEClassifier"])
def test_an_estimator_loads_no_more_of_the_heavy_ones_than_it_inherits_from(name: str) -> None:
    assert loaded_by(f"from nae import {name}") == loaded_by("import sklearn.base")


def test_the_check_sees_what_is_loaded() -> None:
    assert loaded_by("import nae.engines.torch, sklearn.metrics") >= {"torch", "sklearn", "sklearn.metrics"}


def test_training_loads_no_torch_before_it_is_needed() -> None:
    parts = ("network", "training", "engines", "engines.native", "estimators", "scale", "tuning", "cli.app")
    assert "torch" not in loaded_by(f"import {', '.join(f'nae.{part}' for part in parts)}")
