"""How several processes share the tests: a file is one unit of work, and units that take long come first.

The tests of a unit stay in one process, so that every fixture of a module is made once. pytest-xdist could be told
with marks, but pytest 9.2 ignores those of pytest-xdist 3.8 without a word.
"""

from typing import Any

import pytest

__all__ = ["LONGEST", "TOGETHER", "make_scheduler", "rank_of", "unit_of"]

TOGETHER = {
    "the wheel": ("tests/packaging/",),
    "the compiled kernel": ("tests/agreement/", "tests/runtime/test_kernel.py", "tests/serving/test_live.py"),
}
"""Files that are one unit, by the beginning of their paths, because they share what takes long to make."""

LONGEST = (
    "tests/benchmarks/test_fuzz.py",
    "tests/agreement/",
    "tests/packaging/",
    "tests/native/test_driver.py",
    "tests/scale/test_ray.py",
    "tests/contracts/test_sklearn.py",
    "tests/cli/test_process.py",
    "tests/engines/native/test_agreement.py",
    "tests/test_public_surface.py",
    "tests/benchmarks/",
    "tests/laws/",
    "tests/runtime/",
    "tests/engines/",
    "tests/serving/",
)
"""What takes long, by the beginning of its path, the longest first. Whatever starts last must be short."""


def unit_of(nodeid: str) -> str:
    """Return the unit of a test: its file, or what several files share."""
    path = nodeid.partition("::")[0]
    return next((unit for unit, starts in TOGETHER.items() if path.startswith(starts)), path)


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
