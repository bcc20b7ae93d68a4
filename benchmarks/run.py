"""Carry out one run in a process of its own: fit, predict, score and report.

A separate process has its own peak memory, does not warm up anything for the next run, and may crash without harm.
"""

import argparse
import importlib.metadata
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nae
from benchmarks.datasets import Split, dataset_named, load
from benchmarks.machine import ForeignLoad, describe, peak_memory_mb, processor_seconds
from benchmarks.models import Budget, Fitted, entry_named
from benchmarks.scores import influence, score
from benchmarks.store import Report, RunConfig, Store
from nae._optional import require
from nae.errors import MissingDependencyError

__all__ = ["execute", "main", "measure", "own_version"]

N_PREDICTIONS = 3
MEASURED_ROWS = 20_000
"""Largest number of test rows on which additivity is measured."""


def execute(config: RunConfig, store: Store, *, limit_seconds: float | None = None) -> Report:
    """Carry out a run in a new process, and keep its report whether it succeeds or fails.

    The starting process should be small, because the peak memory of a child starts at its parent's size.
    """
    store.begin(config)
    command = [sys.executable, "-m", "benchmarks.run", str(store.root), config.suite, config.dataset, config.model]
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(config.threads))
    reason = ""
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=limit_seconds, check=False
        )
        if ended.returncode != 0:
            last = ended.stderr.strip().splitlines()[-1:] or ["no message"]
            reason = f"ended with status {ended.returncode}: {last[0][:300]}"
    except subprocess.TimeoutExpired:
        reason = f"took more than {limit_seconds:.0f} s"
    if reason:
        store.finish(config, Report(config.dataset, config.model, "failed", reason, threads=config.threads))
    return Report.loads((store.folder(config) / "report.json").read_text())


def measure(config: RunConfig, split: Split) -> tuple[Report, NDArray[np.float32] | None]:
    """Fit and predict in this process. Return the report, and the influence of every test row on the error."""
    entry = entry_named(config.model)
    blank = Report(config.dataset, config.model, "unavailable", threads=config.threads, load_average=os.getloadavg()[0])
    try:
        for module in entry.model.modules:
            require(module, extra="bench")
    except MissingDependencyError as error:
        return replace(blank, reason=str(error)), None
    budget = Budget(threads=config.threads, seed=config.seed, n_trees=config.n_trees, device=config.device)
    others, memory_before = ForeignLoad(), peak_memory_mb()
    started, spent = time.perf_counter(), processor_seconds()
    fitted = entry.model.fit(split, budget)
    seconds, spent = time.perf_counter() - started, processor_seconds() - spent
    foreign_load = others.since(seconds)
    predicted, predict_seconds = _predict(fitted, split)
    report = replace(
        blank,
        outcome="done",
        fit_seconds=seconds,
        fit_processor_seconds=spent,
        predict_seconds=predict_seconds,
        peak_memory_mb=peak_memory_mb(),
        memory_before_mb=memory_before,
        n_train=len(split.train) + len(split.validation),
        n_test=len(split.test),
        n_features=split.test.X.shape[1],
        foreign_load=foreign_load,
        machine=describe(config.device),
        versions=_versions(entry.model.modules),
    )
    found = _with_additivity(score(report, split, predicted), fitted, split)
    return found, influence(split, predicted)


def main(arguments: list[str] | None = None) -> None:
    """Carry out the run whose configuration is in a folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("suite")
    parser.add_argument("dataset")
    parser.add_argument("model")
    given = parser.parse_args(arguments)
    store = Store(given.store)
    folder = store.folder(RunConfig(given.suite, given.dataset, given.model))
    config = RunConfig.loads((folder / "config.toml").read_text())
    report, influences = measure(config, load(dataset_named(config.dataset), seed=config.split))
    store.finish(config, report, influences)


def _predict(fitted: Fitted, split: Split) -> tuple[NDArray[Any], float]:
    seconds = []
    for _ in range(N_PREDICTIONS):
        started = time.perf_counter()
        predicted = fitted.predict(split.test.X)
        seconds.append(time.perf_counter() - started)
    return np.asarray(predicted), float(np.median(seconds))


def _with_additivity(report: Report, fitted: Fitted, split: Split) -> Report:
    from nae import metrics
    from nae.tables import TableModel

    table = getattr(fitted.estimator, "model_", None)
    if not isinstance(table, TableModel):
        return report
    cells = table.cells(split.test.X.head(MEASURED_ROWS))
    return replace(
        report,
        additivity=float(metrics.additivity(table, cells)),
        interaction_share=float(metrics.interaction_share(table, cells)),
        cancellation=float(metrics.cancellation(table, cells)),
    )


def _versions(modules: tuple[str, ...]) -> dict[str, str]:
    packages = importlib.metadata.packages_distributions()
    names = [packages.get(module.partition(".")[0], [""])[0] for module in (*modules, "numpy", "sklearn")]
    found = {name: importlib.metadata.version(name) for name in sorted({name for name in names if name})}
    return found | {"nae": own_version()}


def own_version() -> str:
    """Return our version with the commit of this checkout, because models change between versions."""
    return f"{nae.__version__} {_commit()}".strip()


def _commit() -> str:
    """Return the commit of this checkout; empty if this is not a checkout."""
    root = Path(__file__).parents[1]
    try:
        command = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:  # git is not installed
        return ""
    return ended.stdout.strip()


if __name__ == "__main__":
    main()
