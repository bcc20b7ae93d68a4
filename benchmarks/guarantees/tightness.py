"""Measure how tight bounds are: those that training rows have shown (``bounds="data"``) beside those of the experts.

One default model is fitted to each table of the suite. Clamps are measured after training, so the model without its
clamps is the one that ``bounds="experts"`` fits. Everything is measured on test rows.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import DATASETS, Dataset, Split, dataset_named, folder_of_tables, load
from benchmarks.guarantees.record import FOLDER, Record
from benchmarks.guarantees.subjects import OURS, subject_named
from benchmarks.guarantees.versions import versions_of
from benchmarks.models import Budget
from benchmarks.models.ours import NAE
from benchmarks.run import MEASURED_ROWS
from benchmarks.scores import influence, score, standard_error
from benchmarks.store import Report

if TYPE_CHECKING:
    import pandas as pd

    from nae import TableModel

__all__ = ["Bounds", "Tight", "add_command", "measure"]


@dataclass(frozen=True)
class Bounds:
    """What was measured of one kind of bounds."""

    tightness: float
    """The share of the room between the bounds that contributions use, a mean over the features."""
    width: float
    """The mean over rows and outputs of the summed distances between the bounds, in units of the score."""
    score: float


@dataclass(frozen=True)
class Tight:
    """Both kinds of bounds of the same model."""

    table: str
    data: Bounds
    experts: Bounds
    noise: float
    """The standard error of the difference of the two errors."""
    seconds: float
    """Processor seconds of the fit."""
    versions: dict[str, str] = field(default_factory=dict)


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a command line."""
    parser = commands.add_parser("tightness", help="how tight bounds are, on all tables", description=__doc__)
    parser.add_argument("--tables", default=",".join(each.name for each in DATASETS), help="comma-separated names")
    parser.add_argument("--threads", type=int, default=1, help="number of threads")
    parser.add_argument("--redo", action="store_true", help="repeat what the record has")
    parser.add_argument("--record", type=Path, default=FOLDER / "tightness.json", help="the file of results")
    parser.set_defaults(run=run_tightness)


def run_tightness(given: argparse.Namespace) -> None:
    """Fit and measure what the record lacks, and write the page."""
    from benchmarks.guarantees.page import write_page

    folder_of_tables()  # raises an error now rather than a page of failures
    record = Record(given.record)
    for dataset in map(dataset_named, given.tables.split(",")):
        if given.redo or dataset.name not in record.read():
            found = _trial(dataset, Budget(threads=given.threads))
            record.put(dataset.name, found)
            print(_line(found), flush=True)
    write_page(given.record.parent)


def _trial(dataset: Dataset, budget: Budget) -> Tight:
    split = load(dataset, seed=budget.seed)
    started = time.process_time()
    model = NAE().fit(split, budget).estimator.model_
    seconds = time.process_time() - started
    return replace(measure(model, split), seconds=seconds, versions=versions_of(subject_named(OURS)))


def measure(model: "TableModel", split: Split) -> Tight:
    """Return what bounds and scores of a model are, with its clamps and without."""
    both = (model, replace(model, clamps=None))
    predicted = [_predict(one, split.test.X) for one in both]
    data, experts = (_bounds(one, split, own) for one, own in zip(both, predicted, strict=True))
    noise = standard_error(*(influence(split, own) for own in predicted))
    return Tight(split.dataset.name, data, experts, noise, seconds=0.0)


def _predict(model: "TableModel", X: "pd.DataFrame") -> NDArray[Any]:
    return np.asarray(model.predict_proba(X) if model.classes else model.predict(X))


def _bounds(model: "TableModel", split: Split, predicted: NDArray[Any]) -> Bounds:
    from nae.metrics import tightness

    cells = model.cells(split.test.X.head(MEASURED_ROWS))
    width = np.mean(np.concatenate([each.reshape(-1) for each in _widths(model, split.test.X.head(MEASURED_ROWS))]))
    report = score(Report(split.dataset.name, OURS, "done"), split, predicted)
    found = report.score(split.dataset.metric.name)
    assert found is not None  # the report has the metric of its task
    return Bounds(float(tightness(model, cells)), float(width), found)


def _widths(model: "TableModel", X: "pd.DataFrame", n_rows: int = 2000) -> Iterator[NDArray[np.float64]]:
    """Yield the summed distances between the bounds of some rows at a time, (row,) or (row, output)."""
    for start in range(0, len(X), n_rows):
        found = model.contributions(X.iloc[start : start + n_rows])
        yield np.sum(found.upper - found.lower, axis=1, dtype=np.float64)


def _line(one: Tight) -> str:
    tight, wide = one.data.tightness, one.experts.tightness
    return (
        f"{one.table:<18} tightness {wide:.3f} → {tight:.3f} ({tight / wide:.2f})   "
        f"width × {one.data.width / one.experts.width:.2f}   score {one.experts.score:.5g} → {one.data.score:.5g} "
        f"(noise {one.noise:.1g})   {one.seconds:.0f} s"
    )
