"""Compare other settings with the defaults, on several splits and seeds. The defaults were chosen this way.

Errors are those on validation rows: a fifth of the training rows of a split, which no fit has seen. The test rows that
the suite reports are never looked at.

A setting is a list of parameters of the estimators, such as ``n_experts=16,hidden_dim=64``. Names that begin with
``training.`` change the training configuration, such as ``training.cooldown=0.5``.
"""

import argparse
import ast
import math
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import DATASETS, Part, Split, dataset_named, load
from benchmarks.models.protocol import Fitted
from benchmarks.run import own_version
from benchmarks.scores import score
from benchmarks.store import Report
from benchmarks.tables import markdown_table
from benchmarks.trials import Result, fit_new
from nae.errors import ConfigError, did_you_mean

__all__ = ["Trial", "add_command", "changes", "read_setting", "render_changes"]

NAME = "defaults"
TRAINING = "training."
N_QUICK = 10  # this many tables take a minute or two each; others run if they are named


@dataclass(frozen=True)
class Trial:
    """One fit, with separate seeds for the split and for the fit."""

    dataset: str
    split: int
    seed: int
    setting: str
    device: str
    version: str
    """The version of this library, because other versions have other defaults."""


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a command line."""
    parser = commands.add_parser(NAME, help="other settings against the defaults", description=__doc__)
    parser.add_argument("settings", nargs="+", help="n_experts=16,hidden_dim=64 training.cooldown=0.5 …")
    parser.add_argument("--datasets", help="comma-separated names; default: the ten smallest")
    parser.add_argument("--splits", type=int, default=2, help="number of splits; the first is that of the suite")
    parser.add_argument("--seeds", type=int, default=2, help="number of fits per split")
    parser.add_argument("--device", default="cpu", help="'cpu' or 'cuda'")
    parser.add_argument("--workers", type=int, default=1, help="number of parallel fits, each with one thread")
    parser.add_argument("--store", type=Path, default=Path("runs/defaults.jsonl"), help="file of finished fits")
    parser.set_defaults(run=run_defaults)


def run_defaults(given: argparse.Namespace) -> None:
    """Fit what has not been fitted, and print the table."""
    names = given.datasets.split(",") if given.datasets else [one.name for one in DATASETS[:N_QUICK]]
    settings = ["", *given.settings]
    for text in settings:
        read_setting(text)  # so that errors come first
    version = own_version()
    asked = [
        Trial(dataset_named(name).name, split, seed, text, given.device, version)
        for split, seed, name, text in product(range(given.splits), range(given.seeds), names, settings)
    ]
    known = fit_new(asked, fit, kind=Trial, store=given.store, workers=given.workers, show=_line)
    print(render_changes([known[trial] for trial in asked]))


def _line(result: Result[Trial]) -> str:
    where = f"{result.trial.dataset} {result.trial.split}/{result.trial.seed}"
    return f"{where:<24} {result.error:12.5g}  {result.seconds:6.1f} s  {result.trial.setting}"


def fit(trial: Trial) -> Result[Trial]:
    """Fit once, with one thread."""
    from nae import NAEClassifier, NAERegressor
    from nae.estimators.fitting import Run, fit_model
    from nae.estimators.prepared import Prepared

    parameters, training = read_setting(trial.setting)
    split = hold_out(load(dataset_named(trial.dataset), seed=trial.split), seed=trial.split)
    kind = NAERegressor if split.dataset.task == "regression" else NAEClassifier

    def train(prepared: Prepared, run: Run) -> Any:
        return fit_model(prepared.with_training(replace(prepared.settings.training, **training)), run)

    rows = split.train
    started = time.process_time()
    model = kind(n_jobs=1, random_state=trial.seed, device=trial.device, **parameters)
    model.fit_with(train, rows.X, rows.y)
    seconds = time.process_time() - started
    predicted = Fitted(model, split.dataset.task, lambda X: X).predict(split.test.X)
    report = score(Report(trial.dataset, trial.setting, "done"), split, predicted)
    metric = split.dataset.metric
    value = report.score(metric.name)
    assert value is not None  # not None, because it has just been scored
    return Result(trial, metric.error(value), seconds)


def hold_out(whole: Split, *, seed: int) -> Split:
    """Return a split of the training rows alone, whose test part is a fifth of them."""
    from sklearn.model_selection import train_test_split

    rows = whole.all_train
    strata = None if whole.dataset.task == "regression" else rows.y
    kept, held_out = train_test_split(np.arange(len(rows.y)), test_size=0.2, random_state=seed, stratify=strata)
    train, test = (Part(rows.X.iloc[part].reset_index(drop=True), rows.y[part]) for part in (kept, held_out))
    return replace(whole, train=train, validation=Part(train.X.head(0), train.y[:0]), test=test)


def changes(results: Iterable[Result[Trial]], *, of: str = "error") -> dict[str, dict[str, list[float]]]:
    """Return by how many percent every fit differs from that of the defaults, by setting and table.

    ``of`` is what is compared: 'error' or 'seconds'.
    """
    by_trial: dict[Trial, float] = {result.trial: getattr(result, of) for result in results}
    found: dict[str, dict[str, list[float]]] = {}
    for trial, error in by_trial.items():
        default = by_trial.get(replace(trial, setting=""))
        if trial.setting and default:
            found.setdefault(trial.setting, {}).setdefault(trial.dataset, []).append(100 * (error / default - 1))
    return found


def render_changes(results: list[Result[Trial]]) -> str:
    """Return a table of errors in percent of the defaults' error, with standard errors. Lower is better.

    The last column is the median over the tables of the processor seconds, as a multiple of the defaults'.
    """
    found, seconds = changes(results), changes(results, of="seconds")
    names = list(dict.fromkeys(result.trial.dataset for result in results))
    rows = []
    for text, by_table in found.items():
        means = [statistics.mean(by_table[name]) for name in names if name in by_table]
        cells = [_cell(by_table.get(name, [])) for name in names]
        factors = [statistics.mean(1 + one / 100 for one in own) for own in seconds[text].values()]
        rows.append([f"`{text}`", *cells, f"{statistics.mean(means):+.2f}", f"{statistics.median(factors):.2f}"])
    titles = [dataset_named(name).label for name in names]
    return markdown_table(["error, % of the defaults'", *titles, "mean", "seconds, x the defaults'"], rows)


def _cell(values: list[float]) -> str:
    if not values:
        return "–"
    mean = f"{statistics.mean(values):+.1f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values) / math.sqrt(len(values)):.1f}"


def read_setting(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of the estimator and those of its training; empty for the defaults."""
    found = dict(_assignment(part) for part in text.split(",") if part)
    training = {name.removeprefix(TRAINING): found.pop(name) for name in list(found) if name.startswith(TRAINING)}
    return found, training


def _assignment(part: str) -> tuple[str, Any]:
    from nae import NAERegressor
    from nae.training import TrainingConfig

    name, _, value = part.partition("=")
    known = [*NAERegressor().get_params(), *(f"{TRAINING}{each.name}" for each in fields(TrainingConfig))]
    if name not in known:
        raise ConfigError(f"A setting must name a parameter; {name!r} is not one.{did_you_mean(name, known)}")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value
