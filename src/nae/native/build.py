"""Compile the core: ``python -m nae.native.build``. It takes a C++ compiler and some twenty seconds.

Kernels are compiled once for each set of instructions, and the core chooses among them while it runs. Contraction of a
product and a sum to one instruction is on where the set has one, and off otherwise: never left to the compiler.

A wheel is compiled by the same commands: hatch_build.py loads this file by its path, before numpy is installed. So it
imports other modules of the package inside functions.
"""

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

__all__ = ["SOURCES", "build", "compile_parts", "compiler", "is_current", "main", "try_build"]

SOURCES = Path(__file__).parent / "cpp"
_KERNELS = "kernels.cpp"  # compiled once for each set of instructions; every other file once
_COMPILERS, _PLATFORM, _LINK = (
    (
        ("clang-cl", "clang++"),
        ("-fms-runtime-lib=static",),
        ("-shared", "-fuse-ld=lld", "--rtlib=compiler-rt"),  # compiler-rt knows what the processor can
    )
    if os.name == "nt"
    else (("g++", "clang++"), ("-fPIC", "-fvisibility=hidden"), ("-shared", "-pthread"))
)
_COMMON = ("-std=c++20", "-O3", *_PLATFORM, "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi")
_SETS = {
    "portable": ("-DNAE_BYTES=16", "-ffp-contract=off"),
    "avx2": ("-DNAE_BYTES=32", "-ffp-contract=fast", "-mavx2", "-mfma"),
    "avx512": (
        "-DNAE_BYTES=64",
        "-ffp-contract=fast",
        "-mavx2",
        "-mfma",
        *(f"-mavx512{part}" for part in ("f", "dq", "vl", "bw")),
    ),
}


def compiler() -> str | None:
    """Return the C++ compiler: the one that ``CXX`` names, else the first of the usual ones; None if there is none."""
    asked = os.environ.get("CXX")
    return next((found for name in ([asked] if asked else _COMPILERS) if (found := shutil.which(name))), None)


def is_current() -> bool:
    """Return whether the shared object was compiled from the sources as they are."""
    from nae.native.library import is_here, library

    return is_here() and bool(library().nae_sources().decode() == _digest())


def _digest() -> str:
    texts = [file.read_bytes() for file in (*sorted(SOURCES.iterdir()), Path(__file__))]
    return hashlib.blake2b(b"\0".join(texts), digest_size=16).hexdigest()


def build(command: str, *, to: Path, flags: Sequence[str] = ()) -> None:
    """Compile and link the core with ``flags`` and ``$LDFLAGS``; a CalledProcessError carries the compiler's words."""
    with tempfile.TemporaryDirectory() as place:
        objects = compile_parts(command, Path(place), flags=flags)
        made = Path(place) / to.name
        linked = [*_LINK, *flags, *map(str, objects), *shlex.split(os.environ.get("LDFLAGS", ""))]
        _run([*_driver(command), *linked, "-o", str(made)])
        beside = to.with_suffix(".new")
        shutil.copyfile(made, beside)
        beside.replace(to)  # whoever has the old one loaded keeps it


def compile_parts(command: str, place: Path, *, flags: Sequence[str] = (), is_portable: bool = False) -> list[Path]:
    """Compile every source into ``place`` and return the objects; if ``is_portable``, leave out the x86-64 sets."""
    parts = _parts(flags, is_portable=is_portable)
    objects = [place / f"{name}.o" for name in parts]
    calls = [[*_driver(command), *part, "-o", str(made)] for part, made in zip(parts.values(), objects, strict=True)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(_run, calls))
    return objects


def _driver(command: str) -> list[str]:
    # clang-cl is clang: in this mode, it takes the same options as everywhere else.
    return [command, "--driver-mode=g++"] if Path(command).stem == "clang-cl" else [command]


def _parts(flags: Sequence[str], *, is_portable: bool) -> dict[str, list[str]]:
    """Return the arguments that compile each object."""
    machine = platform.machine().lower()
    is_x86 = machine in ("x86_64", "amd64") and not is_portable
    sets = {name: own for name, own in _SETS.items() if is_x86 or name == "portable"}
    if machine in ("arm64", "aarch64"):  # all of them multiply and add in one instruction
        sets["portable"] = ("-DNAE_BYTES=16", "-ffp-contract=fast")
    shared = [*_COMMON, f"-DNAE_X86={int(is_x86)}", *flags]
    named = f'-DNAE_SOURCES="{_digest()}"'
    return {name: [*shared, *own, f"-DNAE_SET={name}", "-c", str(SOURCES / _KERNELS)] for name, own in sets.items()} | {
        file.stem: [*shared, "-ffp-contract=off", named, "-c", str(file)]
        for file in sorted(SOURCES.glob("*.cpp"))
        if file.name != _KERNELS
    }


def try_build(*, to: Path) -> str:
    """Build the core if a compiler works; otherwise return what is wrong, in one sentence."""
    command = compiler()
    if command is None:
        asked = os.environ.get("CXX")
        wanted = f"CXX={asked} names none" if asked else f"{' or '.join(_COMPILERS)} would do"
        return f"The native core is not built: there is no C++ compiler ({wanted})."
    try:
        build(command, to=to)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.splitlines()
        said = next((line for line in lines if "error" in line), lines[0] if lines else f"status {error.returncode}")
        return f"The native core is not built: {command} failed ({said.strip()})."
    except OSError as error:
        return f"The native core is not built: {command} cannot be run ({error})."
    return ""


def main() -> int:
    """Build the core where there is a compiler and something is new, and say so; the status is 1 if compiling fails."""
    from nae.native.library import PATH

    command = compiler()
    if command is None:
        sys.stderr.write(f"{try_build(to=PATH)} A fit then takes torch.\n")
    elif not is_current():
        try:
            build(command, to=PATH)
        except subprocess.CalledProcessError as error:
            sys.stderr.write(f"{error.stderr}\nThe native core is not built: {command} failed.\n")
            return 1
        sys.stderr.write(f"The native core is built: {PATH.name}, by {command}.\n")
    return 0


def _run(call: list[str]) -> None:
    try:
        subprocess.run(call, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        error.add_note(error.stderr)
        raise


if __name__ == "__main__":
    sys.exit(main())
