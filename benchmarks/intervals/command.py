"""Coverage and width of prediction intervals and sets, on every table and several splits."""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.datasets import DATASETS, Dataset, Split, dataset_named, load
from benchmarks.intervals.measuring import Outcome, Times, measure_ours, measure_times
from benchmarks.intervals.page import render
from benchmarks.intervals.peer import measure_peer

__all__ = ["MAKERS", "Key", "add_command", "run_intervals"]

NAME = "intervals"
MAKERS: dict[str, Callable[[Split, int, int, Mapping[str, Any]], Outcome | Times]] = {
    "ours": measure_ours,
    "cqr": measure_peer,
    "times": measure_times,
}

Key = tuple[str, int, str]
"""A table, a split, and who makes intervals, or times."""


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a command line."""
    parser = commands.add_parser(NAME, help=__doc__, description=__doc__)
    parser.add_argument("--datasets", help="comma-separated names; default: all")
    parser.add_argument("--makers", default=",".join(MAKERS), help="comma-separated: ours, cqr, times")
    parser.add_argument("--splits", type=int, default=5, help="of the rows of every table")
    parser.add_argument("--runs", type=int, help="at most so many missing runs; default: all")
    parser.add_argument("--threads", type=int, default=1, help="threads of every fit")
    parser.add_argument(
        "--store", type=Path, default=Path("benchmarks/results/intervals.jsonl"), help="file of results, one per line"
    )
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/intervals.md"), help="the page to write")
    parser.set_defaults(run=run_intervals)


def run_intervals(given: argparse.Namespace) -> None:
    """Carry out the missing runs, small tables first, and write the page after each."""
    names = given.datasets.split(",") if given.datasets else [one.name for one in DATASETS]
    tables = [one for one in DATASETS if one.name in {dataset_named(name).name for name in names}]
    found = _read(given.store)
    missing = (key for key in _plan(tables, given.makers.split(","), given.splits) if key not in found)
    for key in islice(missing, given.runs):
        table, split, maker = key
        outcome = MAKERS[maker](load(dataset_named(table), seed=split), split, given.threads, {})
        found[key] = outcome
        _append(given.store, key, outcome)
        print(f"{table}, split {split}, {maker}: {outcome}", flush=True)
        _write(found, given)
    _write(found, given)
    print(f"wrote {given.out}")


def _plan(tables: list[Dataset], makers: list[str], n_splits: int) -> Iterator[Key]:
    for split in range(n_splits):
        for table in tables:
            for maker in makers:
                if (maker != "cqr" or table.task == "regression") and (maker != "times" or split == 0):
                    yield table.name, split, maker


def _read(store: Path) -> dict[Key, Outcome | Times]:
    lines = map(json.loads, store.read_text().splitlines()) if store.exists() else ()
    return {(one["table"], one["split"], one["maker"]): _made(one["maker"], one["outcome"]) for one in lines}


def _made(maker: str, numbers: Mapping[str, Any]) -> Outcome | Times:
    return Times(**numbers) if maker == "times" else Outcome(**numbers)


def _append(store: Path, key: Key, outcome: Outcome | Times) -> None:
    store.parent.mkdir(parents=True, exist_ok=True)
    entry = dict(zip(("table", "split", "maker"), key, strict=True)) | {"outcome": asdict(outcome)}
    with store.open("a") as file:
        file.write(json.dumps(entry) + "\n")


def _write(found: Mapping[Key, Outcome | Times], given: argparse.Namespace) -> None:
    by_table: dict[str, dict[str, list[Outcome]]] = {}
    times: dict[str, Times] = {}
    for (table, split, maker), outcome in sorted(found.items(), key=lambda one: one[0]):
        if isinstance(outcome, Times):
            times[table] = outcome
        elif split < given.splits:
            by_table.setdefault(table, {}).setdefault(maker, []).append(outcome)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(render(by_table, times, n_splits=given.splits))
