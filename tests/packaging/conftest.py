import sys
from pathlib import Path

import pytest

from nae.native import build
from tests.packaging.commands import ROOT, STATIC, make_environment, make_wheel, run


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the source archive."""
    folder = tmp_path_factory.mktemp("source")
    code = f"import os; os.chdir({str(ROOT)!r}); from hatchling.build import build_sdist; build_sdist({str(folder)!r})"
    run(sys.executable, "-c", code)
    [found] = folder.glob("*.tar.gz")
    return found


@pytest.fixture(scope="session")
def build_of_archive(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the wheel that the archive builds, and what the build said."""
    return make_wheel(archive, to=tmp_path_factory.mktemp("wheel"), LDFLAGS=STATIC)


@pytest.fixture(scope="session")
def wheel(build_of_archive: tuple[Path, str]) -> Path:
    """Return the wheel as it is published: on Linux, auditwheel has named the C libraries that it runs with."""
    built, _ = build_of_archive
    if sys.platform != "linux" or build.compiler() is None:
        return built
    repaired = built.parent / "repaired"
    run(sys.executable, "-m", "auditwheel", "repair", "-w", repaired, built)
    [found] = repaired.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python that has the wheel and what it requires, and nothing else."""
    return make_environment(tmp_path_factory.mktemp("base"), str(wheel))
