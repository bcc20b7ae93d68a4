"""Prepared rows of a scan: a survey, then a cache of small integers, and the same training as in memory."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from nae._typing import AnyArray, Array, IntArray
from nae.constraints import Constraints, read_orders
from nae.encoding import Category, Cells, Columns, Schema
from nae.encoding.fingerprint import Fingerprint
from nae.errors import ConfigError, DataError
from nae.estimators.constrained import constrain, smoothness_of
from nae.estimators.given import Given
from nae.estimators.prepared import Origin, Prepared, place_fit, to_training_rows
from nae.estimators.reading import Expected, content_folds, random_folds, random_rows, warn_of_names, warn_of_rounding
from nae.estimators.rows import Rows, Task
from nae.estimators.settings import Settings
from nae.estimators.surveying import Surveyed, reported, survey_scan
from nae.links import link_named
from nae.network import piecewise_inputs
from nae.scanning.cache import RowCache, open_cache, plan_blocks
from nae.scanning.chunks import Chunk, read_chunks
from nae.scanning.survey import number_target
from nae.tables.statistics import slot_weights
from nae.training import TrainingRows
from nae.training.assemble import padded_slots
from nae.training.cached import CachedRows, Packing, concatenate
from nae.training.checkpoint import Checkpoints, RunState
from nae.training.data import VALIDATION_ROWS
from nae.training.history import Epoch
from nae.training.shares import SharedRows, check_shares
from nae.training.workers import ALONE, Workers

__all__ = ["WithSchema", "prepare_scan"]


@contextmanager
def prepare_scan(given: Given, workers: Workers = ALONE, *, schema: Schema | None = None) -> Iterator[Prepared]:
    """Read and encode a scan of files, yield its rows in a cache, and take the cache away again.

    ``schema`` is that of a training that goes on; without one the survey decides.
    """
    plan = _make_plan(given, workers, schema)
    validation = None
    if given.eval_set is not None:
        found = given.read_eval_set(plan.task, plan.expected, has_offset=bool(plan.found.roles.offset))
        validation = plan.encode(found, plan.schema.locate(found.columns))
    survey, settings = plan.found.survey, plan.settings
    random = check_random_state(given.parameters.random_state)
    n_folds = None if validation is not None or survey.n_rows < 2 else settings.n_folds
    is_held_out = validation is None and n_folds is None and survey.n_rows > 1
    n_train = plan.count_training_rows() if is_held_out else plan.found.n_own_rows
    starts = plan_blocks(n_train, plan.count_batches(n_train), plan.found.scan.block_rows)
    packing = plan.packing(has_folds=n_folds is not None, is_exact=len(starts) == 2)
    with open_cache(packing.fields(), starts, folder=plan.found.scan.cache_folder) as cache:
        writer = _Writer(plan, cache, packing, random, n_folds=n_folds, is_held_out=is_held_out)
        writer.write(n_train, is_verbose=bool(given.parameters.verbose))
        yield _finish(plan, writer, validation)


def _make_plan(given: Given, workers: Workers, schema: Schema | None) -> "_Plan":
    """Read the files once and return how to read them again."""
    parameters, before = given.parameters, given.before
    if parameters.encoder == "mlp":
        raise ConfigError("encoder='mlp' needs its rows in memory; with a scan, leave encoder='piecewise'.")
    if parameters.validation is not None:
        raise ConfigError("validation must be None with a scan; pass eval_set=(X, y) to choose validation rows.")
    found = survey_scan(given, workers)
    survey, names = found.survey, found.roles.features
    task = given.target.read_survey(survey, found.roles)
    total = survey.weight if survey.is_whole else None
    settings = given.settle(survey.n_rows, total=total, n_features=len(names))
    if before is not None:
        before.check(names, len(names), task)
        schema = schema or before.model.schema
    else:
        own = survey.schema(**settings.table_sizes, orders=read_orders(parameters.monotonic_cst, names))
        # Where levels were too many to be counted, the survey has said so.
        known = [one for one, column in zip(own.features, survey.columns, strict=True) if column.levels.is_exact]
        warn_of_names(known, [survey.n_rows] * len(known))
        warn_of_rounding({c.name: c.rounded for c in survey.columns if c.rounded is not None})
        schema = schema or own
    settings, constraints = constrain(parameters, settings, schema, task)
    return _Plan(given, found, schema, task, settings, constraints, Expected(given.owner, len(names), names), workers)


def _finish(plan: "_Plan", writer: "_Writer", validation: TrainingRows | None) -> Prepared:
    """Return what was written, with what the workers counted together meanwhile."""
    settings, survey, workers = plan.settings, plan.found.survey, plan.workers
    found = concatenate(writer.held_out) if writer.held_out else validation
    inputs = piecewise_inputs(plan.schema, settings.n_ramps)
    place = place_fit(plan.given.parameters, plan.task, settings, inputs, survey.n_rows, workers=workers)
    own = CachedRows(writer.cache, writer.packing, slot_weight=plan.padded(writer.slot_weight))
    source = own if workers.count == 1 else SharedRows(own, workers)
    sample = workers.gather(writer.sample())
    slot_weight = sum(workers.gather(writer.slot_weight))
    n_held_out = writer.count_held_out() if found is None else len(found)
    return Prepared(
        plan.task,
        settings,
        plan.schema,
        inputs,
        source,
        found,
        Cells(np.concatenate([one[0] for one in sample]), np.concatenate([one[1] for one in sample])),
        np.concatenate([one[2] for one in sample]),
        place,
        plan.given.draw_seed(),
        _origin(plan, writer, n_rows=len(source), n_validation_rows=sum(workers.gather(n_held_out))),
        plan.constraints,
        smoothness_of(plan.given.parameters, plan.schema),
        None if plan.given.before is None else plan.given.before.state,
        slot_weight,
        is_split=bool(writer.held_out) and writer.is_whole,
    )


def _origin(plan: "_Plan", writer: "_Writer", *, n_rows: int, n_validation_rows: int) -> Origin:
    survey, roles, task = plan.found.survey, plan.found.roles, plan.task
    has_baseline = bool(task.classes) or task.criterion.level is None  # quantiles of the target are not known
    return Origin(
        plan.expected,
        target_names=roles.target,
        offset_names=roles.offset or None,
        n_rows=n_rows,
        n_validation_rows=n_validation_rows,
        data_sha256=writer.fingerprint.hexdigest() if plan.workers.count == 1 else None,
        baseline=survey.baseline(link_named(task.loss.link)) if has_baseline else None,
        n_bad_rows=survey.bad_rows.count,
        n_unknown_rows=survey.bad_rows.n_unknown,
    )


class WithSchema:
    """Checkpoints that hold the schema, too: a second sketch of the same rows may place the knots elsewhere."""

    def __init__(self, inner: Checkpoints, schema: Schema) -> None:
        self.inner, self.schema = inner, schema

    @staticmethod
    def schema_in(inner: Checkpoints) -> Schema | None:
        """Return the schema of the latest checkpoint, if there is one."""
        state = inner.latest()
        return None if state is None else Schema.from_dict(state.values["schema"], state.arrays["knots"])

    def latest(self) -> RunState | None:
        return self.inner.latest()

    def save(self, state: RunState, epoch: Epoch) -> None:
        arrays = {**state.arrays, "knots": self.schema.knots}
        self.inner.save(RunState(arrays, {**state.values, "schema": self.schema.to_dict()}), epoch)


@dataclass(frozen=True, eq=False)
class _Plan:
    """Everything the second pass needs to know."""

    given: Given
    found: Surveyed
    schema: Schema
    task: Task
    settings: Settings
    constraints: Constraints | None
    expected: Expected
    workers: Workers

    @property
    def mean_weight(self) -> float:
        """The mean weight of the rows, including that of their classes."""
        survey, class_weight = self.found.survey, self.task.class_weight
        if class_weight is not None:
            return float(survey.class_weight @ class_weight) / survey.n_rows
        return survey.weight / survey.n_rows

    def count_batches(self, n_own: int) -> int:
        """Return the number of batches of this worker's rows. Shares that are too small are an error in all workers."""
        counts, batch_size = self.workers.gather(n_own), self.settings.training.batch_size
        check_shares(counts, max(1, round(sum(counts) / batch_size)))
        return max(1, min(n_own, round(n_own * self.workers.count / batch_size)))

    def padded(self, slot_weight: Array) -> Array:
        """Return the weight at every slot of the padded tables, in units of the mean weight of a row."""
        longest = max(feature.n_slots for feature in self.schema.features)
        found = np.zeros(len(self.schema) * longest)
        found[padded_slots(self.schema)] = slot_weight / self.mean_weight
        return found

    def encode(self, rows: Rows, cells: Cells) -> TrainingRows:
        """Return rows as training sees them."""
        return to_training_rows(rows, cells, self.schema, self.task, self.settings, mean_weight=self.mean_weight)

    def count_training_rows(self) -> int:
        """Return how many rows are left if every chunk holds out its share, rounded as scikit-learn does."""
        n_rows, size = self.found.n_own_rows, self.found.scan.block_rows
        chunks = [size] * (n_rows // size) + [n_rows % size] * (n_rows % size > 0)
        return sum(n - math.ceil(self.settings.validation_size * n) if n > 1 else n for n in chunks)

    def packing(self, *, has_folds: bool, is_exact: bool) -> Packing:
        n_outputs, dtype = len(self.task.outputs), self.settings.dtype
        is_number = not self.task.loss.has_classes
        has_base = bool(self.found.roles.offset) or not self.task.loss.is_scaled
        return Packing(
            n_features=len(self.schema),
            n_slots=max(feature.n_slots for feature in self.schema.features),
            target=dtype if is_number else np.int64,
            target_width=n_outputs if is_number else None,
            dtype=dtype,
            base_width=n_outputs if has_base else None,
            has_folds=has_folds,
            is_exact=is_exact,
            n_outputs=n_outputs,
        )

    def locate(self, columns: Columns) -> Cells:
        """Return the cells of training rows; levels too rare for the sketch to name share the slot *other*."""
        cells = self.schema.locate(columns)
        for i, (feature, column) in enumerate(zip(self.schema.features, self.found.survey.columns, strict=True)):
            if isinstance(feature, Category) and not column.levels.is_exact:
                unseen, other = self.schema.offsets[i + 1] - 1, self.schema.offsets[i] + len(feature.levels)
                cells.slot[:, i] = np.where(cells.slot[:, i] == unseen, other, cells.slot[:, i])
        return cells

    def rows(self, chunk: Chunk) -> tuple[Rows, AnyArray | None]:
        """Return a chunk with its target as numbers, and the class of every row."""
        shift = self.task.read_offset(chunk.offset, len(chunk))
        if self.task.class_weight is None:
            return Rows(chunk.columns, number_target(chunk, self.found.roles), chunk.weight, shift), None
        codes = np.searchsorted(self.found.survey.classes, chunk.target[0])
        weight = chunk.weight * self.task.class_weight[codes]
        is_single = len(self.task.outputs) == 1
        return Rows(chunk.columns, codes[:, None] if is_single else codes, weight, shift), codes


class _Writer:
    """Writes the chunks to the cache, and keeps a sample of the rows for the statistics of the model."""

    def __init__(
        self,
        plan: _Plan,
        cache: RowCache,
        packing: Packing,
        random: np.random.RandomState,
        *,
        n_folds: int | None,
        is_held_out: bool,
    ) -> None:
        self.plan, self.cache, self.packing, self.random = plan, cache, packing, random
        self.n_folds, self.is_held_out = n_folds, is_held_out
        self.shuffler = np.random.default_rng(random.randint(2**31 - 1) if cache.n_blocks > 1 else 0)
        self.step = -(-plan.found.survey.n_rows // plan.found.scan.block_rows)  # one row of so many is sampled
        self.n_rows = 0
        self.slot_weight = np.zeros(plan.schema.n_slots)
        self.fold_counts = np.zeros(n_folds or 1, dtype=np.int64)
        self.fingerprint = Fingerprint()
        self.held_out: list[TrainingRows] = []
        self.is_whole = True  # whether all held-out rows are kept, and not only as many as validation needs
        self.sampled_weights: list[Array] = []
        self._slots: list[IntArray] = []
        self._fractions: list[Array] = []

    def write(self, n_train: int, *, is_verbose: bool) -> None:
        """Read the rows a second time and write them all."""
        size = n_train * sum(field.row_bytes for field in self.packing.fields()) / 1e9
        found = self.plan.found
        with reported(found.scan, is_verbose=is_verbose) as scan:
            for chunk in read_chunks(scan, found.roles, f"writing {size:.2f} GB to the cache"):
                self._add(chunk)
        if self.n_rows < found.n_own_rows:
            raise DataError("The files changed while they were read: the second pass found fewer rows.")

    def count_held_out(self) -> int:
        """Return how many rows are held out by one of the members."""
        return int(self.fold_counts[: self.plan.settings.network.n_members].sum()) if self.n_folds else 0

    def _add(self, chunk: Chunk) -> None:
        """Encode a chunk and write it."""
        rows, codes = self.plan.rows(chunk)
        self.fingerprint.update(rows.columns, rows.target, rows.weight)
        cells = self.plan.locate(rows.columns)
        if self.n_folds is not None:
            folds = self._folds(rows, codes)
            rows = rows.with_folds(folds)
            self.fold_counts += np.bincount(folds, minlength=self.n_folds)
        encoded = self.plan.encode(rows, cells)
        weights = rows.weight
        if self.is_held_out and len(rows) > 1:
            encoded, cells, weights = self._hold_out(encoded, cells, weights, codes)
        self.cache.write(self.packing.pack(encoded), self.shuffler)
        self._remember(cells, weights)
        self.n_rows += len(rows)

    def _folds(self, rows: Rows, codes: AnyArray | None) -> IntArray:
        """Return the fold of every row of a chunk."""
        if self.plan.settings.is_small:
            kinds = [feature.kind for feature in self.plan.schema.features]
            return content_folds(self.n_folds or 1, codes, rows.digests(kinds, key=self.random.bytes(16)))
        return random_folds(self.n_folds or 1, codes, len(rows), self.random)

    def _hold_out(
        self, encoded: TrainingRows, cells: Cells, weights: Array, codes: AnyArray | None
    ) -> tuple[TrainingRows, Cells, Array]:
        settings = self.plan.settings
        held_out = random_rows(settings.validation_size, codes, len(weights), self.random)
        n_expected = math.ceil(self.plan.found.survey.n_rows * settings.validation_size)
        step = -(-n_expected // VALIDATION_ROWS) if self.cache.n_blocks > 1 else 1
        self.is_whole = step == 1
        self.held_out.append(encoded.take(held_out[::step]))
        is_kept = np.ones(len(weights), dtype=bool)
        is_kept[held_out] = False
        kept = np.flatnonzero(is_kept)
        return encoded.take(kept), cells.take(kept), weights[kept]

    def _remember(self, cells: Cells, weights: Array) -> None:
        self.slot_weight += slot_weights(cells, weights, self.plan.schema.n_slots)
        # Copies: a view would keep all the rows of its chunk.
        self._slots.append(cells.slot[:: self.step].copy())
        self._fractions.append(cells.fraction[:: self.step].copy())
        self.sampled_weights.append(weights[:: self.step].copy())

    def sample(self) -> tuple[IntArray, Array, Array]:
        """Return slots, fractions and weights of the sampled rows."""
        return np.concatenate(self._slots), np.concatenate(self._fractions), np.concatenate(self.sampled_weights)
