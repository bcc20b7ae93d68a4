"""Run every model on every data set, one after another, and write one page."""

import argparse
import os
import time
from collections.abc import Iterator
from itertools import count, takewhile
from pathlib import Path

from benchmarks.datasets import DATASETS, OTHERS, Dataset, dataset_named, folder_of_tables
from benchmarks.durations import read_duration
from benchmarks.machine import describe
from benchmarks.models import ALL, MODELS, Entry, entry_named
from benchmarks.readme import put
from benchmarks.run import execute
from benchmarks.splits import render_splits, splits_sentence
from benchmarks.store import Report, RunConfig, Store
from benchmarks.tables import render_suite, render_summary

__all__ = ["add_command", "plan", "run_suite"]

NAME = "suite"


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a command line."""
    parser = commands.add_parser(NAME, help=__doc__, description=__doc__)
    parser.add_argument("--datasets", help="comma-separated names; default: all")
    parser.add_argument("--models", help="comma-separated names; default: all")
    parser.add_argument("--splits", type=int, default=1, help="of the rows; the first is that of the main tables")
    parser.add_argument("--time-budget", help="start no further run after this time: 90s, 60m, 2h")
    parser.add_argument("--run-limit", default="60m", help="a run that takes longer has failed")
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count(), help="number of threads of every model; default: all processors"
    )
    parser.add_argument("--device", default="cpu", help="where networks are trained: 'cpu' or 'cuda'")
    parser.add_argument("--redo", action="store_true", help="repeat runs that are done")
    parser.add_argument("--redo-if-loaded", action="store_true", help="repeat runs that shared the machine")
    parser.add_argument("--store", type=Path, default=Path("runs"), help="folder of runs")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/suite.md"), help="the page to write")
    parser.add_argument("--readme", action="store_true", help="put the summary into the README, too")
    parser.set_defaults(run=run_suite)


def run_suite(given: argparse.Namespace) -> None:
    """Carry out the missing runs, and write the page after every run."""
    asked = list(plan(given.datasets, given.models, threads=given.threads, device=given.device, n_splits=given.splits))
    folder_of_tables()  # raises an error now rather than a page of failures
    store = Store(given.store)
    end = time.monotonic() + read_duration(given.time_budget) if given.time_budget else float("inf")
    limit = read_duration(given.run_limit)
    machine = describe(given.device)
    for config in asked:
        known = store.done(config, machine=machine)
        if known is not None and not _is_to_be_redone(known, given):
            continue
        if time.monotonic() > end:
            print(f"time budget of {given.time_budget} spent before {config.model} on {config.dataset}")
            break
        report = execute(config, store, limit_seconds=limit)
        print(_line(report, config.split), flush=True)
        _write(store, given.out)
    _write(store, given.out)
    if given.readme:
        parts = [render_summary(store.reports(NAME)), splits_sentence(_splits(store))]
        put(NAME, "\n\n".join(part for part in parts if part))
    print(f"wrote {given.out}")


def plan(
    datasets: str | None, models: str | None, *, threads: int, device: str = "cpu", n_splits: int = 1
) -> Iterator[RunConfig]:
    """Yield the runs in order: cheap data sets first, and for each our model and boosted trees before slow models."""
    chosen: list[Dataset] = [dataset_named(name) for name in datasets.split(",")] if datasets else list(DATASETS)
    entries: list[Entry] = [entry_named(name) for name in models.split(",")] if models else list(MODELS)
    for split in range(n_splits):
        for dataset in sorted(chosen, key=(*DATASETS, *OTHERS).index):
            for entry in sorted(entries, key=ALL.index):
                yield RunConfig(_suite(split), dataset.name, entry.name, threads=threads, device=device, split=split)


def _suite(split: int) -> str:
    return f"{NAME}-{split}" if split else NAME


def _splits(store: Store) -> list[list[Report]]:
    """Return the reports of every split that has reports."""
    return list(takewhile(bool, (list(store.reports(_suite(split))) for split in count())))


def _is_to_be_redone(report: Report, given: argparse.Namespace) -> bool:
    return given.redo or (given.redo_if_loaded and report.is_loaded)


def _line(report: Report, split: int) -> str:
    name = f"{report.dataset:>18} {report.model:<13}" + (f" split {split}" if split else "")
    if report.outcome != "done":
        return f"{name} {report.outcome}: {report.reason}"
    score = report.score(dataset_named(report.dataset).metric.name)
    return (
        f"{name} {score:10.4f}  fit {report.fit_seconds:7.1f} s  predict {report.predict_seconds:6.3f} s  "
        f"{report.peak_memory_mb:6.0f} MB"
    )


def _write(store: Store, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [render_suite(store.reports(NAME), store.influences(NAME)), render_splits(_splits(store))]
    path.write_text("\n".join(f"{part.rstrip()}\n" for part in parts if part))
