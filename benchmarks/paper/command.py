"""Run experiments of the paper, and write their pages."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.durations import read_duration
from benchmarks.paper.pages import Places, gather, write_page, write_pages
from benchmarks.paper.pool import Limits, carry_out_all, carry_out_here
from benchmarks.paper.registry import EXPERIMENTS, chosen, laptop_runs, ordered, seconds_of, smoke_runs
from benchmarks.paper.runs import Run
from benchmarks.paper.search import draw_trials
from benchmarks.paper.store import RunStore
from nae._words import counted

__all__ = ["add_command", "reproduce", "run_paper"]


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a command line."""
    names = ", ".join(experiment.name for experiment in EXPERIMENTS)
    description = f"{__doc__} Experiments: {names}; or all."
    parser = commands.add_parser("paper", help="reproduce the paper's tables and figures", description=description)
    parser.add_argument(
        "names", nargs="+", help="experiments, or 'all'; before them 'run' to run only, or 'pages' or 'list' alone"
    )
    parser.add_argument("--device", default="cpu", help="'cpu' or 'cuda'")
    parser.add_argument("--workers", type=int, default=1, help="runs at the same time; 0 runs in this process")
    parser.add_argument("--time-budget", help="start no further run after this time: 90s, 9m, 2h")
    parser.add_argument("--grace", default="30s", help="additional time for runs that have started")
    parser.add_argument("--run-limit", default="30m", help="a run that takes longer has failed")
    parser.add_argument("--trials", type=int, default=0, help="number of trials of the search")
    parser.add_argument("--models", help="runs of these models only, with commas between them: paper, default, ebm, …")
    parser.add_argument("--tables", help="runs on these tables only, with commas between them: housing, income, …")
    parser.add_argument("--laptop", action="store_true", help="leave out what takes long without a GPU")
    parser.add_argument("--smoke", action="store_true", help="few generated rows, few epochs: does it work at all")
    parser.add_argument("--store", type=Path, default=Path("runs"), help="folder of runs")
    parser.add_argument("--out", type=Path, default=Places().folder, help="folder of tables and pictures")
    parser.add_argument("--page", type=Path, default=Places().page, help="the page to write")
    parser.set_defaults(run=run_paper)


@dataclass(frozen=True)
class Ask:
    """The request: which experiments, and whether to run them, to write their pages, or both."""

    names: tuple[str, ...]
    has_runs: bool = True
    has_pages: bool = True


def run_paper(given: argparse.Namespace) -> None:
    """Carry out the command line."""
    store, places = RunStore(given.store), Places(given.out, given.page)
    ask = _read(given.names)
    if given.trials and not given.smoke:
        draw_trials(given.trials)
    if ask.has_runs or ask.names == ("list",):
        pending = _pending(ask, store, given)
        _print_plan(pending)
        if ask.names == ("list",):
            return
        limits = Limits(
            read_duration(given.time_budget) if given.time_budget else float("inf"),
            read_duration(given.grace),
            read_duration(given.run_limit),
        )
        if given.workers:
            carry_out_all(pending, store, device=given.device, n_workers=given.workers, limits=limits)
        else:
            carry_out_here(pending, store, device=given.device)
    if ask.has_pages:
        show(ask.names, store, places, is_smoke=given.smoke)


def reproduce(names: Sequence[str], store: RunStore, places: Places, *, is_smoke: bool = False) -> None:
    """Run the unfinished runs of some experiments in this process, and write their pages."""
    runs = smoke_runs(chosen(names)) if is_smoke else ordered(chosen(names))
    carry_out_here([run for run in runs if not store.is_done(run)], store, device="cpu")
    show(names, store, places, is_smoke=is_smoke)


def show(names: Sequence[str], store: RunStore, places: Places, *, is_smoke: bool = False) -> None:
    """Write the pages of some experiments from the finished runs."""
    experiments = chosen(names)
    results = gather(store, places, experiments, is_smoke=is_smoke)
    write_pages(experiments, results, places)
    write_page(EXPERIMENTS, results, places)
    print(f"wrote {places.page} and {counted(len(experiments), 'section')} in {places.folder}")


def _read(names: Sequence[str]) -> Ask:
    if names[0] == "run":
        return Ask(tuple(names[1:]) or ("all",), has_pages=False)
    if names[0] == "pages":
        return Ask(tuple(names[1:]) or ("all",), has_runs=False)
    if names[0] == "list":
        return Ask(("list",), has_runs=False, has_pages=False)
    return Ask(tuple(names))


def _pending(ask: Ask, store: RunStore, given: argparse.Namespace) -> list[Run]:
    experiments = chosen(("all",) if ask.names == ("list",) else ask.names)
    runs = smoke_runs(experiments) if given.smoke else ordered(experiments)
    if given.models:
        runs = [run for run in runs if run.model in given.models.split(",")]
    if given.tables:
        runs = [run for run in runs if run.data in given.tables.split(",")]
    if given.laptop:
        runs = laptop_runs(runs)
    return [run for run in runs if not store.is_done(run)]


def _print_plan(pending: Sequence[Run]) -> None:
    minutes = sum(seconds_of(run) for run in pending) / 60
    print(f"{len(pending)} runs to do, about {minutes:.0f} minutes of a worker", flush=True)
