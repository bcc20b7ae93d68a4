"""Fuzz with millions of random and damaged inputs: ``python -m benchmarks fuzz``.

Every attempt has a number and its own random generator, so the same seed tries the same inputs with any number of
processes. A violation is printed with a command that repeats it.
"""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from benchmarks.fuzz.record import Record, Run
from benchmarks.fuzz.targets import TARGETS
from benchmarks.fuzz.worker import Found, Share, Tally, work
from nae.errors import ConfigError, did_you_mean

__all__ = ["add_command", "fuzz", "run_fuzz"]

_FOREVER = 1 << 62
_PATIENCE = 3.0  # a process is ended if an attempt takes this many times its limit
_TO_START = 300.0  # seconds


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a command line."""
    parser = commands.add_parser("fuzz", help="random and damaged inputs, by time or count", description=__doc__)
    parser.add_argument("--targets", default=",".join(TARGETS), help="comma-separated names")
    parser.add_argument("--seconds", type=float, help="for all targets together; default: 60, or none with --count")
    parser.add_argument("--count", type=int, help="number of attempts per target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first attempt")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="folder for the inputs of violations")
    parser.add_argument("--guided", action="store_true", help="let atheris look for new code (files and readers)")
    parser.add_argument("--record", type=Path, metavar="JSON", help="add the counts to this file and its page")
    parser.set_defaults(run=run_fuzz)


def run_fuzz(given: argparse.Namespace) -> None:
    """Fuzz one target after another and print the violations. The exit code is 1 if there are any."""
    names = given.targets.split(",")
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        raise ConfigError(f"No target is called {unknown[0]!r}.{did_you_mean(unknown[0], TARGETS)}")
    if given.jobs < 1:
        raise ConfigError(f"jobs must be at least 1; got {given.jobs}.")
    if given.guided:
        from benchmarks.fuzz.guided import check_guided, fuzz_guided

        check_guided(names)
    seconds = 60.0 if given.seconds is None and given.count is None else given.seconds
    record, is_clean = Record.read(given.record), True
    for name in names:
        share = None if seconds is None else seconds / len(names)
        run = fuzz_guided(name, given, seconds=share) if given.guided else fuzz(name, given, seconds=share)
        is_clean = is_clean and not run.found
        record = record.with_run(run)
        print(run.sentence, flush=True)
    record.write(given.record)
    if not is_clean:
        raise SystemExit(1)


def fuzz(name: str, given: argparse.Namespace, *, seconds: float | None) -> Run:
    """Fuzz one target in several processes."""
    end = _FOREVER if given.count is None else given.first + given.count
    jobs = min(given.jobs, end - given.first)
    shares = [
        Share(name, given.seed, given.first + i, end, jobs, seconds=float("inf") if seconds is None else seconds)
        for i in range(jobs)
    ]
    started, tally, found = time.monotonic(), Tally(), []
    for one in _gather(shares):
        if isinstance(one, Tally):
            tally.tries += one.tries
            tally.seconds += one.seconds
            tally.outcomes += one.outcomes
        else:
            found.append(one)
            report(one, given.keep)
    wall = time.monotonic() - started
    return Run(name, given.seed, given.first, tally.tries, tally.seconds, wall, dict(tally.outcomes), tuple(found))


def report(one: Found, keep: Path | None) -> None:
    """Print a violation, and keep its input in the user's folder."""
    print(f"VIOLATION of {one.target}: {one.sentence}\n  again: {one.command}", file=sys.stderr, flush=True)
    if keep is not None and one.content:
        keep.mkdir(parents=True, exist_ok=True)
        path = keep / f"{one.target}-{one.seed}-{one.number}.{one.ending}"
        path.write_bytes(one.content)
        print(f"  input: {path}", file=sys.stderr, flush=True)


def _gather(shares: list[Share]) -> Iterator[Found | Tally]:
    """Run every share in a process of its own, and yield its messages. The death of a process is a violation."""
    context = multiprocessing.get_context("spawn")
    running: dict[Connection, tuple[Any, Any, Share]] = {}
    for share in shares:
        ours, theirs = context.Pipe(duplex=False)
        at = context.Value("q", -1, lock=False)
        process = context.Process(target=work, args=(share, at, theirs), daemon=False)
        process.start()
        theirs.close()
        running[ours] = (process, at, share)
    seen = {pipe: (-1, time.monotonic()) for pipe in running}
    while running:
        for pipe in wait(list(running), timeout=1.0):
            process, at, share = running[pipe]
            try:
                sent = pipe.recv()  # type: ignore[call-arg]  # a pipe and no socket
            except EOFError:
                process.join()
                number = max(int(at.value), share.first)
                yield Found(share.target, share.seed, number, f"the process ended with {process.exitcode}")
                yield Tally(tries=(number - share.first) // share.step + 1)
                sent = None
            if sent is not None:
                yield sent
            if not isinstance(sent, Found):
                process.join()
                del running[pipe]
        for pipe, (process, at, share) in running.items():
            number, since = seen[pipe]
            if at.value != number:
                seen[pipe] = (int(at.value), time.monotonic())
            elif time.monotonic() - since > (_TO_START if number < 0 else _PATIENCE * TARGETS[share.target].seconds):
                process.kill()  # its pipe ends, which is reported above
