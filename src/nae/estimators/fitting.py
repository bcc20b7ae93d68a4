"""Fitting: encode, split, train, assemble. The same for both estimators; they differ in target and loss."""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import torch

from nae._typing import AnyArray, Array, BoolArray, IntArray
from nae.encoding import Cells, Columns, Feature, Number, Schema, build_schema, infer_kinds
from nae.encoding.columns import category_keys, numbers
from nae.encoding.fingerprint import row_digests
from nae.errors import ConfigError, DataError
from nae.estimators.settings import Settings
from nae.links import link_named
from nae.network import ENCODERS, Network
from nae.network.cells import RowCells
from nae.tables.model import TableModel
from nae.training import History, Loss, RowSource, TrainingRows, train
from nae.training.assemble import Scale, assemble, padded_slots
from nae.training.checkpoint import Checkpoints
from nae.training.data import own_folds
from nae.training.device import Place, choose_place, estimate_work
from nae.training.start import fit_start
from nae.training.workers import ALONE, Workers

__all__ = ["Fitted", "Prepared", "Rows", "Task", "fit_model", "place_fit", "prepare", "to_tensors"]

_LOG = logging.getLogger("nae")
_CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class Rows:
    """A table with targets, weights and offset, as numpy."""

    columns: Columns
    target: AnyArray  # (B, O) numbers or (B,) classes
    weight: Array  # (B,)
    offset: Array | None  # (B, O)
    fold: IntArray | None = None  # (B,), members with this fold hold the row out
    count: Array | None = None  # (B,), how many rows it is, where ``weight`` says what it counts for, too

    def __len__(self) -> int:
        return len(self.weight)

    def take(self, rows: IntArray) -> "Rows":
        offset = None if self.offset is None else self.offset[rows]
        fold = None if self.fold is None else self.fold[rows]
        count = None if self.count is None else self.count[rows]
        return Rows(self.columns.take(rows), self.target[rows], self.weight[rows], offset, fold, count)

    def with_folds(self, fold: IntArray) -> "Rows":
        """Return the same rows, each held out by the members with its fold."""
        return replace(self, fold=fold)

    def repeated(self) -> "Rows":
        """Return the rows as often as their weights say, where these are whole: then two and twice are the same."""
        counts = self.weight if self.count is None else self.count
        if not np.all(counts == np.rint(counts)):
            return self
        found = self.take(np.repeat(np.arange(len(self)), counts.astype(np.int64)))
        weight = found.weight if found.count is None else found.weight / found.count
        return replace(found, weight=np.ones(len(found)) if found.count is None else weight, count=None)

    def digests(self, kinds: Sequence[str], *, key: bytes) -> AnyArray:
        """Return a number per row, equal for rows that hold the same to the model; weights are not looked at."""
        columns = [
            category_keys(array) if kind == "category" else numbers(array, "")
            for array, kind in zip(self.columns.arrays, kinds, strict=True)
        ]
        beside = [self.target] if self.offset is None else [self.target, self.offset]
        return row_digests(*columns, *(part for array in beside for part in np.atleast_2d(array.T)), key=key)

    def count_held_out(self, n_members: int) -> int:
        """Return how many rows are held out by one of the members."""
        return 0 if self.fold is None else int((self.fold < n_members).sum())


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit leaves behind."""

    model: TableModel
    history: History
    state: dict[str, AnyArray]
    table_error: float


@dataclass(frozen=True, eq=False)
class Task:
    """What is predicted: loss, scale of the score, names."""

    loss: Loss
    scale: Scale
    outputs: tuple[str, ...]
    classes: tuple[str, ...] = ()
    class_weight: Array | None = None  # (class,), what learning multiplies the weights of rows with
    positive: str = ""
    """The class that the score of a model of two is to speak for; training learns the second of them."""

    @property
    def is_mirrored(self) -> bool:
        """Whether that is the first class: offsets speak for it, too."""
        return len(self.classes) == 2 and self.positive == self.classes[0]


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows made ready for training: a source of batches, and what the model is to remember of them."""

    schema: Schema
    inputs: Array  # of the network, (feature, slot, width)
    source: RowSource
    validation: TrainingRows | None
    cells: Cells  # of the rows, or of a sample where there are too many to hold
    weights: Array  # of the same rows
    place: Place
    slot_weight: Array | None = None  # of all rows at each slot, where ``cells`` are a sample
    is_split: bool = False  # the validation rows are some of those given to fit

    @property
    def sources(self) -> list[RowSource]:
        """All rows whose totals the model must have: those given to fit, and none of an evaluation set."""
        return [self.source, self.validation] if self.is_split and self.validation is not None else [self.source]


def prepare(
    rows: Rows,
    validation: Rows | None,
    task: Task,
    settings: Settings,
    *,
    feature_types: Any,
    seed: int,
    device: str,
    schema: Schema | None = None,
    is_split: bool = False,
) -> Prepared:
    """Place knots, locate the rows and make tensors of them."""
    if schema is None:
        kinds = infer_kinds(rows.columns, feature_types)
        schema = build_schema(rows.columns, kinds, rows.weight, counts=rows.count, **settings.table_sizes)
    cells = schema.locate(rows.columns)
    inputs = ENCODERS[settings.network.encoder].make_inputs(
        schema, rows.columns, n_ramps=settings.n_ramps, random=np.random.default_rng(seed)
    )
    mean_weight = float(rows.weight.mean())
    place = place_fit(device, settings, inputs, len(rows))
    source = to_tensors(rows, cells, schema, task, settings, mean_weight=mean_weight).to(place.device)
    validation_rows = None
    if validation is not None:
        found = schema.locate(validation.columns)
        validation_rows = to_tensors(validation, found, schema, task, settings, mean_weight=mean_weight)
        validation_rows = validation_rows.to(place.device)
    return Prepared(schema, inputs, source, validation_rows, cells, rows.weight, place, is_split=is_split)


def fit_model(
    prepared: Prepared,
    task: Task,
    settings: Settings,
    *,
    seed: int,
    n_jobs: int | None,
    callbacks: Sequence[Any],
    is_verbose: bool,
    state: dict[str, AnyArray] | None = None,
    workers: Workers = ALONE,
    checkpoints: Checkpoints | None = None,
) -> Fitted:
    """Train a model on prepared rows: for one epoch, whose tables count for nothing, if the target is constant."""
    is_constant = not task.scale.spread.any()
    if is_constant:
        settings = replace(settings, training=replace(settings.training, max_epochs=1))
    schema, place = prepared.schema, prepared.place.device
    with _seeded_torch(seed, rank=workers.rank, n_jobs=n_jobs, device=place) as generator:
        n_outputs = len(task.outputs)
        network = Network(
            settings.network,
            prepared.inputs,
            n_outputs,
            generator=generator,
            dtype=settings.dtype,
            constant=np.array([feature.is_constant for feature in schema.features]),
        )
        if state is not None:
            _load_state(network, state)
        elif settings.has_start and not is_constant and workers.count == 1:
            _begin(network, prepared, task.loss, settings.training.n_folds)
        network.to(place)
        history = train(
            network,
            prepared.source,
            prepared.validation,
            task.loss,
            settings.training,
            generator=generator,
            callbacks=callbacks,
            is_verbose=is_verbose,
            workers=workers,
            checkpoints=checkpoints,
        )
        if is_constant:
            history.stopped = "the target is constant"
        network.to("cpu")
        model = assemble(
            network,
            schema,
            prepared.cells,
            prepared.weights,
            task.scale,
            link=link_named(task.loss.link),
            outputs=task.outputs,
            classes=task.classes,
            slot_weight=prepared.slot_weight,
            is_warm=state is not None,
        )
        is_exact = network.encoder.has_exact_tables
        error = 0.0 if is_exact else _table_error(network, model, prepared.cells, task.scale)
    arrays = {name: tensor.numpy() for name, tensor in network.state_dict().items() if name != "inputs"}
    return Fitted(model, history, arrays, error)


def place_fit(device: str, settings: Settings, inputs: Array, n_rows: int) -> Place:
    """Return where to train, and say why."""
    n_features, n_slots, n_inputs = inputs.shape
    work = estimate_work(settings.network, settings.training, shape=(n_features, n_slots, n_inputs), n_rows=n_rows)
    place = choose_place(device, work=work, is_double=settings.dtype == torch.float64)
    _LOG.info("training on %s: %s", place.device, place.reason)
    return place


def to_tensors(
    rows: Rows, cells: Cells, schema: Schema, task: Task, settings: Settings, *, mean_weight: float
) -> TrainingRows:
    """Return rows as the network sees them: padded positions, targets on the scale of training, weights of mean one."""
    dtype = settings.dtype
    position = padded_slots(schema)[cells.slot]
    scale, is_scaled = task.scale, task.loss.is_scaled
    if task.loss.has_classes:
        target = torch.as_tensor(rows.target)
    else:
        values = (rows.target - scale.base - scale.centre) / scale.unit if is_scaled else rows.target
        target = torch.as_tensor(values, dtype=dtype)
    base = None
    if rows.offset is not None:
        base = torch.as_tensor((rows.offset - scale.base) / scale.unit, dtype=dtype)
    if not is_scaled:  # the score of training starts at the prior
        prior = torch.as_tensor(scale.centre, dtype=dtype).expand(len(rows), -1)
        base = prior if base is None else base + prior
    return TrainingRows(
        RowCells(torch.as_tensor(position), torch.as_tensor(cells.fraction, dtype=dtype)),
        target,
        torch.as_tensor(rows.weight / mean_weight, dtype=dtype),
        base,
        None if rows.fold is None else torch.as_tensor(rows.fold),
    )


@contextmanager
def _seeded_torch(seed: int, *, rank: int, n_jobs: int | None, device: torch.device) -> Iterator[torch.Generator]:
    """Seed torch and set its threads for a block, leaving both as they were.

    What workers draw together comes from the generator; torch's own numbers are noise, and other ones in each of them.
    """
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ConfigError(f"n_jobs must be a whole number but 0, or None; got {n_jobs!r}.")
    threads = torch.get_num_threads()
    gpus = [device.index or 0] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=gpus):
        torch.manual_seed((seed + rank * 0x9E3779B1) % 2**32)  # of more bits, a CPU would not look at the upper ones
        try:
            if n_jobs is not None:
                torch.set_num_threads(int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs))
            yield torch.Generator().manual_seed(seed)
        finally:
            torch.set_num_threads(threads)


def _load_state(network: Network, state: dict[str, AnyArray]) -> None:
    if "start" in state:
        network.begin_at(torch.as_tensor(state["start"]))
    own = {name: tensor.shape for name, tensor in network.state_dict().items() if name != "inputs"}
    if own != {name: array.shape for name, array in state.items()}:
        raise DataError(
            "warm_start needs the shapes of the fit before; a size parameter, the features, or how many rows there are "
            "(which decides sizes that are not given) changed. Set warm_start=False to start again."
        )
    network.load_state_dict({name: torch.as_tensor(array) for name, array in state.items()}, strict=False)


def _begin(network: Network, prepared: Prepared, loss: Loss, n_folds: int | None) -> None:
    """Let training start at a penalised additive model, where rows are held out that can say what it is worth."""
    rows, n_members = prepared.source.whole(), network.config.n_members
    if rows is None or (rows.fold is None and prepared.validation is None):
        return
    own_fold = own_folds(n_members, n_folds)
    n_slots = network.inputs.shape[1]
    network.begin_at(fit_start(rows.to(_CPU), prepared.schema, loss, own_fold=own_fold, n_slots=n_slots))


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
    """Return per slot whether a value can lie between it and the next: not for levels, booleans, 3 and 4."""
    found = np.zeros(feature.n_slots, dtype=bool)
    if isinstance(feature, Number) and not feature.is_boolean:
        found[: feature.n_values - 1] = np.diff(feature.knots) > (1.0 if feature.integral else 0.0)
    return found
