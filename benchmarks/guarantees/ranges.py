"""Ranges of predictions with unknown features: widths with and without branching, time, and completions outside.

A model with default settings is fitted to Housing, on the paper's split. For every pair of unknown features, 1,000 test
rows get their ranges. What completions reach is the mean over the first rows of the largest minus the smallest score
among random pairs of knots and *missing*, after a search that moves one of the two values at a time.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from benchmarks.datasets import dataset_named, load
from benchmarks.guarantees.record import FOLDER, Record
from benchmarks.run import own_version
from nae import NAERegressor, TableModel
from nae._typing import Array
from nae.encoding import Cells
from nae.ranges import whole

__all__ = ["BUDGETS", "DEFAULT", "Measured", "add_command", "measure"]

NAME = "ranges"
DATASET = "housing"
PAIRS = (("MedInc", "AveOccup"), ("Latitude", "Longitude"), ("AveRooms", "AveBedrms"), ("HouseAge", "Population"))
BUDGETS = (1, 8, 32, 128)
DEFAULT = 32
N_SEARCHED = 100  # rows whose completions are searched
N_DRAWN = 256  # completions per row


@dataclass(frozen=True)
class Measured:
    """What was measured for some unknown features; widths are means over the rows, in units of the score."""

    unknown: tuple[str, ...]
    reached: float
    widths: dict[int, float]  # by budget
    seconds: float  # of one processor, for all rows with the default budget
    n_outside: int  # completions with a score outside of the range
    n_rows: int
    version: str = ""

    @classmethod
    def from_record(cls, found: Mapping[str, Any]) -> Self:
        """Return what a record holds, whose keys are text."""
        return cls(**{**found, "widths": {int(budget): width for budget, width in found["widths"].items()}})


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a command line."""
    parser = commands.add_parser(NAME, help="ranges with unknown features", description=__doc__)
    parser.add_argument("--rows", type=int, default=1000, help="test rows that get a range")
    parser.add_argument("--record", type=Path, default=FOLDER / "ranges.json", help="the file of results")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> None:
    """Fit, measure and record, and write the page."""
    from benchmarks.guarantees.page import write_page

    split = load(dataset_named(DATASET))
    start = time.perf_counter()
    model = NAERegressor(random_state=0).fit(split.all_train.X, split.all_train.y).model_
    print(f"fitted in {time.perf_counter() - start:.0f} s: {model}", flush=True)
    rows, record = split.test.X.head(given.rows), Record(given.record)
    for names in (*PAIRS, (PAIRS[0][0],), (*PAIRS[0], *PAIRS[1])):
        found = replace(measure(model, rows, names), version=own_version())
        record.put(", ".join(names), found)
        print(found, flush=True)
    start = time.perf_counter()
    print(model.extremes())
    print(f"{time.perf_counter() - start:.1f} s")
    write_page(given.record.parent)


def measure(model: TableModel, rows: "pd.DataFrame", unknown: Sequence[str]) -> Measured:
    """Return what was measured for some unknown features."""
    widths, seconds, found = {}, 0.0, None
    for budget in BUDGETS:
        start = time.process_time()
        one = model.predict_range(rows, unknown=unknown, budget=budget)
        widths[budget] = float(one.width.mean())
        if budget == DEFAULT:
            seconds, found = time.process_time() - start, one
    assert found is not None  # the default is one of the budgets
    n = min(N_SEARCHED, len(rows))
    scores = completions(model, rows.head(n), [model.schema.index(name) for name in unknown])
    outside = (scores < found.lower[:n, None]) | (scores > found.upper[:n, None])
    reached = float(np.ptp(scores, axis=1).mean())
    return Measured(tuple(unknown), reached, widths, seconds, int(outside.sum()), len(rows))


def completions(model: TableModel, rows: "pd.DataFrame", features: Sequence[int]) -> Array:
    """Return scores of random completions of every row, and of searches from the best ones, (row, completion)."""
    random, cells = np.random.default_rng(0), model.cells(rows)
    domains = [whole(model, feature) for feature in features]
    drawn = _repeated(cells, N_DRAWN)
    for domain in domains:
        drawn = domain.place(drawn, random.integers(len(domain), size=len(drawn)))
    scores = model.decision_function(drawn).reshape(len(cells), N_DRAWN)
    found = [scores]
    for sign in (1, -1):
        at = (sign * scores).argmax(axis=1) + N_DRAWN * np.arange(len(cells))
        best = drawn.take(at)
        for domain in (*domains, *domains):
            moved = domain.place(_repeated(best, len(domain)), np.tile(np.arange(len(domain)), len(cells)))
            tried = model.decision_function(moved).reshape(len(cells), len(domain))
            best = moved.take((sign * tried).argmax(axis=1) + len(domain) * np.arange(len(cells)))
            found.append(tried)
    return np.concatenate(found, axis=1)


def _repeated(cells: Cells, n: int) -> Cells:
    return cells.take(np.repeat(np.arange(len(cells)), n))
