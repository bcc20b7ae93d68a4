"""Fitting: train a network on prepared rows, and tabulate it."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nae._typing import Array, BoolArray
from nae.constraints import make_forms, make_roughness
from nae.encoding import Cells, Feature, Number
from nae.engines import make_engine
from nae.errors import DataError
from nae.estimators.constrained import score_of
from nae.estimators.given import State
from nae.estimators.prepared import Prepared
from nae.estimators.threads import one_blas_thread, read_threads
from nae.explanation.statistics import remember
from nae.links import link_named
from nae.network import START, Forms, Network, Roughness, draw_network
from nae.tables.model import TableModel
from nae.tables.working import working_threads
from nae.training import History, Job, train
from nae.training.assemble import Scale, assemble, padded_slots
from nae.training.checkpoint import Checkpoints
from nae.training.clamping import Guards
from nae.training.data import own_folds
from nae.training.ordering import ordered_start
from nae.training.start import fit_start
from nae.training.workers import ALONE, Workers

__all__ = ["Fitted", "Run", "fit_model", "guards_of"]


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit leaves behind."""

    model: TableModel
    history: History
    state: State
    table_error: float
    intercepts: Array
    """The intercept of every member, (O, M), whose mean is that of the model, up to a shift that all have in common."""


@dataclass(frozen=True, eq=False)
class Run:
    """How training runs, whatever is learned."""

    n_jobs: int | None
    callbacks: Sequence[Any]
    is_verbose: bool
    workers: Workers = ALONE
    checkpoints: Checkpoints | None = None


def fit_model(prepared: Prepared, run: Run) -> Fitted:
    """Train a model on prepared rows. A constant target takes one epoch, whose tables are multiplied by 0."""
    n_threads = read_threads(run.n_jobs)
    task, settings = prepared.task, prepared.settings
    is_constant = not task.scale.spread.any()
    config = replace(settings.training, max_epochs=1) if is_constant else settings.training
    random = np.random.default_rng(prepared.seed)
    with one_blas_thread():
        network = _make_network(prepared, random, has_start=not is_constant and run.workers.count == 1)
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
    del engine, job  # an engine holds the rows once more
    if is_constant:
        history.stopped = "the target is constant"
    with one_blas_thread(), working_threads(n_threads):
        model = _tabulate(network, prepared)
    is_exact = network.encoder.has_exact_tables
    error = 0.0 if is_exact else _table_error(network, replace(model, clamps=None), prepared.cells, task.scale)
    apart = network.intercepts - network.intercepts.mean(axis=1, keepdims=True)
    intercepts = model.intercept[:, None] + apart * task.scale.spread[:, None]
    return Fitted(model, history, dict(network.arrays), error, intercepts)


def _make_network(prepared: Prepared, random: np.random.Generator, *, has_start: bool) -> Network:
    """Return the network at the start: random, of the fit before, or beside an additive model of a small table."""
    settings = prepared.settings
    network = draw_network(
        settings.network,
        prepared.inputs,
        len(prepared.task.outputs),
        random=random,
        dtype=settings.dtype,
        constant=np.array([feature.is_constant for feature in prepared.schema.features]),
        forms=_forms(prepared),
        intercept=prepared.task.begin,
        roughness=_roughness(prepared),
    )
    if prepared.state is not None:
        return _with_state(network, prepared.state)
    return _begin(network, prepared) if settings.has_start and has_start else network


def _forms(prepared: Prepared) -> Forms | None:
    """Return the forms under which the network keeps what the fit promises."""
    if prepared.constraints is None:
        return None
    n_slots = prepared.inputs.shape[1]
    score = score_of(prepared.task)
    return make_forms(prepared.constraints, prepared.schema, prepared.settings.network, score, n_slots)


def _roughness(prepared: Prepared) -> Roughness | None:
    if prepared.smoothness is None or not prepared.smoothness.any():
        return None
    return make_roughness(prepared.smoothness, prepared.schema, prepared.inputs.shape[1])


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
        is_ordered=bool(task.loss.levels),
        has_clamps=prepared.settings.has_clamps,
    )
    return remember(model, prepared.cells, prepared.weights, slot_weight=prepared.slot_weight)


def guards_of(prepared: Prepared) -> Guards:
    """Return the promises that clamps must not break."""
    task = prepared.task
    has_classes = len(task.classes) > 2
    return Guards.of(_forms(prepared), len(prepared.schema), is_ordered=bool(task.loss.levels), has_classes=has_classes)


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


def _begin(network: Network, prepared: Prepared) -> Network:
    """Let training start at a penalised additive model, if there are held-out rows to choose its penalties by."""
    rows, n_members = prepared.source.whole(), network.config.n_members
    if rows is None or (rows.fold is None and prepared.validation is None):
        return network
    own_fold = own_folds(n_members, prepared.settings.n_folds)
    loss = prepared.task.loss
    start = fit_start(rows, prepared.schema, loss, own_fold=own_fold, n_slots=network.n_slots)
    if loss.levels:
        start = ordered_start(start, network.n_features)
        network = network.with_arrays({**network.arrays, "intercept": np.zeros_like(network.arrays["intercept"])})
    return network.begin_at(start)


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
