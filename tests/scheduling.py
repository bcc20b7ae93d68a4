"""How several processes share the tests: a file is one unit of work, and units that take long come first.

The tests of a unit stay in one process, so that every fixture of a module is made once. pytest-xdist could be told
with marks, but pytest 9.2 ignores those of pytest-xdist 3.8 without a word.
"""

from typing import Any

import pytest

__all__ = ["LONGEST", "TOGETHER", "make_scheduler", "rank_of", "unit_of"]

TOGETHER = ("tests/packaging/",)
"""Folders that are one unit: one process builds the wheel for all their files."""

LONGEST = (
    "tests/packaging/",
    "tests/benchmarks/test_fuzz.py",
    "tests/agreement/test_agreement.py",
    "tests/scale/test_ray.py",
    "tests/native/test_driver.py",
    "tests/contracts/test_sklearn.py",
    "tests/engines/native/test_agreement.py",
    "tests/cli/test_process.py",
    "tests/test_public_surface.py",
    "tests/benchmarks/",
    "tests/agreement/",
    "tests/laws/",
    "tests/runtime/",
    "tests/engines/",
    "tests/serving/",
)
"""The units that take long, by the beginning of their paths, the longest first. Whatever starts last must be short."""


def unit_of(nodeid: str) -> str:
    """Return the unit of a test: its file, or the folder that its file shares."""
    path = nodeid.partition("::")[0]
    return next((folder for folder in TOGETHER if path.startswith(folder)), path)


def rank_of(nodeid: str) -> int:
    """Return the place of a test's unit among those that take long; all others come after them."""
    return next((i for i, start in enumerate(LONGEST) if nodeid.startswith(start)), len(LONGEST))


def make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return what hands out the units to the processes, in the order of the tests."""
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    config.option.loadscopereorder = False
    return Units(config, log)
