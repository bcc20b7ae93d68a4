"""Carry out a run in this process: fit, score, measure and describe."""

import time
import warnings
from dataclasses import replace
from functools import cache
from importlib.metadata import packages_distributions, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Part, Split, encode_categories
from benchmarks.models import Budget, Fitted, entry_named
from benchmarks.paper.described import describe, describe_ebm
from benchmarks.paper.runs import PAPER, TABLE, Run, is_ours
from benchmarks.paper.store import Report
from benchmarks.paper.tables import SIMULATIONS, read
from benchmarks.paper.timing import NETWORKS, time_training
from nae import __version__, metrics, presets
from nae._optional import require
from nae.errors import MissingDependencyError, NAEWarning
from nae.tables import TableModel

__all__ = ["carry_out", "parameters_of"]

MEASURED_ROWS = 20_000
# The paper gives no hyper-parameters for its simulations, so those of Housing are used, without dropout.
SIMULATED = {"encoder_dropout": 0.0, "expert_dropout": 0.0}
PRESETS = {"credit_sample5412": "credit"}
LITTLE: dict[str, Any] = {"max_epochs": 2, "hidden_dim": 8, "n_knots": 16, "batch_size": 128}
"""The settings that smoke runs override."""


def carry_out(run: Run, *, device: str = "cpu", threads: int = 1) -> tuple[Report, dict[str, Any] | None]:
    """Fit and measure. Return the report, and the pictures of the model."""
    if run.is_timed and (is_ours(run) or run.model in NETWORKS):
        return time_training(run, device=device), None
    split = read(run)
    if run.model == TABLE:
        return _count(run, split), None
    if run.model == PAPER:
        split = encode_categories(split)  # PAPER: a category is encoded as the mean target of its level
    blank = Report(
        run,
        n_train=len(split.train) + (0 if run.model == PAPER else len(split.validation)),
        n_test=len(split.test),
        n_features=split.test.X.shape[1],
    )
    if is_ours(run):
        return _fit_ours(run, split, blank, device=device)
    return _fit_peer(run, split, blank, device=device, threads=threads)


def _count(run: Run, split: Split) -> Report:
    kinds = [split.train.X[name].dtype.kind for name in split.train.X.columns]
    return Report(
        run,
        n_train=len(split.train) + len(split.validation),
        n_test=len(split.test),
        n_features=len(kinds),
        n_categorical=sum(kind not in "biuf" for kind in kinds),
        n_classes=split.n_classes,
    )


def parameters_of(run: Run) -> dict[str, Any]:
    """Return the parameters of our estimator for a run. Bounds are those of the paper."""
    found: dict[str, Any] = {"bounds": "experts"}
    if run.model == PAPER:
        name = PRESETS.get(run.data, run.data)
        found |= presets.paper(name if name in presets.PAPER else "housing")
        if run.data in SIMULATIONS:
            found |= SIMULATED
    found |= dict(run.settings)
    # Without a setting, all experts are active, even if the preset has fewer active ones.
    if "n_experts" in dict(run.settings) and "n_active" not in dict(run.settings):
        found["n_active"] = None
    if run.is_smoke:
        found |= LITTLE | ({"n_blocks": 1} if run.model == PAPER else {"n_members": 2, "n_ramps": 8})
        found["n_experts"] = min(4, found.get("n_experts") or 4)
        found["n_active"] = None
        found.pop("early_stopping_rounds", None)
    return found


def _fit_ours(run: Run, split: Split, blank: Report, *, device: str) -> tuple[Report, dict[str, Any]]:
    from nae import NAEClassifier, NAERegressor

    estimator = NAERegressor if split.dataset.task == "regression" else NAEClassifier
    model = estimator(**parameters_of(run), random_state=run.seed + 1000 * (run.fold or 0), n_jobs=1, device=device)
    is_cuda = device.startswith("cuda")
    if is_cuda:
        import torch

        torch.cuda.reset_peak_memory_stats()
    rows = split.train if run.model == PAPER else split.all_train
    options = {"eval_set": (split.validation.X, split.validation.y)} if run.model == PAPER else {}
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NAEWarning)  # the measured additivity shows whether the dial missed its target
        model.fit(rows.X, rows.y, **options)
    fitted = Fitted(model, split.dataset.task, lambda X: X)
    report = replace(
        _scored(blank, fitted, split),
        fit_seconds=time.perf_counter() - started,
        best_epoch=model.history_.best_epoch,
        n_epochs=len(model.history_),
        table_error=float(model.table_error_),
        device=torch.cuda.get_device_name() if is_cuda else "CPU",
        device_memory_mb=torch.cuda.max_memory_allocated() / 1e6 if is_cuda else None,
        versions=_versions("torch") if model.model_.training.engine == "torch" else {},
    )
    if is_cuda:
        torch.cuda.empty_cache()
    report = _measured(report, model.model_, split.train.X.head(MEASURED_ROWS))
    return report, describe(model.model_, split) if run.is_first else {}


def _fit_peer(
    run: Run, split: Split, blank: Report, *, device: str, threads: int
) -> tuple[Report, dict[str, Any] | None]:
    entry = entry_named(run.model)
    try:
        for module in entry.model.modules:
            require(module, extra="bench")
    except MissingDependencyError as error:
        return replace(blank, is_done=False, reason=str(error)), None
    budget = Budget(threads=threads, seed=run.seed, device=device)
    if run.is_smoke:
        budget = replace(budget, n_trees=20, max_epochs=1)
    # Timed runs use processor time, which does not depend on other processes.
    clock = time.process_time if run.is_timed else time.perf_counter
    started = clock()
    fitted = entry.model.fit(split, budget)
    seconds = clock() - started
    report = replace(
        _scored(blank, fitted, split),
        fit_seconds=seconds,
        device=device if "torch" in entry.model.modules else "one CPU core" if run.is_timed else "cpu",
        n_parameters=getattr(fitted.estimator, "n_parameters", None),
        versions=_versions(*(module.partition(".")[0] for module in entry.model.modules)),
    )
    is_drawn = run.model in ("ebm", "ebm-additive") and run.is_first
    return report, describe_ebm(fitted.estimator, split) if is_drawn else None


def _scored(report: Report, fitted: Fitted, split: Split) -> Report:
    from sklearn.metrics import roc_auc_score

    is_regression = split.dataset.task == "regression"

    def score(part: Part) -> float:
        found = fitted.predict(part.X)
        return _rmse(found, part.y) if is_regression else float(roc_auc_score(part.y, found[:, 1]))

    test = score(split.test)
    return replace(
        report,
        rmse=test if is_regression else None,
        auc=None if is_regression else test,
        validation=score(split.validation) if report.run.model == PAPER else None,
    )


def _measured(report: Report, model: TableModel, X: Any) -> Report:
    """Return the report with additivity and related metrics."""
    cells = model.cells(X)
    return replace(
        report,
        additivity=float(metrics.additivity(model, cells)),
        additivity_by_value=_additivity_by_value(model, X, floor=1e-6),
        additivity_floored=_additivity_by_value(model, X, floor=1e-2),
        tightness=float(metrics.tightness(model, cells)),
        interaction_share=float(metrics.interaction_share(model, cells)),
        cancellation=float(metrics.cancellation(model, cells)),
    )


def _additivity_by_value(model: TableModel, X: Any, *, floor: float) -> float:
    """Return the paper's ratio, with E[c | x] as the mean over rows of exactly the same value.

    A value that only one row has counts as explained, so this ratio is larger than the binned one. ``floor`` is the δ
    of the ratio as a share of the score's variance. The paper does not state the size of its δ.
    """
    values = model.contributions(X).values.reshape(len(X), model.n_features, -1)[:, :, 0]
    delta = floor * float(values.sum(axis=1).var()) + 1e-300
    ratios = []
    for i, name in enumerate(model.feature_names):
        _, place = np.unique(X[name].to_numpy().astype(str), return_inverse=True)
        means = np.bincount(place, values[:, i]) / np.bincount(place)
        ratios.append((float(means[place].var()) + delta) / (float(values[:, i].var()) + delta))
    return float(np.mean(ratios))


def _rmse(predicted: NDArray[Any], target: NDArray[Any]) -> float:
    return float(np.sqrt(np.mean((predicted - target) ** 2)))


@cache
def _distributions() -> dict[str, list[str]]:
    """Return the packages by their modules. This takes a second."""
    return dict(packages_distributions())


def _versions(*modules: str) -> dict[str, str]:
    known = _distributions()
    names = {known[module][0] for module in modules if module in known and module != "nae"}
    return {name: version(name) for name in sorted(names)} | {"nae": __version__}
