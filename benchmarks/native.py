"""Compare the default engine with the recorded page of the suite: processor seconds, scores and mean ranks.

Our model is fitted anew on every table, on several splits of the ten smallest. XGBoost is fitted on the first split, so
that its seconds are those of the same machine. The scores of the other models, and our figures with steps by torch, are
those of ``benchmarks/results/suite-torch.md``.
"""

import argparse
import os
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.datasets import DATASETS, Dataset, dataset_named, folder_of_tables
from benchmarks.machine import describe
from benchmarks.models import OURS, entry_named
from benchmarks.recorded import Figures, read_section
from benchmarks.run import execute
from benchmarks.store import Report, RunConfig, Store
from benchmarks.suite import plan
from benchmarks.tables import four_digits, markdown_table, title

__all__ = ["add_command", "mean_ranks", "render_native", "run_native"]

NAME = "native"
N_SEVERAL = 10
"""This many tables, the smallest, have several splits."""
PEER = "xgboost"
_ABOUT = """Scores are means over the splits whose number stands in brackets. Those of torch and of the peers are
recorded in [suite-torch.md](suite-torch.md), on the same rows.
"""


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a command line."""
    parser = commands.add_parser(NAME, help="the default engine beside the recorded suite", description=__doc__)
    parser.add_argument("--datasets", help="comma-separated names; default: all")
    parser.add_argument("--splits", type=int, default=5, help="splits of the ten smallest tables")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads; default: all processors")
    parser.add_argument("--store", type=Path, default=Path("runs/native"), help="folder of runs")
    parser.add_argument("--page", type=Path, default=Path("benchmarks/results/suite-torch.md"), help="recorded page")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/native.md"), help="the page to write")
    parser.set_defaults(run=run_native)


def run_native(given: argparse.Namespace) -> None:
    """Carry out the missing runs and write the page after each."""
    folder_of_tables()  # raises an error now rather than a page of failures
    store, names = Store(given.store), given.datasets
    asked = [*plan(names, f"{OURS},{PEER}", threads=given.threads)]
    several = {one.name for one in DATASETS[:N_SEVERAL]}
    further = plan(names, OURS, threads=given.threads, n_splits=given.splits)
    asked += [config for config in further if config.split and config.dataset in several]
    for config in asked:
        if store.done(config, machine=describe()) is None:
            print(_line(config, execute(config, store)), flush=True)
            given.out.write_text(render_native(_reports(store, asked), given.page))
    given.out.write_text(render_native(_reports(store, asked), given.page))
    print(f"wrote {given.out}")


def _reports(store: Store, asked: Iterable[RunConfig]) -> list[tuple[int, Report]]:
    found = [(config.split, store.done(config, machine=describe())) for config in asked]
    return [(split, report) for split, report in found if report is not None]


def _line(config: RunConfig, report: Report) -> str:
    score = report.score(dataset_named(config.dataset).metric.name)
    return (
        f"{config.dataset:>18} {config.model:<8} split {config.split}  {score}  {report.fit_seconds} s {report.reason}"
    )


def render_native(reports: Sequence[tuple[int, Report]], page: Path) -> str:
    """Return the page from our new reports, with their split, and the recorded page."""
    ours: dict[str, dict[int, Report]] = {}
    peer: dict[str, Report] = {}
    for split, report in reports:
        if report.model == OURS:
            ours.setdefault(report.dataset, {})[split] = report
        elif split == 0:
            peer[report.dataset] = report
    before, known = read_section(page, "Fit, processor seconds"), _known_scores(page)
    label = entry_named(OURS).label
    rows, ratios, both, scores = [], [], [], {}
    for dataset in (one for one in DATASETS if one.name in ours):
        own, first = ours[dataset.name], ours[dataset.name].get(0)
        found = [score for each in own.values() if (score := each.score(dataset.metric.name)) is not None]
        if first is None or not first.fit_processor_seconds or first.fit_seconds is None or not found:
            continue
        scores[dataset.label] = statistics.mean(found)
        old = before.get(dataset.label, {}).get(label)
        by_peer = peer[dataset.name].fit_seconds if dataset.name in peer else None
        both += [(old, first.fit_processor_seconds)] if old else []
        ratios += [first.fit_seconds / by_peer] if by_peer else []
        rows.append(
            [
                title(dataset),
                four_digits(known[dataset.label][label]),
                f"{four_digits(scores[dataset.label])} ({len(found)})",
                "–" if old is None else f"{old:.1f}",
                f"{first.fit_processor_seconds:.1f}",
                "–" if old is None else f"{old / first.fit_processor_seconds:.1f}",
                f"{first.fit_seconds:.1f}",
                "–" if by_peer is None else f"{by_peer:.1f}",
                "–" if by_peer is None else f"{first.fit_seconds / by_peer:.1f}",
                "–" if first.memory_before_mb is None else f"{first.peak_memory_mb - first.memory_before_mb:,.0f}",
            ]
        )
    header = ["", "score by torch", "score now (splits)", "processor s by torch", "now", "ratio", "s now", "s XGBoost"]
    header += ["ratio to XGBoost", "memory of the fit, MB"]
    ranks, median = mean_ranks(known, scores), statistics.median([old / now for old, now in both] or [0])
    total, spent = sum(old for old, _ in both), sum(now for _, now in both)
    lines = [
        "# The default engine beside torch\n",
        f"Made by `python -m benchmarks native` on {describe()}; {_load(reports)}",
        _ABOUT,
        markdown_table(header, rows),
        f"\nProcessor seconds of the tables that both have fitted: {spent:,.0f}; by torch {total:,.0f}, which is",
        f"{total / spent if both else 0:.1f} times as many; the median table {median:.1f} times.",
        f"Seconds beside XGBoost, median over the tables: {statistics.median(ratios or [0]):.2f}.\n",
        "Mean ranks over the tables on which all have run: "
        + ", ".join(f"{name} {rank:.2f}" for name, rank in sorted(ranks.items(), key=lambda one: one[1]))
        + ".",
    ]
    return "\n".join(lines) + "\n"


def _load(reports: Sequence[tuple[int, Report]]) -> str:
    busy = [report for _, report in reports if report.is_loaded]
    if not busy:
        return "no other process was busy."
    return f"**during {len(busy)} of {len(reports)} fits other processes were busy.**"


def _known_scores(page: Path) -> Figures:
    """Return the recorded scores: means over splits where there are several, else those of the first split."""
    return {**read_section(page, "Scores"), **read_section(page, "Several splits")}


def mean_ranks(known: Figures, ours: dict[str, float]) -> dict[str, float]:
    """Return the mean rank of every ranked model, with our scores in place of the recorded ones, and as they rounded.

    Models of one score share a rank, as on the recorded page.
    """
    by_label: dict[str, Dataset] = {dataset.label: dataset for dataset in DATASETS}
    peers = [name for name in known[next(iter(known))] if name != entry_named(OURS).label]
    tables = [label for label in ours if all(name in known[label] for name in peers)]
    ranks: dict[str, list[float]] = {}
    for label in tables:
        metric = by_label[label].metric
        own = float(four_digits(ours[label]).replace(",", ""))
        figures = {"NAE": own, **{name: known[label][name] for name in peers}}
        errors = {name: metric.error(value) for name, value in figures.items()}
        for name, error in errors.items():
            values = list(errors.values())
            rank = 1 + sum(other < error for other in values) + (values.count(error) - 1) / 2
            ranks.setdefault(name, []).append(rank)
    return {name: float(np.mean(values)) for name, values in ranks.items()}
