"""One process of a fuzzing run: attempts one after another, each with its own random generator."""

import resource
import signal
import sys
import tempfile
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from benchmarks.fuzz.targets import TARGETS, Attempt, Target, Violation, shown

__all__ = ["MOST_FOUND", "Found", "Share", "Tally", "generator", "try_once", "work"]

MOST_FOUND = 10  # a process stops after this many violations, because more of them tell nothing new
_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, kilobytes elsewhere


@dataclass(frozen=True)
class Share:
    """The attempts of one process: the numbers from ``first`` to ``end`` in steps, until the time is up."""

    target: str
    seed: int
    first: int
    end: int
    step: int
    seconds: float


@dataclass(frozen=True)
class Found:
    """A violation: the number of the attempt, the sentence, and the input."""

    target: str
    seed: int
    number: int
    sentence: str
    content: bytes = b""
    ending: str = "bin"

    @property
    def command(self) -> str:
        return f"python -m benchmarks fuzz --targets {self.target} --seed {self.seed} --first {self.number} --count 1"


@dataclass
class Tally:
    """The result of a share."""

    tries: int = 0
    seconds: float = 0.0  # processor time
    outcomes: Counter[str] = field(default_factory=Counter)


def work(share: Share, at: Any, pipe: Connection) -> None:
    """Try the inputs of a share. ``at`` tells the parent which one is being tried, in case this process dies.

    Every violation is sent when it is found, and a tally at the end.
    """
    warnings.simplefilter("ignore")  # numbers near the largest float may overflow
    with tempfile.TemporaryDirectory(prefix="nae-fuzz-") as folder, ExitStack() as closing:
        pipe.send(_work(share, at, pipe, TARGETS[share.target].prepare(Path(folder), closing)))
    pipe.close()


def _work(share: Share, at: Any, pipe: Connection, attempt: Attempt) -> Tally:
    target, tally, n_found = TARGETS[share.target], Tally(), 0
    start, started = time.process_time(), time.monotonic()
    for number in range(share.first, share.end, share.step):
        if time.monotonic() - started > share.seconds or n_found >= MOST_FOUND:
            break
        at.value = number
        try:
            tally.outcomes[try_once(target, attempt, seed=share.seed, number=number)] += 1
        except Violation as error:
            n_found += 1
            tally.outcomes["violation"] += 1
            pipe.send(Found(share.target, share.seed, number, error.sentence, error.content, error.ending))
        tally.tries += 1
    at.value = -1
    tally.seconds = time.process_time() - start
    return tally


def generator(target: str, *, seed: int, number: int) -> np.random.Generator:
    """Return the random generator of one attempt."""
    return np.random.default_rng([seed, zlib.crc32(target.encode()), number])


def try_once(target: Target, attempt: Attempt, *, seed: int, number: int) -> str:
    """Make one attempt. An unexpected error, too much time or too much memory is a violation."""
    before = _peak()
    with _limit(target.seconds), shown(b"", ending="bin"):
        outcome = attempt(generator(target.name, seed=seed, number=number))
    grown = (_peak() - before) / 1e6
    if grown > target.megabytes:
        raise Violation(f"one attempt took {grown:.0f} MB more memory")
    return outcome


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    """Interrupt code that takes longer. If it never returns to Python, the parent ends the process."""

    def stop(_: int, frame: FrameType | None) -> None:
        where = f" in {frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}" if frame else ""
        raise Violation(f"one attempt took longer than {seconds:g} s{where}")

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
