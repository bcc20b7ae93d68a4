"""Fitting: train a network on prepared rows, and tabulate it."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from nae._typing import BoolArray
from nae.encoding import Cells, Feature, Number
from nae.errors import ConfigError, DataError
from nae.estimators.given import State
from nae.estimators.prepared import Prepared
from nae.estimators.threads import one_blas_thread, torch_threads
from nae.explanation.statistics import remember
from nae.links import link_named
from nae.network import Network
from nae.network.cells import RowCells
from nae.tables.model import TableModel
from nae.training import History, Loss, train
from nae.training.assemble import Scale, assemble, padded_slots
from nae.training.checkpoint import Checkpoints
from nae.training.data import own_folds
from nae.training.start import fit_start
from nae.training.workers import ALONE, Workers

__all__ = ["Fitted", "Run", "fit_model"]

_CPU = torch.device("cpu")


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
    """Train a model on prepared rows. A constant target takes one epoch, whose tables are multiplied by 0."""
    task, settings, schema, place = prepared.task, prepared.settings, prepared.schema, prepared.place.device
    is_constant = not task.scale.spread.any()
    config = replace(settings.training, max_epochs=1) if is_constant else settings.training
    with _seeded_torch(prepared.seed, rank=run.workers.rank, n_jobs=run.n_jobs, device=place) as generator:
        network = Network(
            settings.network,
            prepared.inputs,
            len(task.outputs),
            generator=generator,
            dtype=settings.dtype,
            constant=np.array([feature.is_constant for feature in schema.features]),
        )
        if prepared.state is not None:
            _load_state(network, prepared.state)
        elif settings.has_start and not is_constant and run.workers.count == 1:
            _begin(network, prepared, task.loss, config.n_folds)
        network.to(place)
        history = train(
            network,
            prepared.source,
            prepared.validation,
            task.loss,
            config,
            generator=generator,
            callbacks=run.callbacks,
            is_verbose=run.is_verbose,
            workers=run.workers,
            checkpoints=run.checkpoints,
        )
        if is_constant:
            history.stopped = "the target is constant"
        network.to("cpu")
        with one_blas_thread():
            model = _tabulate(network, prepared)
        is_exact = network.encoder.has_exact_tables
        error = 0.0 if is_exact else _table_error(network, model, prepared.cells, task.scale)
    arrays = {name: tensor.numpy() for name, tensor in network.state_dict().items() if name != "inputs"}
    return Fitted(model, history, arrays, error)


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


@contextmanager
def _seeded_torch(seed: int, *, rank: int, n_jobs: int | None, device: torch.device) -> Iterator[torch.Generator]:
    """Seed torch and set its threads for a block, leaving both as they were.

    Workers draw together from the generator. torch's own random numbers are noise, and differ from worker to worker.
    """
    gpus = [device.index or 0] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=gpus), torch_threads(_n_threads(n_jobs)):
        torch.manual_seed((seed + rank * 0x9E3779B1) % 2**32)  # a CPU ignores the upper bits of longer seeds
        yield torch.Generator().manual_seed(seed)


def _n_threads(n_jobs: Any) -> int:
    if n_jobs is None:
        return torch.get_num_threads()
    if not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ConfigError(f"n_jobs must be a whole number but 0, or None; got {n_jobs!r}.")
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))


def _load_state(network: Network, state: State) -> None:
    if "start" in state:
        network.begin_at(torch.as_tensor(state["start"]))
    own = {name: tensor.shape for name, tensor in network.state_dict().items() if name != "inputs"}
    if own != {name: array.shape for name, array in state.items()}:
        raise DataError(
            "warm_start needs the shapes of the fit before; a size parameter, the features or the number of rows "
            "(which decides the sizes that are None) changed. Set warm_start=False for a cold start."
        )
    network.load_state_dict({name: torch.as_tensor(array) for name, array in state.items()}, strict=False)


def _begin(network: Network, prepared: Prepared, loss: Loss, n_folds: int | None) -> None:
    """Let training start at a penalised additive model, if there are held-out rows to choose its penalties by."""
    rows, n_members = prepared.source.whole(), network.config.n_members
    if rows is None or (rows.fold is None and prepared.validation is None):
        return
    own_fold = own_folds(n_members, n_folds)
    n_slots = network.inputs.shape[1]
    with torch_threads(1):
        start = fit_start(rows.to(_CPU), prepared.schema, loss, own_fold=own_fold, n_slots=n_slots)
    network.begin_at(start)


@torch.no_grad()
def _table_error(network: Network, model: TableModel, cells: Cells, scale: Scale) -> float:
    """Return the largest difference between network and tables, on the rows and half-way to their next knots."""
    network.eval()
    longest = padded_slots(model.schema)
    has_between = np.concatenate([_has_between(feature) for feature in model.schema.features])
    worst = 0.0
    dtype = network.intercept.dtype
    for start in range(0, len(cells), 4096):
        part = cells.take(slice(start, start + 4096))
        moved = np.where(has_between[part.slot] & (part.fraction == 0), 0.5, part.fraction)
        for fraction in (part.fraction, moved):
            row = RowCells(torch.as_tensor(longest[part.slot]), torch.as_tensor(fraction, dtype=dtype))
            score = network(row).score.mean(dim=-1).double().numpy() * scale.spread + scale.centre
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
