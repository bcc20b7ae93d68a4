"""The source archive and the checkout: they install with the core, and without it where no compiler works."""

import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from nae.native import build, library
from tests.packaging.commands import ROOT, make_environment, make_wheel, run

pytestmark = pytest.mark.slow
CORE = f"nae/native/{library.PATH.name}"


def test_the_archive_holds_what_a_build_needs(archive: Path) -> None:
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert names >= {"hatch_build.py", "pyproject.toml", "src/nae/native/build.py", "LICENSE", "README.md"}
    sources = {path.relative_to(ROOT).as_posix() for path in build.SOURCES.iterdir()}
    assert names >= sources
    assert f"src/{CORE}" not in names


@pytest.mark.skipif(build.compiler() is None, reason="there is no C++ compiler")
def test_the_archive_builds_a_wheel_with_the_core(build_of_archive: tuple[Path, str]) -> None:
    wheel, said = build_of_archive
    assert CORE in zipfile.ZipFile(wheel).namelist()
    assert "is not built" not in said


def test_without_a_compiler_it_installs_without_the_core_and_says_so(tmp_path: Path) -> None:
    wheel, said = make_wheel(ROOT, to=tmp_path, CXX="no-such-compiler")
    names = zipfile.ZipFile(wheel).namelist()
    assert wheel.stem.endswith("-py3-none-any")
    assert CORE not in names  # not even that of the checkout
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"nae", "neural_additive_experts"}
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
