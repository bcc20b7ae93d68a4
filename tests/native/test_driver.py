"""The core without Python: under sanitizers, without warnings, and with fewer threads than it asks for."""

import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from nae.native import build, library

DRIVER = Path(__file__).parent / "driver" / "driver.cpp"
SANITIZERS = {
    # The number is how many of the driver's configurations are left out between two, and then that of threads.
    "addresses and undefined behaviour": ("address,undefined", False, ("6", "4")),
    "threads": ("thread", True, ("6", "6")),
}

WARNINGS = ("-Wall", "-Wextra", "-Werror")
COMPILER = build.compiler()
pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler to build the driver with")


def run(*call: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in call], capture_output=True, text=True, timeout=600, check=False)


def compile_driver(place: Path, *flags: str) -> Path:
    made = place / "driver.o"
    done = run(str(COMPILER), "-std=c++20", *flags, f"-I{build.SOURCES}", "-c", DRIVER, "-o", made)
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    """A driver that is linked to the core as it is installed."""
    if not library.is_here():
        pytest.skip(library.reason())
    program = tmp_path / "driver"
    folder = library.PATH.parent
    made = compile_driver(tmp_path, "-O1", *WARNINGS)
    done = run(str(COMPILER), made, library.PATH, f"-Wl,-rpath,{folder}", "-o", program)
    assert done.returncode == 0, done.stderr
    return program


def test_any_number_of_threads_finds_the_same_bits_without_python(driver: Path) -> None:
    done = run(driver, "3", "7")
    assert done.returncode == 0, done.stdout
    assert " 0 of them bad" in done.stdout


def test_it_goes_on_with_the_threads_that_the_system_gives(driver: Path) -> None:
    done = run(driver, "threads")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", SANITIZERS)
def test_sanitizers_find_nothing(name: str, tmp_path: Path) -> None:
    kind, is_portable, arguments = SANITIZERS[name]
    flags = ["-O1", "-g1", f"-fsanitize={kind}", "-fno-sanitize-recover=all"]
    probe = tmp_path / "probe.cpp"
    probe.write_text("int main() {}\n")
    if run(str(COMPILER), *flags, probe, "-o", tmp_path / "probe").returncode:
        pytest.skip(f"the compiler has no sanitizer of {name}")
    with ThreadPoolExecutor(1) as pool:
        own = pool.submit(compile_driver, tmp_path, *flags)
        objects = build.compile_parts(str(COMPILER), tmp_path, flags=flags, is_portable=is_portable)
    program = tmp_path / "driver"
    done = run(str(COMPILER), *flags, "-pthread", own.result(), *objects, "-o", program)
    assert done.returncode == 0, done.stderr
    found = run(program, *arguments)
    assert found.returncode == 0, found.stdout + found.stderr
    assert " 0 of them bad" in found.stdout


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Path]]:
    """Compile the core with a compiler, once, and return its objects; every warning is an error."""
    return cache(lambda compiler: build.compile_parts(compiler, tmp_path_factory.mktemp("core"), flags=WARNINGS))


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_compilers_have_nothing_to_say(compiler: str, compiled: Callable[[str], list[Path]]) -> None:
    found = shutil.which(compiler)
    if found is None:
        pytest.skip(f"there is no {compiler}")
    assert compiled(found)


@pytest.mark.slow
def test_a_set_of_instructions_shares_no_function_with_another(compiled: Callable[[str], list[Path]]) -> None:
    # The linker keeps one copy of a function that several objects have: it might be that of a newer processor.
    if run("which", "nm").returncode:
        pytest.skip("there is no nm to list functions with")
    kernels = [path for path in compiled(str(COMPILER)) if path.stem != "core"]
    for path in kernels:
        lines = run("nm", "-C", "--defined-only", path).stdout.splitlines()
        shared = [line for line in lines if line.split()[1] in "WVu" and f"nae::{path.stem}::" not in line]
        assert lines
        assert not shared, f"{path.stem}: {shared}"
