"""Small tables: 25 tables of 40 to 500 rows against other models, and a series of sizes from 20 to 600 rows."""

import argparse
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import folder_of_tables
from benchmarks.models import Budget
from benchmarks.run import own_version
from benchmarks.small.models import MODELS, OURS
from benchmarks.small.page import render
from benchmarks.small.panel import CASES, PANEL, SIZES, draw
from benchmarks.trials import Result, fit_new
from nae.errors import ConfigError, did_you_mean

__all__ = ["Trial", "add_command", "loss_of", "plan"]

NAME = "small"


@dataclass(frozen=True)
class Trial:
    """One fit of one draw of the rows."""

    case: str
    draw: int
    model: str
    version: str = ""
    """The version of this library; empty for other models."""


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a command line."""
    parser = commands.add_parser(NAME, help=__doc__, description=__doc__)
    parser.add_argument("--models", help=f"comma-separated names of {', '.join(MODELS)}; default: all")
    parser.add_argument("--draws", type=int, default=3, help="of the rows of every table")
    parser.add_argument("--workers", type=int, default=1, help="number of parallel fits, each with one thread")
    parser.add_argument(
        "--store", type=Path, default=Path("runs/small.jsonl"), help="file of results; fits in it are not repeated"
    )
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/small.md"), help="the page to write")
    parser.set_defaults(run=run_small)


def run_small(given: argparse.Namespace) -> None:
    """Do the missing fits, and write the page."""
    names = given.models.split(",") if given.models else list(MODELS)
    for name in names:
        if name not in MODELS:
            raise ConfigError(f"A model must be one of {list(MODELS)}; got {name!r}.{did_you_mean(name, MODELS)}")
    folder_of_tables()  # raises an error now rather than one per table
    asked = list(plan(names, given.draws))
    known = fit_new(asked, fit, kind=Trial, store=given.store, workers=given.workers, show=_line)
    losses: dict[str, dict[str, dict[int, float]]] = {}
    for trial in known:  # for our model, the latest runs
        losses.setdefault(trial.model, {}).setdefault(trial.case, {})[trial.draw] = known[trial].error
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(render(losses))
    print(f"wrote {given.out}")


def plan(names: Iterable[str], n_draws: int) -> Iterator[Trial]:
    """Yield all models on the panel, then our model on one size after the other."""
    version = own_version()
    for case, seed, name in product(PANEL, range(n_draws), names):
        yield Trial(case.label, seed, name, version if name == OURS else "")
    if OURS in names:
        for case, seed in product(SIZES, range(n_draws)):
            yield Trial(case.label, seed, OURS, version)


def _line(result: Result[Trial]) -> str:
    one = result.trial
    return f"{one.case:<28} {one.draw} {one.model:<9} {result.error:10.4g} {result.seconds:6.1f} s"


def fit(trial: Trial) -> Result[Trial]:
    """Fit once, with one thread."""
    case = CASES[trial.case]
    split = draw(case, trial.draw)
    started = time.perf_counter()
    fitted = MODELS[trial.model][1].fit(split, Budget(threads=1))
    seconds = time.perf_counter() - started
    return Result(trial, loss_of(split.test.y, fitted.predict(split.test.X), task=case.task), seconds)


def loss_of(y: NDArray[Any], predicted: NDArray[Any], *, task: str) -> float:
    """Return the RMSE of numbers or the log loss of probabilities."""
    if task == "regression":
        return float(np.sqrt(np.mean((predicted - y) ** 2)))
    shares = np.clip(predicted, 1e-15, 1.0)
    chosen = shares[np.arange(len(y)), y] / shares.sum(axis=1)
    return float(-np.mean(np.log(chosen)))
