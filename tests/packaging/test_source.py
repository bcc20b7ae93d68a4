"""The source archive: it installs with the core, and without it where no compiler works."""

import os
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from nae.native import build, library
from tests.packaging.commands import ROOT, make_environment, make_wheel, run

pytestmark = pytest.mark.slow
CORE = f"nae/native/{library.PATH.name}"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    code = f"import os; os.chdir({str(ROOT)!r}); from hatchling.build import build_sdist; build_sdist({str(folder)!r})"
    run(sys.executable, "-c", code)
    [found] = folder.glob("*.tar.gz")
    return found


def test_the_archive_holds_what_a_build_needs(archive: Path) -> None:
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert names >= {"hatch_build.py", "pyproject.toml", "src/nae/native/build.py", "LICENSE", "README.md"}
    sources = {path.relative_to(ROOT).as_posix() for path in build.SOURCES.iterdir()}
    assert names >= sources
    assert f"src/{CORE}" not in names


@pytest.mark.skipif(build.compiler() is None, reason="there is no C++ compiler")
def test_the_archive_builds_a_wheel_with_the_core(archive: Path, tmp_path: Path) -> None:
    wheel, said = make_wheel(archive, to=tmp_path)
    assert CORE in zipfile.ZipFile(wheel).namelist()
    assert "is not built" not in said


def test_without_a_compiler_it_installs_without_the_core_and_says_so(archive: Path, tmp_path: Path) -> None:
    wheel, said = make_wheel(archive, to=tmp_path, CXX="no-such-compiler")
    assert wheel.stem.endswith("-py3-none-any")
    assert CORE not in zipfile.ZipFile(wheel).namelist()
    assert "there is no C++ compiler (CXX=no-such-compiler names none). The package is installed without it" in said
    python = make_environment(tmp_path / "python", str(wheel))
    found = run(python, "-I", "-c", "from nae.native import reason; print(reason())").stdout
    assert found.startswith("the native core is not built; `python -m nae.native.build` builds it")


@pytest.mark.skipif(os.name == "nt", reason="the broken compiler is a shell script")
def test_a_broken_compiler_is_no_obstacle(archive: Path, tmp_path: Path) -> None:
    broken = tmp_path / "c++"
    broken.write_text("#!/bin/sh\necho 'c++: error: no licence' >&2\nexit 3\n")
    broken.chmod(0o700)
    wheel, said = make_wheel(archive, to=tmp_path, CXX=str(broken))
    assert wheel.stem.endswith("-py3-none-any")
    assert f"{broken} failed (c++: error: no licence). The package is installed without it" in said
