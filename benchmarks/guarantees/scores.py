"""Measure what promised directions cost: scores on test rows and processor time, each with the promise and without."""

import argparse
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.datasets import Split, folder_of_tables
from benchmarks.guarantees.cases import Case, case_named, load_case
from benchmarks.guarantees.record import FOLDER, Record
from benchmarks.guarantees.subjects import OURS, Subject, subject_named, subjects_for
from benchmarks.guarantees.versions import versions_of
from benchmarks.models import Budget, Fitted

__all__ = ["COMPARED", "SPLITS", "Scored", "add_command"]

SPLITS = {"housing": 1, "concrete": 5, "diamonds": 1}
"""The number of splits of each table, beginning with seed 0. A split of a small table says little."""
COMPARED = subjects_for("scores")
REPEATS = 3


@dataclass(frozen=True)
class Scored:
    """The RMSE on test rows and the processor seconds of two fits, without the promise and with it."""

    case: str
    subject: str
    seed: int
    free: float = 0.0
    kept: float = 0.0
    free_seconds: float = 0.0
    kept_seconds: float = 0.0
    certify_seconds: float | None = None
    """The shortest of three times that ``certify`` took for all promises."""
    is_proven: bool | None = None
    reason: str = ""
    versions: dict[str, str] = field(default_factory=dict)


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a command line."""
    parser = commands.add_parser("scores", help=__doc__, description=__doc__)
    parser.add_argument("--cases", default=",".join(SPLITS), help="comma-separated names")
    parser.add_argument("--models", default=",".join(each.name for each in COMPARED), help="comma-separated names")
    parser.add_argument("--splits", type=int, help="number of splits of every table; default: 5 of Concrete, 1 else")
    parser.add_argument("--threads", type=int, default=1, help="number of threads of every model")
    parser.add_argument("--redo", action="store_true", help="repeat what the record has")
    parser.add_argument("--record", type=Path, default=FOLDER / "scores.json", help="the file of results")
    parser.set_defaults(run=run_scores)


def run_scores(given: argparse.Namespace) -> None:
    """Fit what the record lacks, and write the page."""
    from benchmarks.guarantees.page import write_page

    folder_of_tables()  # raises an error now rather than a page of failures
    subjects = [subject_named(name) for name in given.models.split(",")]
    record = Record(given.record)
    for case in map(case_named, given.cases.split(",")):
        for seed in range(given.splits or SPLITS.get(case.name, 1)):
            for subject in subjects:
                name = f"{case.name}/{seed}/{subject.name}"
                if given.redo or name not in record.read():
                    found = score_model(case, subject, load_case(case, seed=seed), Budget(given.threads, seed))
                    record.put(name, found)
                    print(_line(found), flush=True)
    write_page(given.record.parent)


def score_model(case: Case, subject: Subject, split: Split, budget: Budget) -> Scored:
    """Fit without the promise and with it, one after the other."""
    try:
        free, free_seconds = _timed(case, subject, split, budget, is_free=True)
        kept, kept_seconds = _timed(case, subject, split, budget, is_free=False)
    except Exception as error:  # a model that refuses a constraint is a result, too
        return Scored(case.name, subject.name, budget.seed, reason=str(error), versions=versions_of(subject))
    scores = (_rmse(split, free), _rmse(split, kept))
    proof = _certified(kept) if subject.name == OURS else (None, None)
    seconds = (free_seconds, kept_seconds)
    return Scored(case.name, subject.name, budget.seed, *scores, *seconds, *proof, "", versions_of(subject))


def _timed(case: Case, subject: Subject, split: Split, budget: Budget, *, is_free: bool) -> tuple[Fitted, float]:
    started = time.process_time()
    fitted = subject.fit(case, split, budget, is_free=is_free)
    return fitted, time.process_time() - started


def _rmse(split: Split, fitted: Fitted) -> float:
    return float(np.sqrt(np.mean((fitted.predict(split.test.X) - split.test.y) ** 2)))


def _certified(fitted: Fitted) -> tuple[float, bool]:
    """Return the seconds of a certificate of all promises, and whether all are proven."""
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        found = fitted.estimator.certify()
        times.append(time.perf_counter() - started)
    return min(times), found.all_proven


def _line(one: Scored) -> str:
    text = f"{one.case:<10} {one.seed} {one.subject:<10}"
    if one.reason:
        return f"{text} {one.reason}"
    return f"{text} {one.free:8.4g} → {one.kept:8.4g}   {one.free_seconds:6.1f} s → {one.kept_seconds:6.1f} s"
