"""Guided fuzzing: atheris keeps the inputs that reach new code, and changes them further.

As a module, this file is the process that atheris takes over: ``python -m benchmarks.fuzz.guided TARGET FOLDER …``.
"""

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.fuzz.record import Run
from benchmarks.fuzz.worker import Found
from nae.errors import ConfigError, FormatError, MissingDependencyError

__all__ = ["check_guided", "fuzz_guided"]

_TARGETS = ("files", "readers")
_LONGEST = 20_000  # largest size of an input, in bytes
_SECONDS = 60.0


def check_guided(names: Sequence[str]) -> None:
    """Check that the targets can be guided, and that atheris is installed."""
    other = next((name for name in names if name not in _TARGETS), None)
    if other is not None:
        raise ConfigError(f"--guided takes the targets {', '.join(_TARGETS)}; got {other}.")
    if importlib.util.find_spec("atheris") is None:
        raise MissingDependencyError("--guided needs atheris; pip install atheris")


def fuzz_guided(name: str, given: argparse.Namespace, *, seconds: float | None) -> Run:
    """Fuzz one target for some time, in one process."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="nae-fuzz-") as folder:
        limits = [f"-max_total_time={round(seconds or _SECONDS)}", f"-seed={given.seed + 1}", f"-max_len={_LONGEST}"]
        words = [name, folder, *limits, f"-artifact_prefix={folder}/found-", "-print_final_stats=1"]
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.fuzz.guided", *words],
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
        )
        inputs = [path.read_bytes() for path in sorted(Path(folder).glob("found-*"))]
    tries = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    if tries is None:
        raise ConfigError(f"atheris ended with {done.returncode}: {done.stderr[-500:]}")
    raised = re.search(r"Uncaught Python exception: ===\s*(.+)", done.stdout + done.stderr)
    sentence = raised[1][:300] if raised else f"atheris ended with {done.returncode}"
    found = tuple(Found(name, given.seed, i, sentence, content) for i, content in enumerate(inputs))
    for one in found:
        _report(one, given.keep)
    wall = time.monotonic() - started
    return Run(name, given.seed, 0, int(tries[1]), wall, wall, {}, found, is_guided=True)


def _report(found: Found, keep: Path | None) -> None:
    print(f"VIOLATION of {found.target}, guided: {found.sentence}", file=sys.stderr, flush=True)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{found.target}-guided-{found.seed}-{found.number}.bin").write_bytes(found.content)


def _files(_: Path) -> tuple[Callable[[bytes], Any], list[bytes]]:
    """Return a check of a file after its checksums are corrected, and initial files."""
    import numpy as np

    from benchmarks.fuzz.files import check_forged
    from benchmarks.fuzz.models import small_models
    from nae.tables.archive import pack, parse_archive
    from tests.tables.mutations import mend, split

    def check(content: bytes) -> None:
        try:
            mended = mend(split(content))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            try:
                parse_archive(content)
            except FormatError:
                return
            return
        check_forged(mended, np.random.default_rng(len(content)))

    return check, [pack(model) for model in small_models()]


def _readers(folder: Path) -> tuple[Callable[[bytes], Any], list[bytes]]:
    """Return a check of a table, and initial tables."""
    from benchmarks.fuzz.readers import check_read, seeds

    path = folder / "table"

    def check(content: bytes) -> None:
        path.write_bytes(content)
        check_read(path)

    return check, seeds()


def main() -> None:
    """Let atheris take over this process."""
    import atheris

    name, folder, *words = sys.argv[1:]
    warnings.simplefilter("ignore")
    with atheris.instrument_imports(include=["nae"]):
        check, beginnings = {"files": _files, "readers": _readers}[name](Path(folder))
    corpus = Path(folder) / "corpus"
    corpus.mkdir()
    for i, content in enumerate(beginnings):
        (corpus / f"{i:03}").write_bytes(content)
    atheris.Setup([sys.argv[0], *words, str(corpus)], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
