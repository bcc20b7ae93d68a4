"""Prepared rows: a table in memory, read and encoded. ``streaming`` does the same with a scan of files."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn.utils import check_random_state

from nae._typing import Array, IntArray
from nae.constraints import Constraints, read_orders
from nae.encoding import Cells, Schema, build_schema, infer_kinds
from nae.encoding.beside import read_weight
from nae.encoding.columns import is_missing
from nae.encoding.fingerprint import fingerprint
from nae.encoding.schema import Kind, check_numbers, rounded_numbers
from nae.encoding.target import names_of
from nae.engines import Place, choose_place, estimate_work
from nae.estimators.constrained import constrain, smoothness_of
from nae.estimators.given import Given, State
from nae.estimators.reading import (
    Expected,
    check_lengths,
    content_folds,
    held_out_rows,
    random_folds,
    random_rows,
    read_columns,
    warn_of_names,
    warn_of_rounding,
)
from nae.estimators.rows import Rows, Task
from nae.estimators.settings import Settings
from nae.links import link_named
from nae.network import ENCODERS
from nae.parameters import Parameters
from nae.quality import Baseline
from nae.training import RowSource, TrainingConfig, TrainingRows
from nae.training.assemble import padded_slots
from nae.training.workers import ALONE, Workers

__all__ = ["Origin", "Prepared", "place_fit", "prepare_table", "to_training_rows"]

_LOG = logging.getLogger("nae")


@dataclass(frozen=True, eq=False)
class Origin:
    """What a model remembers of the rows it was trained on."""

    expected: Expected
    """The columns that later tables must have."""
    target_names: tuple[str, ...]
    offset_names: tuple[str, ...] | None
    """None if the fit had no offset."""
    n_rows: int
    n_validation_rows: int
    data_sha256: str | None
    baseline: Baseline | None
    """The rule that knows only the target; None where it needs quantiles that a scan does not keep."""
    n_bad_rows: int | None = None
    """Rows of a scan that could not be parsed; None for a table in memory."""
    n_unknown_rows: int | None = None


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows that are ready for training, and all that training and the model need to know of them."""

    task: Task
    settings: Settings
    schema: Schema
    inputs: Array
    """Inputs of the network, (feature, slot, width)."""
    source: RowSource
    """The batches of the training rows."""
    validation: TrainingRows | None
    cells: Cells
    """Cells of the training rows, or of a sample if there are too many to hold."""
    weights: Array
    """Weights of the same rows."""
    place: Place
    seed: int
    origin: Origin
    constraints: Constraints | None = None
    """What the fit promises; None if nothing."""
    smoothness: Array | None = None
    """How much rough curves cost, (feature,); None if nothing."""
    state: State | None = None
    """The network that a warm start goes on with."""
    slot_weight: Array | None = None
    """The weight of all rows at each slot, if ``cells`` are a sample."""
    is_split: bool = False
    """Whether the validation rows are some of those given to fit."""

    @property
    def sources(self) -> list[RowSource]:
        """All rows whose totals the model must have: those given to fit, and none of an evaluation set."""
        return [self.source, self.validation] if self.is_split and self.validation is not None else [self.source]

    def with_training(self, config: TrainingConfig) -> "Prepared":
        """Return the same rows, to be trained on in another way."""
        return replace(self, settings=replace(self.settings, training=config))


def prepare_table(given: Given) -> Prepared:
    """Read and encode a table in memory."""
    table = _read(given)
    rows, task, expected = table.rows, table.task, table.expected
    before = given.before
    if before is not None:
        before.check(expected.names, expected.n_features, task)
    training, validation = _split(table, given)
    settings = table.settings
    if training.fold is None and validation is None:
        settings = settings.unvalidated()
    seed = given.draw_seed()
    schema = _schema(table, training, given.parameters) if before is None else before.model.schema
    settings, constraints = constrain(given.parameters, settings, schema, task)
    random = np.random.default_rng(seed)
    encoder = ENCODERS[settings.network.encoder]
    inputs = encoder.make_inputs(schema, training.columns, n_ramps=settings.n_ramps, random=random)
    encode = partial(_encode, schema=schema, task=task, settings=settings, mean_weight=float(training.weight.mean()))
    place = place_fit(given.parameters, task, settings, inputs, len(training))
    cells, source = encode(training)
    held_out = None if validation is None else encode(validation)[1]
    if before is None:
        known = [len(training) - int(is_missing(array).sum()) for array in training.columns.arrays]
        warn_of_names(schema.features, known)
        warn_of_rounding(rounded_numbers(schema.features, training.columns))
    n_members = settings.network.n_members
    origin = Origin(
        expected,
        target_names=names_of(given.y, features=expected.names),
        offset_names=None if given.offset is None else names_of(given.offset),
        n_rows=len(training),
        n_validation_rows=training.count_held_out(n_members) if validation is None else len(validation),
        data_sha256=fingerprint(rows.columns, rows.target, rows.weight),
        baseline=_baseline(rows, task),
    )
    return Prepared(
        task,
        settings,
        schema,
        inputs,
        source,
        held_out,
        cells,
        training.weight,
        place,
        seed,
        origin,
        constraints,
        smoothness_of(given.parameters, schema),
        None if before is None else before.state,
        is_split=given.eval_set is None,
    )


@dataclass(frozen=True, eq=False)
class _Table:
    """A table that has been read: the rows of positive weight, and what follows from them."""

    rows: Rows
    positions: IntArray
    """Where the rows stand in the table."""
    n_rows: int
    """Of the table, rows without weight included."""
    kinds: Sequence[tuple[Kind, str]]
    task: Task
    settings: Settings
    expected: Expected


def _read(given: Given) -> _Table:
    columns = read_columns(given.X)
    check_lengths(columns, given.y)
    weight = read_weight(given.sample_weight, columns.n_rows)
    kept = np.flatnonzero(weight > 0)
    rows, task = given.target.read(columns, given.y, weight, given.offset)
    if len(kept) < len(rows):  # otherwise a copy would only take memory
        rows, weight = rows.take(kept), weight[kept]
    kinds = infer_kinds(rows.columns, given.parameters.feature_types)
    check_numbers(rows.columns, kinds, kept)
    expected = Expected(given.owner, len(columns.arrays), columns.names)
    total = float(weight.sum()) if np.all(weight == np.rint(weight)) else None
    settings = given.settle(len(kept), total=total, n_features=expected.n_features)
    return _Table(rows, kept, columns.n_rows, kinds, task, settings, expected)


def _split(table: _Table, given: Given) -> tuple[Rows, Rows | None]:
    """Return training and validation rows: as given, by a splitter or indices, or at random.

    Without rows of the second kind, the first ones have a fold each, or there are too few to hold any out.
    """
    rows, task, settings, chosen = table.rows, table.task, table.settings, given.parameters.validation
    if settings.is_small and chosen is None:
        rows = rows.repeated()
    if given.eval_set is not None:
        return rows, given.read_eval_set(task, table.expected, has_offset=rows.offset is not None)
    if chosen is not None:
        held_out = held_out_rows(chosen, rows.target, table.positions, table.n_rows)
    elif len(rows) < 2:
        return rows, None
    else:
        codes = rows.target.ravel() if task.classes else None
        random = check_random_state(given.parameters.random_state)
        if settings.is_small:
            kinds = [kind for kind, _ in table.kinds]
            folds = content_folds(settings.n_parts, codes, rows.digests(kinds, key=random.bytes(16)))
            if settings.n_folds is not None:
                return rows.with_folds(folds), None
            held_out = np.flatnonzero(folds == 0)
        elif settings.n_folds is not None:
            return rows.with_folds(random_folds(settings.n_folds, codes, len(rows), random)), None
        else:
            held_out = random_rows(settings.validation_size, codes, len(rows), random)
    is_held_out = np.zeros(len(rows), dtype=bool)
    is_held_out[held_out] = True
    return rows.take(np.flatnonzero(~is_held_out)), rows.take(held_out)


def _schema(table: _Table, training: Rows, parameters: Parameters) -> Schema:
    columns, sizes = training.columns, table.settings.table_sizes
    names = columns.names or tuple(f"x{i}" for i in range(len(columns.arrays)))
    orders = read_orders(parameters.monotonic_cst, names, columns)
    return build_schema(columns, table.kinds, training.weight, counts=training.count, orders=orders, **sizes)


def _encode(
    rows: Rows, *, schema: Schema, task: Task, settings: Settings, mean_weight: float
) -> tuple[Cells, TrainingRows]:
    cells = schema.locate(rows.columns)
    return cells, to_training_rows(rows, cells, schema, task, settings, mean_weight=mean_weight)


def _baseline(rows: Rows, task: Task) -> Baseline:
    """Return the rule that knows only the target of the training rows; class weights do not change it."""
    weight = rows.weight if rows.count is None else rows.count
    if task.classes:
        return Baseline.of_classes(rows.target.ravel(), weight, len(task.classes))
    link = link_named(task.loss.link)
    truth = np.broadcast_to(rows.target, (len(rows), len(task.outputs)))
    return Baseline.of_numbers(truth, weight, rows.offset, criterion=task.criterion, link=link)


def place_fit(
    parameters: Parameters, task: Task, settings: Settings, inputs: Array, n_rows: int, *, workers: Workers = ALONE
) -> Place:
    """Return where to train, and say why."""
    n_features, n_slots, n_inputs = inputs.shape
    place = choose_place(
        parameters.engine,
        parameters.device,
        network=settings.network,
        loss=task.loss,
        workers=workers,
        work=estimate_work(settings.network, settings.training, shape=(n_features, n_slots, n_inputs), n_rows=n_rows),
        is_double=settings.dtype is np.float64,
    )
    _LOG.info("training by the engine %s on %s: %s", place.engine, place.device, place.reason)
    return place


@np.errstate(over="ignore")  # the training says what became infinite
def to_training_rows(
    rows: Rows, cells: Cells, schema: Schema, task: Task, settings: Settings, *, mean_weight: float
) -> TrainingRows:
    """Return rows as the network sees them: padded positions, targets on the scale of training, weights of mean one."""
    dtype = settings.dtype
    scale, is_scaled = task.scale, task.loss.is_scaled
    if task.loss.has_classes:
        target = rows.target
    else:
        values = (rows.target - scale.base - scale.centre) / scale.unit if is_scaled else rows.target
        target = values.astype(dtype)
    base = None
    if rows.offset is not None:
        base = ((rows.offset - scale.base) / scale.unit).astype(dtype)
    if not is_scaled:  # the score of training starts at the prior
        prior = np.tile(scale.centre.astype(dtype), (len(rows), 1))
        base = prior if base is None else base + prior
    return TrainingRows(
        Cells(padded_slots(schema).astype(np.int32)[cells.slot], cells.fraction.astype(dtype)),
        target,
        (rows.weight / mean_weight).astype(dtype),
        base,
        rows.fold,
    )
