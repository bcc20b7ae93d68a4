import sys
from pathlib import Path

import pytest

from nae.native import build
from tests.packaging.commands import ROOT, STATIC, make_environment, make_wheel, run


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel as it is published: on Linux, auditwheel has named the C libraries that it runs with."""
    folder = tmp_path_factory.mktemp("wheel")
    built, _ = make_wheel(ROOT, to=folder, LDFLAGS=STATIC)
    if sys.platform != "linux" or build.compiler() is None:
        return built
    repaired = folder / "repaired"
    run(sys.executable, "-m", "auditwheel", "repair", "-w", repaired, built)
    [found] = repaired.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python that has the wheel and what it requires, and nothing else."""
    return make_environment(tmp_path_factory.mktemp("base"), str(wheel))
