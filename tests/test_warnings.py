"""A warning points at the line outside the package that led to it."""

import contextlib
import warnings
from pathlib import Path
from typing import Any

import pytest

from nae import _warnings
from nae.errors import NAEWarning

PACKAGE = Path(_warnings.__file__).parent


def warned_of(source: str, file: Path) -> str:
    """Run ``warns()`` of a module, and return the file that its warning points at."""
    names: dict[str, Any] = {"warn": _warnings.warn, "contextlib": contextlib}
    exec(compile(source, str(file), "exec"), names)  # noqa: S102
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        names["warns"]()
    assert [one.category for one in found] == [NAEWarning]
    return found[0].filename


DEEP = """
def warns():
    def inner():
        warn("look")
    inner()
"""
MANAGED = """
@contextlib.contextmanager
def managed():
    warn("look")
    yield

def warns():
    with managed():
        pass
"""


@pytest.mark.parametrize("source", [DEEP, MANAGED])
def test_a_warning_points_at_the_line_outside_the_package(source: str) -> None:
    assert warned_of(source, PACKAGE / "inside.py") == __file__


def test_a_module_beside_the_package_is_outside() -> None:
    beside = PACKAGE.with_name("nae_tools") / "a.py"
    assert warned_of(DEEP, beside) == str(beside)
