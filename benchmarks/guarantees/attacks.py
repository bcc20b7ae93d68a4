"""Attack promised directions: violations per million pairs of inputs that differ in the promised feature alone."""

import argparse
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import Split, folder_of_tables
from benchmarks.guarantees.attack import Found, Target, attack
from benchmarks.guarantees.cases import CASES, Case, case_named, load_case
from benchmarks.guarantees.pools import make_pools
from benchmarks.guarantees.record import FOLDER, Record
from benchmarks.guarantees.subjects import OURS, Subject, subject_named, subjects_for
from benchmarks.guarantees.versions import versions_of
from benchmarks.models import Budget, Fitted

__all__ = ["Attacked", "add_command", "attack_model"]

MOST_ATTACKS = 1_000_000
ATTACKS = 300_000
"""The number of attacks on models that predict slowly."""
MOST_ROWS = 10_000
"""The number of rows whose values are tried."""


@dataclass(frozen=True)
class Attacked:
    """What attacks on one model found; or why it could not be fitted or attacked."""

    case: str
    subject: str
    found: tuple[Found, ...] = ()
    spread: float = 0.0
    """The highest minus the lowest score of the table's rows."""
    seconds: float = 0.0
    verdicts: tuple[str, ...] = ()
    """What ``certify`` says about each promise; only ours has one."""
    reason: str = ""
    versions: dict[str, str] = field(default_factory=dict)


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a command line."""
    parser = commands.add_parser("attacks", help=__doc__, description=__doc__)
    parser.add_argument("--cases", default=",".join(case.name for case in CASES), help="comma-separated names")
    parser.add_argument(
        "--models", default=",".join(each.name for each in subjects_for("attacks")), help="comma-separated names"
    )
    parser.add_argument(
        "--attacks", type=int, help="number of attacks on every model; default: 300,000, on ours 1,000,000"
    )
    parser.add_argument("--threads", type=int, default=1, help="number of threads of every model")
    parser.add_argument("--redo", action="store_true", help="repeat what the record has")
    parser.add_argument("--record", type=Path, default=FOLDER / "attacks.json", help="the file of results")
    parser.set_defaults(run=run_attacks)


def run_attacks(given: argparse.Namespace) -> None:
    """Fit and attack what the record lacks, and write the page."""
    from benchmarks.guarantees.page import write_page

    folder_of_tables()  # raises an error now rather than a page of failures
    cases = [case_named(name) for name in given.cases.split(",")]
    subjects = [subject_named(name) for name in given.models.split(",")]
    record = Record(given.record)
    for case in cases:
        for subject in subjects:
            if given.redo or f"{case.name}/{subject.name}" not in record.read():
                n_attacks = given.attacks or (MOST_ATTACKS if subject.is_ours else ATTACKS)
                found = _trial(case, subject, Budget(threads=given.threads), n_attacks)
                record.put(f"{case.name}/{subject.name}", found)
                print(_line(found), flush=True)
    write_page(given.record.parent)


def _trial(case: Case, subject: Subject, budget: Budget, n_attacks: int) -> Attacked:
    started = time.perf_counter()
    try:
        split = load_case(case)
        fitted = subject.fit(case, split, budget, is_attacked=True)
        found = attack_model(case, subject, fitted, split, n_attacks)
    except Exception as error:  # a model that refuses a loss or a constraint is a result, too
        return Attacked(case.name, subject.name, reason=_first_line(error), versions=versions_of(subject))
    seconds = time.perf_counter() - started
    return Attacked(case.name, subject.name, *found, seconds, _verdicts(subject, fitted), "", versions_of(subject))


def attack_model(
    case: Case, subject: Subject, fitted: Fitted, split: Split, n_attacks: int, *, seed: int = 0
) -> tuple[tuple[Found, ...], float]:
    """Return what was found for every promised feature, and the spread of the score."""
    random = np.random.default_rng(seed)
    X = split.all_train.X
    X = X.iloc[random.permutation(len(X))[:MOST_ROWS]].reset_index(drop=True)
    pools = make_pools(X, _knots(subject, fitted, case.signs))
    spread = float(np.ptp(subject.scores(fitted, X)))
    found: list[Found] = []
    for name, sign in case.signs.items():
        target = Target(lambda rows: subject.scores(fitted, rows), pools, pools.names.index(name), sign)
        found += attack(target, random, spread=spread, n_attacks=n_attacks // len(case.signs))
    return tuple(found), spread


def _knots(subject: Subject, fitted: Fitted, names: Iterable[str]) -> dict[str, Any]:
    """Return the knots of our curves. All other models have steps, which the values of the table pass."""
    if not subject.is_ours:
        return {}
    schema = fitted.estimator.model_.schema
    return {name: schema.features[schema.index(name)].knots for name in names}


def _verdicts(subject: Subject, fitted: Fitted) -> tuple[str, ...]:
    if subject.name != OURS:
        return ()
    return tuple(one.verdict for one in fitted.estimator.certify().certificates)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _line(one: Attacked) -> str:
    n, worst = sum(each.n_violations for each in one.found), max((each.worst.size for each in one.found), default=0.0)
    result = one.reason or f"{n:9,} violations, largest fall {worst:.2g} of the spread"
    return f"{one.case:<10} {one.subject:<15} {result} {one.seconds:6.1f} s"
