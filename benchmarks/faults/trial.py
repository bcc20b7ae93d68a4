"""One trial: kill the operation, check its files, and run it again until it is done."""

import multiprocessing
import os
import re
import signal
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import numpy as np

from benchmarks.faults.moments import AfterSeconds, Extent, Moment, arm, draw_moment

__all__ = ["Found", "Reference", "Subject", "attack", "make_reference", "try_moment"]

_KILLED = (-signal.SIGKILL, -signal.SIGXFSZ)
_TEMPORARY = re.compile(r"\.nae-[0-9a-f]{8}-\d+-[0-9a-f]{8}\.tmp")
_SECONDS = 120.0  # seconds after which a run is taken to hang
_TRIES = 20  # a moment may lie after the end of a run, so that nothing is killed

Files = dict[str, bytes]


class Subject(Protocol):
    """One operation on the files of a folder."""

    name: str

    def start(self, place: Path) -> None:
        """Create the initial files in an empty folder, including older results."""

    def work(self, place: Path) -> None:
        """Do the operation, in a process of its own. After a kill, it is done again in the same folder."""

    def is_whole(self, path: Path) -> bool:
        """Return whether a file that is neither the older nor the final one is complete, such as a checkpoint."""


@dataclass(frozen=True)
class Reference:
    """An undisturbed run: the files before and after it, and its length."""

    before: Files
    after: Files
    extent: Extent


@dataclass(frozen=True)
class Found:
    """The results of the kills of one subject."""

    name: str
    n_kills: int
    n_left_over: int
    """Number of kills that left a temporary file, which the next run must remove."""
    losses: tuple[str, ...]
    seconds: float
    """Seconds of an undisturbed run."""


@dataclass(frozen=True)
class _Ended:
    exitcode: int | None
    n_calls: int
    seconds: float
    log: str


def attack(subject: Subject, *, n_kills: int, seed: int) -> Found:
    """Kill an operation ``n_kills`` times, each time from its start."""
    random = np.random.default_rng(seed)
    reference = make_reference(subject)
    losses: list[str] = []
    n_left_over = 0
    for number in range(n_kills):
        for late in range(_TRIES):
            moment = draw_moment(random, reference.extent, number + late)
            outcome = try_moment(subject, reference, moment)
            if outcome is not None:
                break
        else:
            losses.append(f"no kill in {_TRIES} tries, the last at {moment}")
            continue
        found, has_left_over = outcome
        losses += [f"{moment}: {loss}" for loss in found]
        n_left_over += has_left_over
    return Found(subject.name, n_kills, n_left_over, tuple(losses), reference.extent.seconds)


def make_reference(subject: Subject) -> Reference:
    """Run an operation undisturbed, twice: the first run is the warm-up, the second one is timed."""
    for _ in range(2):
        with TemporaryDirectory() as folder:
            place = Path(folder)
            subject.start(place)
            before = read_files(place)
            ended = _run(subject, place)
            if ended.exitcode != 0:
                raise RuntimeError(f"{subject.name} does not finish undisturbed: {ended.log}")
            after = read_files(place)
    largest = max(len(content) for name, content in after.items() if before.get(name) != content)
    return Reference(before, after, Extent(ended.seconds, ended.n_calls, largest))


def try_moment(subject: Subject, reference: Reference, moment: Moment) -> tuple[list[str], bool] | None:
    """Return the losses of a kill, and whether it left a temporary file. None if the kill came too late."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        subject.start(place)
        killed = _run(subject, place, moment)
        if killed.exitcode == 0:
            return None
        if killed.exitcode not in _KILLED:
            return [f"the run failed by itself: {killed.log}"], False
        left = read_files(place)
        losses = _lost(subject, reference, left, place)
        ended = _run(subject, place)
        if ended.exitcode != 0:
            why = "hangs" if ended.exitcode in _KILLED else f"fails: {ended.log}"
            return [*losses, f"the next run {why}"], False
        return losses + _unlike(subject, reference, place), any(map(_is_temporary, left))


def read_files(place: Path) -> Files:
    """Return the content of every file by its name below a folder."""
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def _lost(subject: Subject, reference: Reference, left: Files, place: Path) -> list[str]:
    """Return the losses right after a kill. Every file must be the older one, the final one, or complete."""
    losses = [f"{name} is gone" for name in reference.before if name not in left]
    for name, content in left.items():
        known = (reference.before.get(name), reference.after.get(name))
        if not _is_temporary(name) and content not in known and not subject.is_whole(place / name):
            losses.append(f"{name} is neither the older file nor the whole new one, with {len(content)} bytes")
    return losses


def _unlike(subject: Subject, reference: Reference, place: Path) -> list[str]:
    """Return the differences between the final files of an interrupted run and of the undisturbed one."""
    found = read_files(place)
    losses = [f"{name} is missing in the end" for name in reference.after if name not in found]
    losses += [f"{name} is left in the end" for name in found if name not in reference.after]
    losses += [
        f"{name} is another in the end"
        for name, content in reference.after.items()
        if found.get(name, content) != content and not subject.is_whole(place / name)
    ]
    return losses


def _is_temporary(name: str) -> bool:
    return _TEMPORARY.fullmatch(Path(name).name) is not None


def _run(subject: Subject, place: Path, moment: Moment | None = None) -> _Ended:
    """Run an operation in a process of its own, and kill it at a moment if one is given."""
    context = multiprocessing.get_context("forkserver")  # slow imports are done once, in the server process
    context.set_forkserver_preload(["benchmarks.faults.subjects"])
    ours, theirs = context.Pipe(duplex=False)
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        process = context.Process(target=_work, args=(subject, place, moment, theirs, log))
        process.start()
        theirs.close()
        n_calls, seconds = 0, 0.0
        try:
            ours.recv()
            process.join(moment.seconds if isinstance(moment, AfterSeconds) else _SECONDS)
            process.kill()
            n_calls, seconds = ours.recv()
        except EOFError:  # killed before it sent anything
            pass
        process.join()
        return _Ended(process.exitcode, n_calls, seconds, log.read_text()[-2000:] if log.exists() else "")


def _work(subject: Subject, place: Path, moment: Moment | None, pipe: Connection, log: Path) -> None:
    """Do the work in the child process. Its output goes to a file."""
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(handle, stream)
    count = arm(moment)
    pipe.send(None)
    began = time.perf_counter()
    try:
        subject.work(place)
    except BaseException:
        traceback.print_exc()
        raise
    pipe.send((count(), time.perf_counter() - began))
