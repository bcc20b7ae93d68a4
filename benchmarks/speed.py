"""Time fits and predictions on Housing, as ratios of other models to ours in one run.

Ratios of one run are more meaningful than seconds, because all models use the same processors at nearly the same time.
"""

import argparse
import os
from pathlib import Path

from benchmarks.datasets import folder_of_tables
from benchmarks.machine import describe
from benchmarks.models import OURS, entry_named
from benchmarks.run import execute
from benchmarks.store import Report, RunConfig, Store
from benchmarks.tables import markdown_table

__all__ = ["add_command", "render_speed", "run_speed"]

NAME = "speed"
DATASET = "housing"
PEERS = ("lightgbm", "xgboost", "catboost", "ebm-additive", "ebm")


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a command line."""
    parser = commands.add_parser(NAME, help="fit and predict on Housing as ratios", description=__doc__)
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count(), help="number of threads of every model; default: all processors"
    )
    parser.add_argument("--models", default=",".join((OURS, *PEERS)), help="comma-separated names")
    parser.add_argument("--store", type=Path, default=Path("runs"), help="folder of runs")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/speed.md"), help="the page to write")
    parser.set_defaults(run=run_speed)


def run_speed(given: argparse.Namespace) -> None:
    """Run every model again, one after another, and write the page."""
    folder_of_tables()  # raises an error now rather than a page of failures
    store = Store(given.store)
    reports = []
    for name in given.models.split(","):
        config = RunConfig(NAME, DATASET, entry_named(name).name, threads=given.threads)
        reports.append(execute(config, store))
        print(f"{name:<13} {reports[-1].fit_seconds or 0:7.1f} s  {reports[-1].reason}", flush=True)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(render_speed(reports))
    print(f"wrote {given.out}")


def render_speed(reports: list[Report]) -> str:
    """Return the page: seconds, and ratios to our model."""
    ours = next((report for report in reports if report.model == OURS and report.outcome == "done"), None)
    rows = [_row(report, ours) for report in reports]
    header = ["", "RMSE", "fit, s", "fit / ours", "predict, µs per row", "predict / ours", "peak memory, MB"]
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


def _disturbance(done: list[Report]) -> list[str]:
    busy = [report.foreign_load or 0.0 for report in done if report.is_loaded]
    if not busy:
        return []
    return [f"**Others used up to {max(busy):.0%} of the machine during {len(busy)} of the fits: measure again.**"]


def _row(report: Report, ours: Report | None) -> list[str]:
    label = entry_named(report.model).label
    if report.fit_seconds is None or report.predict_seconds is None or report.rmse is None:
        return [f"{label}: {report.reason}", *["–"] * 6]
    return [
        label,
        f"{report.rmse:.4f}",
        f"{report.fit_seconds:.1f}",
        _ratio(report.fit_seconds, ours.fit_seconds if ours else None),
        f"{1e6 * report.predict_seconds / max(report.n_test, 1):.2f}",
        _ratio(report.predict_seconds, ours.predict_seconds if ours else None),
        f"{report.peak_memory_mb or 0:,.0f}",
    ]


def _ratio(value: float, base: float | None) -> str:
    return "–" if not base else f"{value / base:.2f}"
