"""Keep processors busy for a while: ``python -m benchmarks.busy 2 --seconds 60``.

Each process computes in a loop and ends by itself after so many seconds, at most 900.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["busy", "main"]

MOST_SECONDS = 900.0
_STEPS = 20_000  # additions between two looks at the clock


@contextmanager
def busy(n_processes: int, *, seconds: float = MOST_SECONDS) -> Iterator[None]:
    """Keep so many processors busy during a block, or for so many seconds if that is shorter."""
    command = [sys.executable, "-m", "benchmarks.busy", "1", "--seconds", str(min(seconds, MOST_SECONDS))]
    processes = [subprocess.Popen(command) for _ in range(n_processes)]
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def main(arguments: list[str] | None = None) -> None:
    """Compute until the time is over, in so many processes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.busy", description=__doc__)
    parser.add_argument("processes", type=int)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args(arguments)
    with busy(given.processes - 1, seconds=given.seconds):
        _compute(min(given.seconds, MOST_SECONDS))


def _compute(seconds: float) -> None:
    ends, total = time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        for number in range(_STEPS):
            total += number


if __name__ == "__main__":
    main()
