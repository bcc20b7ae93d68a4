"""Compile the core: ``python -m nae.native.build``. It takes a C++ compiler and some twenty seconds.

Kernels are compiled once for each set of instructions, and the core chooses among them while it runs. Contraction of a
product and a sum to one instruction is on where the set has one, and off otherwise: never left to the compiler.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nae.native.library import PATH, is_here, library

__all__ = ["SOURCES", "build", "compiler", "is_current", "main"]

SOURCES = Path(__file__).parent / "cpp"
_COMMON = ("-std=c++20", "-O3", "-fPIC", "-fvisibility=hidden", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi")
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
    """Return the C++ compiler: the one that ``CXX`` names, else g++ or clang++; None where there is none."""
    asked = os.environ.get("CXX")
    return next((found for name in ([asked] if asked else ["g++", "clang++"]) if (found := shutil.which(name))), None)


def is_current() -> bool:
    """Return whether the shared object was compiled from the sources as they are."""
    return is_here() and bool(library().nae_sources().decode() == _digest())


def _digest() -> str:
    texts = [file.read_bytes() for file in (*sorted(SOURCES.iterdir()), Path(__file__))]
    return hashlib.blake2b(b"\0".join(texts), digest_size=16).hexdigest()


def build(command: str, *, to: Path = PATH, flags: Sequence[str] = ()) -> None:
    """Compile and link the core; a CalledProcessError carries what the compiler said."""
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    sets = {name: own for name, own in _SETS.items() if is_x86 or name == "portable"}
    with tempfile.TemporaryDirectory() as place:
        parts = {
            name: [*_COMMON, *own, *flags, f"-DNAE_SET={name}", "-c", str(SOURCES / "kernels.cpp")]
            for name, own in sets.items()
        }
        named = f'-DNAE_SOURCES="{_digest()}"'
        parts["core"] = [*_COMMON, "-ffp-contract=off", *flags, named, "-c", str(SOURCES / "core.cpp")]
        objects = [str(Path(place) / f"{name}.o") for name in parts]
        calls = [[command, *part, "-o", made] for part, made in zip(parts.values(), objects, strict=True)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(_run, calls))
        made = Path(place) / PATH.name
        _run([command, "-shared", "-pthread", *flags, *objects, "-o", str(made)])
        beside = to.with_suffix(".new")
        shutil.copyfile(made, beside)
        beside.replace(to)  # whoever has the old one loaded keeps it


def main() -> None:
    """Build the core where there is a compiler and something is new, and say so."""
    command = compiler()
    if command is None:
        sys.stderr.write("The native core is not built: there is no C++ compiler (g++ or clang++). torch trains.\n")
    elif not is_current():
        build(command)
        sys.stderr.write(f"The native core is built: {PATH.name}, by {command}.\n")


def _run(call: list[str]) -> None:
    try:
        subprocess.run(call, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        error.add_note(error.stderr)
        raise


if __name__ == "__main__":
    main()
