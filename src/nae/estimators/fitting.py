"""Fitting: train a network on prepared rows, and tabulate it."""

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from nae._processes import count_threads
from nae._typing import BoolArray
from nae.encoding import Cells, Feature, Number
from nae.engines import make_engine
from nae.errors import ConfigError, DataError
from nae.estimators.given import State
from nae.estimators.prepared import Prepared
from nae.explanation.statistics import remember
from nae.links import link_named
from nae.network import START, Network, draw_network
from nae.tables.model import TableModel
from nae.training import History, Job, Loss, train
from nae.training.assemble import Scale, assemble, padded_slots
from nae.training.checkpoint import Checkpoints
from nae.training.data import own_folds
from nae.training.start import fit_start
from nae.training.workers import ALONE, Workers

__all__ = ["Fitted", "Run", "fit_model", "read_threads"]


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit leaves behind."""

    model: TableModel
    history: History
    state: State
    table_error: float


@dataclass(frozen=True, eq=False)
class Run:
    """How training runs, whatever is learned."""

    n_jobs: int | None
    callbacks: Sequence[Any]
    is_verbose: bool
    workers: Workers = ALONE
    checkpoints: Checkpoints | None = None


def fit_model(prepared: Prepared, run: Run) -> Fitted:
    """Train a model on prepared rows. A constant target takes one epoch, whose tables are multiplied by 0.

    Products of matrices take one thread: with another number of threads they would end in other last digits.
    """
    n_threads = read_threads(run.n_jobs)
    with threadpool_limits(1, "blas"):
        return _fit(prepared, run, n_threads)


def read_threads(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``; negative numbers count from all processors, as in joblib."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ConfigError(f"n_jobs must be a whole number but 0, or None; got {n_jobs!r}.")
    if n_jobs is None:
        return count_threads()
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))


def _fit(prepared: Prepared, run: Run, n_threads: int) -> Fitted:
    task, settings, schema = prepared.task, prepared.settings, prepared.schema
    is_constant = not task.scale.spread.any()
    config = replace(settings.training, max_epochs=1) if is_constant else settings.training
    random = np.random.default_rng(prepared.seed)
    network = draw_network(
        settings.network,
        prepared.inputs,
        len(task.outputs),
        random=random,
        dtype=settings.dtype,
        constant=np.array([feature.is_constant for feature in schema.features]),
    )
    if prepared.state is not None:
        network = _with_state(network, prepared.state)
    elif settings.has_start and not is_constant and run.workers.count == 1:
        network = _begin(network, prepared, task.loss, config.n_folds)
    rows, validation = prepared.source, prepared.validation
    job = Job(network, rows, validation, task.loss, config, random, run.workers, n_threads)
    with closing(make_engine(prepared.place, job)) as engine:
        history = train(
            engine,
            config,
            callbacks=run.callbacks,
            is_verbose=run.is_verbose,
            workers=run.workers,
            checkpoints=run.checkpoints,
        )
        network = engine.network
    if is_constant:
        history.stopped = "the target is constant"
    model = _tabulate(network, prepared)
    is_exact = network.encoder.has_exact_tables
    error = 0.0 if is_exact else _table_error(network, model, prepared.cells, task.scale)
    return Fitted(model, history, dict(network.arrays), error)


def _tabulate(network: Network, prepared: Prepared) -> TableModel:
    task = prepared.task
    model = assemble(
        network,
        prepared.schema,
        prepared.cells,
        prepared.weights,
        task.scale,
        link=link_named(task.loss.link),
        outputs=task.outputs,
        classes=task.classes,
        slot_weight=prepared.slot_weight,
        is_warm=prepared.state is not None,
    )
    return remember(model, prepared.cells, prepared.weights, slot_weight=prepared.slot_weight)


def _with_state(network: Network, state: State) -> Network:
    """Return the network with the weights of the fit before."""
    shapes = {name: array.shape for name, array in network.arrays.items()}
    if START in state:
        shapes[START] = (network.n_features * network.n_slots + 1, *network.arrays["intercept"].shape)
    if shapes != {name: array.shape for name, array in state.items()}:
        raise DataError(
            "warm_start needs the shapes of the fit before; a size parameter, the features or the number of rows "
            "(which decides the sizes that are None) changed. Set warm_start=False for a cold start."
        )
    return network.with_arrays({name: state[name] for name in shapes})


def _begin(network: Network, prepared: Prepared, loss: Loss, n_folds: int | None) -> Network:
    """Let training start at a penalised additive model, if there are held-out rows to choose its penalties by."""
    rows, n_members = prepared.source.whole(), network.config.n_members
    if rows is None or (rows.fold is None and prepared.validation is None):
        return network
    own_fold = own_folds(n_members, n_folds)
    return network.begin_at(fit_start(rows, prepared.schema, loss, own_fold=own_fold, n_slots=network.n_slots))


def _table_error(network: Network, model: TableModel, cells: Cells, scale: Scale) -> float:
    """Return the largest difference between network and tables, on the rows and half-way to their next knots."""
    from nae.engines.torch.scores import score_cells  # encoders without exact tables are torch's alone

    longest = padded_slots(model.schema)
    has_between = np.concatenate([_has_between(feature) for feature in model.schema.features])
    worst = 0.0
    for start in range(0, len(cells), 4096):
        part = cells.take(slice(start, start + 4096))
        moved = np.where(has_between[part.slot] & (part.fraction == 0), 0.5, part.fraction)
        for fraction in (part.fraction, moved):
            score = score_cells(network, Cells(longest[part.slot], fraction)) * scale.spread + scale.centre
            table = model.decision_function(Cells(part.slot, fraction)).reshape(score.shape)
            if len(model.classes) > 2:
                score = score - score.mean(axis=1, keepdims=True)
            worst = max(worst, float(np.abs(score - table).max()))
    return worst


def _has_between(feature: Feature) -> BoolArray:
    """Return per slot whether a value can lie between it and the next; none can between levels, or between 3 and 4."""
    found = np.zeros(feature.n_slots, dtype=bool)
    if isinstance(feature, Number) and not feature.is_boolean:
        found[: feature.n_values - 1] = np.diff(feature.knots) > (1.0 if feature.integral else 0.0)
    return found
