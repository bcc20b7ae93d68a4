"""Time fits and predictions on Housing, as ratios of other models to ours in one run.

Ratios of one run are more meaningful than seconds, because all models use the same processors at nearly the same time.
The page also says how long fits take while other processes keep all processors busy, and with other numbers of threads.
"""

import argparse
import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from benchmarks.busy import busy
from benchmarks.datasets import folder_of_tables
from benchmarks.machine import describe
from benchmarks.models import OURS, entry_named
from benchmarks.run import execute
from benchmarks.store import Report, RunConfig, Store
from benchmarks.tables import markdown_table

__all__ = ["add_command", "render_busy", "render_speed", "render_threads", "run_speed"]

NAME = "speed"
DATASET = "housing"
BY_TORCH = "nae-torch"
PEERS = (BY_TORCH, "lightgbm", "xgboost", "catboost", "ebm-additive", "ebm")
IN_COMPANY = (OURS, "xgboost", "lightgbm", BY_TORCH)
MOST_SECONDS = 840.0
"""A fit in company that takes longer is given up, before the company ends by itself."""


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a command line."""
    parser = commands.add_parser(NAME, help="fit and predict on Housing as ratios", description=__doc__)
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count(), help="number of threads of every model; default: all processors"
    )
    parser.add_argument("--models", default=",".join((OURS, *PEERS)), help="comma-separated names")
    parser.add_argument("--busy", default=",".join(IN_COMPANY), help="models that are also fitted on a busy machine")
    parser.add_argument("--store", type=Path, default=Path("runs"), help="folder of runs")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/speed.md"), help="the page to write")
    parser.set_defaults(run=run_speed)


def run_speed(given: argparse.Namespace) -> None:
    """Run every model again, one after another, and write the page."""
    folder_of_tables()  # raises an error now rather than a page of failures
    store = Store(given.store)
    names, in_company = (text.split(",") if text else [] for text in (given.models, given.busy))
    reports = [_fit(name, given.threads, store) for name in names]
    n_processors = os.cpu_count() or 1
    company = [_fit(name, given.threads, store, n_busy=n_processors) for name in in_company]
    pairs = [(_named(each.model, reports), each) for each in company]
    by_threads = [_fit(OURS, n, store) for n in _powers(n_processors)]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(render_speed(reports) + render_busy(pairs) + render_threads(by_threads))
    print(f"wrote {given.out}")


def _fit(name: str, n_threads: int, store: Store, *, n_busy: int = 0) -> Report:
    config = RunConfig(NAME, DATASET, entry_named(name).name, threads=n_threads)
    with busy(n_busy) if n_busy else nullcontext():
        found = execute(config, store, limit_seconds=MOST_SECONDS if n_busy else None)
    company = f" while {n_busy} others compute" if n_busy else ""
    print(f"{name:<13} {found.fit_seconds or 0:7.1f} s  {n_threads} threads{company} {found.reason}", flush=True)
    return found


def _named(name: str, reports: Sequence[Report]) -> Report:
    blank = Report(DATASET, name, "unavailable", "it was not fitted alone")
    return next((report for report in reports if report.model == name), blank)


def _powers(most: int) -> list[int]:
    """Return 1, 2, 4 and so on, up to the number of processors."""
    return [2**i for i in range(most.bit_length()) if 2**i <= most]


def render_speed(reports: list[Report]) -> str:
    """Return the page: seconds, and ratios to our model."""
    ours = next((report for report in reports if report.model == OURS and report.outcome == "done"), None)
    rows = [_row(report, ours) for report in reports]
    header = ["", "RMSE", "fit, s", "fit / ours", "processor, s", "predict, µs per row", "predict / ours"]
    header += ["peak memory, MB", "of these for the fit"]
    done = [report for report in reports if report.outcome == "done"]
    versions = {name: version for report in done for name, version in report.versions.items()}
    threads = reports[0].threads if reports else 0
    rows_used = f"{done[0].n_train:,} rows to fit and {done[0].n_test:,} to predict" if done else "nothing finished"
    lines = [
        "# Speed\n",
        f"Housing, {rows_used}; one run after another, each in its own process.",
        f"{threads} threads on {describe()}.",
        "Made by `python -m benchmarks speed`. Above 1, the other takes longer than ours.",
        ", ".join(f"{name} {version}" for name, version in sorted(versions.items())) + ".",
        *_disturbance(done),
        "",
        markdown_table(header, rows),
    ]
    return "\n".join(lines) + "\n"


def render_busy(pairs: list[tuple[Report, Report]]) -> str:
    """Return the section on a busy machine, from the reports of every model alone and in company."""
    if not pairs:
        return ""
    rows = []
    for alone, company in pairs:
        found = [f"{each.fit_seconds:.1f}" if each.fit_seconds else each.reason for each in (alone, company)]
        rows.append([entry_named(company.model).label, *found, _ratio(company.fit_seconds, alone.fit_seconds)])
    text = (
        "\n## On a busy machine\n\n"
        "The same fit while as many processes as there are processors compute in a loop. A fair share is a factor "
        "of 2.\n\n"
    )
    return text + markdown_table(["", "alone, s", "in company, s", "factor"], rows) + "\n"


def render_threads(reports: list[Report]) -> str:
    """Return the section on numbers of threads."""
    done = [report for report in reports if report.fit_seconds is not None]
    if len(done) < 2:
        return ""
    first = done[0].fit_seconds
    rows = [
        [str(each.threads), f"{each.fit_seconds:.1f}", _ratio(first, each.fit_seconds), f"{each.rmse:.10g}"]
        for each in done
    ]
    return "\n## Threads\n\n" + markdown_table(["threads", "fit, s", "times as fast as one", "RMSE"], rows) + "\n"


def _disturbance(done: list[Report]) -> list[str]:
    busy_ones = [report.foreign_load or 0.0 for report in done if report.is_loaded]
    if not busy_ones:
        return []
    most, count = max(busy_ones), len(busy_ones)
    return [f"**Others used up to {most:.0%} of the machine during {count} of the fits: measure again.**"]


def _row(report: Report, ours: Report | None) -> list[str]:
    label = entry_named(report.model).label
    if report.fit_seconds is None or report.predict_seconds is None or report.rmse is None:
        return [f"{label}: {report.reason}", *["–"] * 8]
    base = ours or replace(report, fit_seconds=None, predict_seconds=None)
    peak, before = report.peak_memory_mb or 0.0, report.memory_before_mb
    return [
        label,
        f"{report.rmse:.4f}",
        f"{report.fit_seconds:.1f}",
        _ratio(report.fit_seconds, base.fit_seconds),
        "–" if report.fit_processor_seconds is None else f"{report.fit_processor_seconds:.1f}",
        f"{1e6 * report.predict_seconds / max(report.n_test, 1):.2f}",
        _ratio(report.predict_seconds, base.predict_seconds),
        f"{peak:,.0f}",
        "–" if before is None else f"{peak - before:,.0f}",
    ]


def _ratio(value: float | None, base: float | None) -> str:
    return "–" if not base or value is None else f"{value / base:.2f}"
