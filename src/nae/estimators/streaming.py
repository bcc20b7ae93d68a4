"""Fitting a scan: a survey, a cache of small integers, and the same training as in memory."""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from nae._typing import AnyArray, Array, IntArray
from nae.encoding import Category, Cells, Columns, Schema
from nae.encoding.beside import read_offset
from nae.encoding.fingerprint import Fingerprint
from nae.encoding.kinds import FeatureTypes
from nae.errors import ConfigError, DataError, NAEError, NAEWarning
from nae.estimators.fitting import Prepared, Rows, Task, place_fit, to_tensors
from nae.estimators.reading import content_folds, random_folds, random_rows
from nae.estimators.settings import Settings
from nae.network import piecewise_inputs
from nae.scanning.cache import RowCache, check_space, open_cache, plan_blocks
from nae.scanning.chunks import Chunk, Roles, read_chunks
from nae.scanning.scan import Scan
from nae.scanning.source import CachedRows, Packing, concatenate
from nae.scanning.survey import Findings, Survey, number_target, survey_rows
from nae.tables.statistics import slot_weights
from nae.training import TrainingRows
from nae.training.assemble import padded_slots
from nae.training.checkpoint import Checkpoints, RunState
from nae.training.data import VALIDATION_ROWS
from nae.training.history import Epoch
from nae.training.progress import pass_bar
from nae.training.shares import SharedRows, check_shares
from nae.training.workers import ALONE, Workers

__all__ = ["ScanPlan", "WithSchema", "read_roles", "survey_roles"]


@contextmanager
def reported(scan: Scan, *, is_verbose: bool) -> Iterator[Scan]:
    """Yield a scan that shows how far it was read, where that is wanted and nobody else shows it."""
    with pass_bar(is_shown=is_verbose and scan.progress is None) as show:
        yield scan if show is None else scan.with_progress(show)


def survey_roles(
    scan: Scan,
    roles: Roles,
    *,
    is_classes: bool,
    feature_types: FeatureTypes,
    has_values: bool,
    is_verbose: bool,
    workers: Workers = ALONE,
) -> tuple[Scan, Survey, int]:
    """Return the scan as it is to be read, what the first pass found with all workers, and this one's rows."""
    n_rows = scan.count_rows()
    if n_rows is not None:  # better said before the first pass than after it
        check_space(n_rows * (3 * len(roles.features) + 20), scan.cache_folder)
    scan = scan if is_classes else scan.with_numbers(roles.target)
    scan = scan.with_numbers([*roles.offset, *((roles.weight,) if roles.weight else ())])
    with reported(scan, is_verbose=is_verbose) as shown:
        read = partial(
            survey_rows, shown, roles, is_classes=is_classes, feature_types=feature_types, has_values=has_values
        )
        survey, n_own_rows = _survey_together(read, workers, is_classes=is_classes)
    if survey.bad_rows.count:
        warnings.warn(str(survey.bad_rows), NAEWarning, stacklevel=6)
    crowded = [column.name for column in survey.columns if not column.levels.is_exact]
    if crowded:
        warnings.warn(
            f"Columns with more levels than can be counted one by one: {crowded}. Their frequent levels are found by a "
            "sketch; of the rare ones, those it does not name will count as unseen. Drop a column that names rows.",
            NAEWarning,
            stacklevel=6,
        )
    return scan, survey, n_own_rows


def _survey_together(read: Callable[[], Findings], workers: Workers, *, is_classes: bool) -> tuple[Survey, int]:
    """Survey this worker's rows and merge with what the others found; a complaint of one is raised by all."""
    own: Findings | NAEError
    try:
        own = read()
    except NAEError as error:
        if workers.count == 1:
            raise
        own = error
    found = workers.gather(own)
    for one in found:
        if isinstance(one, NAEError):
            raise one
    n_own_rows = found[workers.rank].n_rows
    for other in found[1:]:
        found[0].merge(other)
    return found[0].survey(is_classes=is_classes), n_own_rows


def read_roles(scan: Scan, y: Any, sample_weight: Any, offset: Any) -> Roles:
    """Return which column of a scan is what."""

    def names(given: Any, what: str) -> tuple[str, ...]:
        found = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, (list, tuple)) else ()
        if not found or not all(isinstance(name, str) for name in found):
            raise ConfigError(
                f"With a scan, {what} must be the name of a column; got {type(given).__name__}, as in "
                f"fit(nae.scan(…), y='price')."
            )
        return tuple(scan.find(name) for name in found)

    target = names(y, "y")
    weight = None if sample_weight is None else names(sample_weight, "sample_weight")[0]
    base = () if offset is None else names(offset, "offset")
    others = {*target, *base, weight}
    features = tuple(name for name in scan.columns if name not in others)
    if not features:
        raise DataError(f"The scan must have columns besides {sorted(name for name in others if name)}; it has none.")
    return Roles(features, target, weight, base)


class WithSchema:
    """Checkpoints that know the schema: a sketch of the same rows may place the knots of a second try elsewhere."""

    def __init__(self, inner: Checkpoints, schema: Schema) -> None:
        self.inner, self.schema = inner, schema
        state = inner.latest()
        if state is not None:
            self.schema = Schema.from_dict(state.values["schema"], state.tensors["knots"].numpy())

    def latest(self) -> RunState | None:
        return self.inner.latest()

    def save(self, state: RunState, epoch: Epoch) -> None:
        tensors = {**state.tensors, "knots": torch.as_tensor(self.schema.knots)}
        self.inner.save(RunState(tensors, {**state.values, "schema": self.schema.to_dict()}), epoch)


@dataclass(frozen=True, eq=False)
class Written:
    """The cache, ready to train on, and what was counted while it was written."""

    prepared: Prepared
    n_validation_rows: int
    fingerprint: str  # of this worker's rows


@dataclass(frozen=True, eq=False)
class ScanPlan:
    """Everything the second pass needs to know."""

    scan: Scan
    roles: Roles
    survey: Survey
    schema: Schema
    task: Task
    settings: Settings
    class_weight: Array
    n_own_rows: int  # of this worker; the survey is that of all
    workers: Workers = ALONE

    @property
    def mean_weight(self) -> float:
        """The mean weight of the rows, that of their classes included."""
        if len(self.class_weight):
            return float(self.survey.class_weight @ self.class_weight) / self.survey.n_rows
        return self.survey.weight / self.survey.n_rows

    @contextmanager
    def write(
        self, random: np.random.RandomState, *, device: str, validation: Rows | None, is_verbose: bool
    ) -> Iterator[Written]:
        """Read the rows a second time, yield them as a cache, and take it away again."""
        n_folds = None if validation is not None or self.survey.n_rows < 2 else self.settings.n_folds
        is_held_out = validation is None and n_folds is None and self.survey.n_rows > 1
        n_train = self._count_training_rows() if is_held_out else self.n_own_rows
        starts = plan_blocks(n_train, self._count_batches(n_train), self.scan.block_rows)
        packing = self._packing(has_folds=n_folds is not None, is_exact=len(starts) == 2)
        fields = packing.fields()
        with open_cache(fields, starts, folder=self.scan.cache_folder) as cache:
            writer = _Writer(self, cache, packing, random, n_folds=n_folds, is_held_out=is_held_out)
            size = n_train * sum(field.row_bytes for field in fields) / 1e9
            with reported(self.scan, is_verbose=is_verbose) as scan:
                for chunk in read_chunks(scan, self.roles, f"writing {size:.2f} GB to the cache"):
                    writer.add(chunk)
            if writer.n_rows < self.n_own_rows:
                raise DataError("The files changed while they were read: the second pass found fewer rows.")
            found = concatenate(writer.held_out) if writer.held_out else self._tensors(validation)
            inputs = piecewise_inputs(self.schema, self.settings.n_ramps)
            place = place_fit(device, self.settings, inputs, self.survey.n_rows)
            source = CachedRows(cache, packing, place.device, slot_weight=self._padded(writer.slot_weight))
            sample = self.workers.gather(writer.sample())
            prepared = Prepared(
                self.schema,
                inputs,
                source if self.workers.count == 1 else SharedRows(source, self.workers),
                None if found is None else found.to(place.device),
                Cells(np.concatenate([one[0] for one in sample]), np.concatenate([one[1] for one in sample])),
                np.concatenate([one[2] for one in sample]),
                place,
                sum(self.workers.gather(writer.slot_weight)),
                is_split=bool(writer.held_out) and writer.is_whole,
            )
            n_held_out = int(writer.fold_counts[: self.settings.network.n_members].sum()) if n_folds else 0
            n_held_out = n_held_out if found is None else len(found)
            yield Written(prepared, sum(self.workers.gather(n_held_out)), writer.fingerprint.hexdigest())

    def _count_batches(self, n_own: int) -> int:
        """Return the batches that this worker's training rows are cut into; shares too small are an error of all."""
        counts, batch_size = self.workers.gather(n_own), self.settings.training.batch_size
        check_shares(counts, max(1, round(sum(counts) / batch_size)))
        return max(1, min(n_own, round(n_own * self.workers.count / batch_size)))

    def _padded(self, slot_weight: Array) -> Array:
        """Return the weight at every slot of the padded tables, as training counts it: rows weigh one on average."""
        longest = max(feature.n_slots for feature in self.schema.features)
        found = np.zeros(len(self.schema) * longest)
        found[padded_slots(self.schema)] = slot_weight / self.mean_weight
        return found

    def _tensors(self, rows: Rows | None) -> TrainingRows | None:
        if rows is None:
            return None
        cells = self.schema.locate(rows.columns)
        return to_tensors(rows, cells, self.schema, self.task, self.settings, mean_weight=self.mean_weight)

    def _count_training_rows(self) -> int:
        """Return how many rows are left when every chunk holds out its share, as scikit-learn rounds it."""
        n_rows, size = self.n_own_rows, self.scan.block_rows
        chunks = [size] * (n_rows // size) + [n_rows % size] * (n_rows % size > 0)
        return sum(n - math.ceil(self.settings.validation_size * n) if n > 1 else n for n in chunks)

    def _packing(self, *, has_folds: bool, is_exact: bool) -> Packing:
        n_outputs, dtype = len(self.task.outputs), self.settings.dtype
        is_number = not self.task.loss.has_classes
        has_base = bool(self.roles.offset) or not self.task.loss.is_scaled
        return Packing(
            n_features=len(self.schema),
            n_slots=max(feature.n_slots for feature in self.schema.features),
            target=dtype if is_number else torch.int64,
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
        for i, (feature, column) in enumerate(zip(self.schema.features, self.survey.columns, strict=True)):
            if isinstance(feature, Category) and not column.levels.is_exact:
                unseen, other = self.schema.offsets[i + 1] - 1, self.schema.offsets[i] + len(feature.levels)
                cells.slot[:, i] = np.where(cells.slot[:, i] == unseen, other, cells.slot[:, i])
        return cells

    def rows(self, chunk: Chunk) -> tuple[Rows, AnyArray | None]:
        """Return a chunk with its target as numbers, and the class of every row."""
        n_outputs = len(self.task.outputs)
        is_per_class, is_mirrored = len(self.task.classes) > 2, self.task.is_mirrored
        shift = read_offset(chunk.offset, len(chunk), n_outputs, is_per_class=is_per_class, is_mirrored=is_mirrored)
        if not self.task.classes:
            return Rows(chunk.columns, number_target(chunk, self.roles), chunk.weight, shift), None
        codes = np.searchsorted(self.survey.classes, chunk.target[0])
        weight = chunk.weight * self.class_weight[codes]
        return Rows(chunk.columns, codes[:, None] if n_outputs == 1 else codes, weight, shift), codes


class _Writer:
    """Writes chunk after chunk to the cache, and samples what the model is to remember."""

    def __init__(
        self,
        plan: ScanPlan,
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
        self.step = -(-plan.survey.n_rows // plan.scan.block_rows)  # every so many rows one is remembered
        self.n_rows = 0
        self.slot_weight = np.zeros(plan.schema.n_slots)
        self.fold_counts = np.zeros(n_folds or 1, dtype=np.int64)
        self.fingerprint = Fingerprint()
        self.held_out: list[TrainingRows] = []
        self.is_whole = True  # all that is held out is kept, and not only as many rows as validation needs
        self.sampled_weights: list[Array] = []
        self._slots: list[IntArray] = []
        self._fractions: list[Array] = []

    def add(self, chunk: Chunk) -> None:
        """Encode a chunk and write it."""
        rows, codes = self.plan.rows(chunk)
        self.fingerprint.update(rows.columns, rows.target, rows.weight)
        cells = self.plan.locate(rows.columns)
        if self.n_folds is not None:
            folds = self._folds(rows, codes)
            rows = rows.with_folds(folds)
            self.fold_counts += np.bincount(folds, minlength=self.n_folds)
        tensors = to_tensors(
            rows, cells, self.plan.schema, self.plan.task, self.plan.settings, mean_weight=self.plan.mean_weight
        )
        weights = rows.weight
        if self.is_held_out and len(rows) > 1:
            tensors, cells, weights = self._hold_out(tensors, cells, weights, codes)
        self.cache.write(self.packing.pack(tensors), self.shuffler)
        self._remember(cells, weights)
        self.n_rows += len(rows)

    def _folds(self, rows: Rows, codes: AnyArray | None) -> IntArray:
        """Return the fold of every row of a chunk."""
        if self.plan.settings.is_small:
            kinds = [feature.kind for feature in self.plan.schema.features]
            return content_folds(self.n_folds or 1, codes, rows.digests(kinds, key=self.random.bytes(16)))
        return random_folds(self.n_folds or 1, codes, len(rows), self.random)

    def _hold_out(
        self, tensors: TrainingRows, cells: Cells, weights: Array, codes: AnyArray | None
    ) -> tuple[TrainingRows, Cells, Array]:
        settings = self.plan.settings
        held_out = random_rows(settings.validation_size, codes, len(weights), self.random)
        n_expected = math.ceil(self.plan.survey.n_rows * settings.validation_size)
        step = -(-n_expected // VALIDATION_ROWS) if self.cache.n_blocks > 1 else 1
        self.is_whole = step == 1
        self.held_out.append(tensors.take(torch.as_tensor(held_out[::step])))
        is_kept = np.ones(len(weights), dtype=bool)
        is_kept[held_out] = False
        kept = np.flatnonzero(is_kept)
        return tensors.take(torch.as_tensor(kept)), cells.take(kept), weights[kept]

    def _remember(self, cells: Cells, weights: Array) -> None:
        self.slot_weight += slot_weights(cells, weights, self.plan.schema.n_slots)
        # Copies: a view would keep all the rows of its chunk.
        self._slots.append(cells.slot[:: self.step].copy())
        self._fractions.append(cells.fraction[:: self.step].copy())
        self.sampled_weights.append(weights[:: self.step].copy())

    def sample(self) -> tuple[IntArray, Array, Array]:
        """Return slots, fractions and weights of the remembered rows."""
        return np.concatenate(self._slots), np.concatenate(self._fractions), np.concatenate(self.sampled_weights)
