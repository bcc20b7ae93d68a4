"""Learning from a table in memory or from a scan of files: read, split, train, keep."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from nae._typing import AnyArray, Array, IntArray
from nae.encoding import Columns, infer_kinds
from nae.encoding.beside import read_offset, read_weight
from nae.encoding.columns import is_missing
from nae.encoding.fingerprint import fingerprint
from nae.encoding.schema import check_numbers, rounded_numbers
from nae.encoding.target import names_of
from nae.errors import ConfigError, DataError, NAEWarning
from nae.estimators.fitting import Fitted, Prepared, Rows, Task, fit_model, prepare
from nae.estimators.parameters import Parameters
from nae.estimators.path import PathPoint, fit_path
from nae.estimators.reading import (
    check_lengths,
    content_folds,
    held_out_rows,
    random_folds,
    random_rows,
    read_callbacks,
    read_columns,
    read_eval_set,
    remember_columns,
    warn_of_names,
    warn_of_rounding,
)
from nae.estimators.settings import Settings
from nae.links import link_named
from nae.quality import Baseline, Criterion
from nae.scanning.scan import Scan
from nae.tables.model import TableModel
from nae.tables.summary import AdditivityEntry, BaselineEntry, TrainingSummary
from nae.training import History, TrainingConfig
from nae.training.balance import balance
from nae.training.checkpoint import Checkpoints
from nae.training.device import halve_batch_until_it_fits
from nae.training.losses import ROBUST
from nae.training.workers import ALONE, Workers

if TYPE_CHECKING:
    from nae.estimators.streaming import ScanPlan
    from nae.scanning.chunks import Roles
    from nae.scanning.survey import Survey

__all__ = ["Learner"]

State = dict[str, AnyArray]  # the arrays of a network, by name
Train = Callable[..., Fitted]  # with the arguments of fit_model


class Learner(Parameters):
    """The way from rows to a model; abstract: the estimators say what is learned."""

    model_: TableModel
    history_: History
    additivity_path_: tuple[PathPoint, ...]

    @abstractmethod
    def _read_task(self, columns: Columns, y: Any, weight: Array, offset: Any) -> tuple[Rows, Task]:
        """Return the rows and what is to be learned from those of positive weight; sets ``classes_``."""

    @abstractmethod
    def _read_target(self, y: Any, task: Task) -> AnyArray:
        """Return the target of an evaluation set, in terms of the training target."""

    @abstractmethod
    def _scan_task(self, survey: "Survey", roles: "Roles") -> tuple[Task, Array]:
        """Return what is to be learned from a surveyed scan, and the weight of every class; sets ``classes_``."""

    def fit_share(
        self,
        scan: Scan,
        y: Any,
        *,
        sample_weight: str | None = None,
        offset: Any = None,
        workers: Workers,
        checkpoints: Checkpoints | None = None,
    ) -> Self:
        """Fit to this worker's share of the rows, together with the other workers: what ``nae.scale`` runs in each.

        Every worker ends with the same model; with ``checkpoints`` a second try goes on where the first one ended.
        """
        if self.additivity == "auto":
            raise ConfigError("additivity='auto' is several trainings; several workers share one. Pass a number.")
        with self._as_before_on_error():
            return self._fit_scan(scan, y, sample_weight, None, offset, workers=workers, checkpoints=checkpoints)

    def fit_with(
        self, train: Train, X: Any, y: Any, *, sample_weight: Any = None, eval_set: Any = None, offset: Any = None
    ) -> Self:
        """Fit to a table in memory as ever, but have prepared rows trained on by ``train``: what ``nae.scale`` calls.

        ``train`` takes the arguments of :func:`~nae.estimators.fitting.fit_model`.
        """
        with self._as_before_on_error():
            return self._fit_table(X, y, sample_weight, eval_set, offset, train=train)

    @contextmanager
    def _as_before_on_error(self) -> Iterator[None]:
        """Leave everything as it was if a fit fails: the model of the fit before belongs to its own classes."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any, offset: Any) -> Self:
        if y is None:
            raise DataError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        with self._as_before_on_error():
            if isinstance(X, Scan):
                return self._fit_scan(X, y, sample_weight, eval_set, offset)
            return self._fit_table(X, y, sample_weight, eval_set, offset)

    def _fit_table(
        self, X: Any, y: Any, sample_weight: Any, eval_set: Any, offset: Any, *, train: Train = fit_model
    ) -> Self:
        """Fit to a table in memory."""
        columns = read_columns(self, X, is_fit=True)
        check_lengths(columns, y)
        weight = read_weight(sample_weight, columns.n_rows)
        kept = np.flatnonzero(weight > 0)
        rows, task = self._read_task(columns, y, weight, offset)
        rows = rows.take(kept)
        check_numbers(rows.columns, infer_kinds(rows.columns, self.feature_types), kept)
        settings = self._settings(weight[kept], n_features=len(columns.arrays))
        state = self._state_to_continue(rows.columns.names, len(rows.columns.arrays), task)
        learned = rows.repeated() if settings.is_small and self.validation is None else rows
        training, validation = self._split(learned, kept, eval_set, settings, task=task, n_rows=columns.n_rows)
        if training.fold is None and validation is None:
            settings = settings.unvalidated()
        seed = self._seed()
        prepared = prepare(
            training,
            validation,
            task,
            settings,
            feature_types=self.feature_types,
            seed=seed,
            device=self.device,
            schema=None if state is None else self.model_.schema,
            is_split=eval_set is None,
        )
        if state is None:
            known = [len(training) - int(is_missing(array).sum()) for array in training.columns.arrays]
            warn_of_names(prepared.schema.features, known, stacklevel=4)
            warn_of_rounding(rounded_numbers(prepared.schema.features, training.columns), stacklevel=4)
        fitted = halve_batch_until_it_fits(
            lambda config: self._train(
                prepared, task, replace(settings, training=config), state, seed=seed, train=train
            ),
            settings.training,
            n_rows=len(training),
        )
        self._keep(
            fitted,
            prepared,
            replace(
                _summary_of(task, None if offset is None else names_of(offset)),
                baseline=_baseline(rows, task).to_entry(),
                n_rows=len(training),
                n_validation_rows=training.count_held_out(self.n_members) if validation is None else len(validation),
                data_sha256=fingerprint(rows.columns, rows.target, rows.weight),
            ),
            names=names_of(y, features=columns.names),
            positive=task.positive,
        )
        return self

    def _fit_scan(
        self,
        scan: Scan,
        y: Any,
        sample_weight: Any,
        eval_set: Any,
        offset: Any,
        *,
        workers: Workers = ALONE,
        checkpoints: Checkpoints | None = None,
    ) -> Self:
        """Fit to files: target, weights and offset are names of columns."""
        from nae.estimators.streaming import WithSchema, read_roles

        if self.encoder == "mlp":
            raise ConfigError("encoder='mlp' needs its rows in memory; with a scan, leave encoder='piecewise'.")
        if self.validation is not None:
            raise ConfigError("validation must be None with a scan; pass eval_set=(X, y) to choose validation rows.")
        plan, state = self._plan_scan(scan, read_roles(scan, y, sample_weight, offset), workers)
        if checkpoints is not None:
            checkpoints = WithSchema(checkpoints, plan.schema)
            plan = replace(plan, schema=checkpoints.schema)
        validation = None
        if eval_set is not None:
            validation = self._read_eval_set(eval_set, plan.task, has_offset=bool(plan.roles.offset))
        random, survey, is_alone = check_random_state(self.random_state), plan.survey, workers.count == 1
        with plan.write(random, device=self.device, validation=validation, is_verbose=bool(self.verbose)) as written:
            train = partial(self._train, seed=self._seed(), workers=workers, checkpoints=checkpoints)

            def attempt(config: TrainingConfig) -> Fitted:
                return train(written.prepared, plan.task, replace(plan.settings, training=config), state)

            # Several workers would have to agree on a smaller batch: they fail together instead.
            config = plan.settings.training
            fitted = halve_batch_until_it_fits(attempt, config, n_rows=survey.n_rows) if is_alone else attempt(config)
            self._keep(
                fitted,
                written.prepared,
                replace(
                    _summary_of(plan.task, plan.roles.offset or None),
                    baseline=_known_baseline(survey, plan.task),
                    n_rows=len(written.prepared.source),
                    n_validation_rows=written.n_validation_rows,
                    data_sha256=written.fingerprint if is_alone else None,
                    n_bad_rows=survey.bad_rows.count,
                    n_unknown_rows=survey.bad_rows.n_unknown,
                ),
                names=plan.roles.target,
                positive=plan.task.positive,
            )
        return self

    def _plan_scan(self, scan: Scan, roles: "Roles", workers: Workers) -> tuple["ScanPlan", State | None]:
        """Read the files once and return how to learn from them, and the network to go on with."""
        from nae.estimators.streaming import ScanPlan, survey_roles

        scan, survey, n_own_rows = survey_roles(
            scan,
            roles,
            is_classes=is_classifier(self),
            feature_types=self.feature_types,
            has_values=getattr(self, "loss", None) in ROBUST,
            is_verbose=bool(self.verbose),
            workers=workers,
        )
        remember_columns(self, Columns(tuple(np.empty(0) for _ in roles.features), roles.features))
        task, class_weight = self._scan_task(survey, roles)
        total = survey.weight if survey.is_whole else None
        settings = self._resolve(survey.n_rows, total=total, n_features=len(roles.features))
        state = self._state_to_continue(roles.features, len(roles.features), task)
        schema = self.model_.schema if state else survey.schema(**settings.table_sizes)
        if state is None:  # where levels were too many to be counted, the survey has said so
            known = [one for one, column in zip(schema.features, survey.columns, strict=True) if column.levels.is_exact]
            warn_of_names(known, [survey.n_rows] * len(known), stacklevel=5)
            warn_of_rounding({c.name: c.rounded for c in survey.columns if c.rounded is not None}, stacklevel=5)
        return ScanPlan(scan, roles, survey, schema, task, settings, class_weight, n_own_rows, workers), state

    def _state_to_continue(self, names: tuple[str, ...] | None, n_features: int, task: Task) -> State | None:
        """Return the network of the fit before, if this one goes on with it."""
        state: State | None = getattr(self, "_state", None) if self.warm_start else None
        if state is None:
            return None
        before = self.model_
        names = names or tuple(f"x{i}" for i in range(n_features))
        is_single = len(task.outputs) == before.n_outputs == 1  # a single number may be called otherwise now
        outputs = before.outputs if is_single else task.outputs
        classes = set(task.classes)  # the model may speak for the first of two
        if (names, outputs, classes) != (before.feature_names, before.outputs, set(before.classes)):
            raise DataError(
                "warm_start needs the features and classes of the fit before; they changed. "
                "Set warm_start=False to start again."
            )
        return state

    def _split(
        self, rows: Rows, kept: IntArray, eval_set: Any, settings: Settings, *, task: Task, n_rows: int
    ) -> tuple[Rows, Rows | None]:
        """Return training and validation rows: as given, by a splitter or indices, or at random."""
        if eval_set is not None:
            return rows, self._read_eval_set(eval_set, task, has_offset=rows.offset is not None)
        if self.validation is not None:
            held_out = held_out_rows(self.validation, rows.target, kept, n_rows)
        elif len(rows) < 2:
            return rows, None
        else:
            codes = rows.target.ravel() if task.classes else None
            random = check_random_state(self.random_state)
            if settings.is_small:
                kinds = [kind for kind, _ in infer_kinds(rows.columns, self.feature_types)]
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

    def _read_eval_set(self, eval_set: Any, task: Task, *, has_offset: bool) -> Rows:
        table, y, sample_weight, offset = read_eval_set(eval_set)
        columns = read_columns(self, table, is_fit=False)
        target = self._read_target(y, task)
        if len(target) != columns.n_rows or columns.n_rows == 0:
            raise DataError(f"eval_set must have one target per row; got {columns.n_rows} and {len(target)}.")
        if has_offset != (offset is not None):
            raise DataError(
                "offset must be given for the training rows and for eval_set, or for neither; "
                "pass eval_set=(X, y, sample_weight, offset)."
            )
        is_per_class, is_mirrored = len(task.classes) > 2, task.is_mirrored
        n_outputs = len(task.outputs)
        shift = read_offset(offset, columns.n_rows, n_outputs, is_per_class=is_per_class, is_mirrored=is_mirrored)
        return Rows(columns, target, read_weight(sample_weight, columns.n_rows), shift)

    def _train(
        self,
        prepared: Prepared,
        task: Task,
        settings: Settings,
        state: State | None,
        *,
        seed: int,
        workers: Workers = ALONE,
        checkpoints: Checkpoints | None = None,
        train: Train = fit_model,
    ) -> Fitted:
        """Train once, or along the path of ``additivity='auto'``, and balance what is kept."""

        def fit(settings: Settings, state: State | None) -> Fitted:
            return train(
                prepared,
                task,
                settings,
                seed=seed,
                n_jobs=self.n_jobs,
                callbacks=read_callbacks(self.callbacks),
                is_verbose=bool(self.verbose),
                state=state,
                workers=workers,
                checkpoints=checkpoints,
            )

        self.__dict__.pop("additivity_path_", None)
        if self.additivity != "auto":
            return _balanced(fit(settings, state), prepared, task, workers)
        if prepared.validation is None and prepared.source.held_out(self.n_members) is None:
            raise DataError(
                f"additivity='auto' needs rows to validate on; got {len(prepared.source)}, which are all used for "
                "training. Pass eval_set, or a number as additivity."
            )
        fitted, self.additivity_path_ = fit_path(fit, settings, lambda _: prepared.cells, state=state)
        return _balanced(fitted, prepared, task, workers)

    def _keep(
        self, fitted: Fitted, prepared: Prepared, summary: TrainingSummary, *, names: tuple[str, ...], positive: str
    ) -> None:
        """Keep the model of a target of some ``names``; ``summary`` says what is known of its loss and rows."""
        additivity = None
        if isinstance(self.additivity, float) and fitted.model.n_experts > 1:
            additivity = _check_dial(fitted, self.additivity)
        summary = replace(
            summary,
            target=", ".join(names) or None,
            intercept_shift=fitted.model.training.intercept_shift,
            additivity=additivity,
            estimator=type(self).__name__,
            n_epochs=len(fitted.history),
            best_epoch=fitted.history.best_epoch,
            stopped=fitted.history.stopped,
            validation_loss=fitted.history.best_validation,
            table_error=fitted.table_error,
            device=str(prepared.place.device),
        )
        model = replace(fitted.model, training=summary)
        self.model_ = model.for_class(positive) if positive else model
        self.history_ = fitted.history
        self.n_iter_ = len(fitted.history)
        self.table_error_ = fitted.table_error
        self.__dict__.pop("_state", None)
        if self.warm_start:
            self._state = fitted.state


def _summary_of(task: Task, offset: tuple[str, ...] | None) -> TrainingSummary:
    """Return what a model remembers of its loss, and of its offset by name."""
    option = {} if task.loss.option is None else {task.loss.option[0]: float(task.loss.option[1])}
    delta = option.get("huber_delta")
    return TrainingSummary(
        loss=task.loss.name,
        quantile=option.get("quantile"),
        tweedie_power=option.get("tweedie_power"),
        huber_delta=delta,
        huber_threshold=None if delta is None else tuple((delta * task.scale.unit).tolist()),
        offset=offset,
    )


def _baseline(rows: Rows, task: Task) -> Baseline:
    """Return the rule that knows only the target of the training rows, whatever their classes count for."""
    weight = rows.weight if rows.count is None else rows.count
    if task.classes:
        return Baseline.of_classes(rows.target.ravel(), weight, len(task.classes))
    criterion, link = Criterion.of(_summary_of(task, None)), link_named(task.loss.link)
    return Baseline.of_numbers(rows.target, weight, rows.offset, criterion=criterion, link=link)


def _known_baseline(survey: "Survey", task: Task) -> BaselineEntry | None:
    """Return the same rule of rows that were never all in memory; quantiles of their target are not known."""
    is_known = bool(task.classes) or Criterion.of(_summary_of(task, None)).level is None
    return survey.baseline(link_named(task.loss.link)).to_entry() if is_known else None


def _balanced(fitted: Fitted, prepared: Prepared, task: Task, workers: Workers) -> Fitted:
    """Return the fit with the intercept at which the model has the totals of the rows."""
    model = balance(
        fitted.model, prepared.sources, task.loss, task.scale, class_weight=task.class_weight, workers=workers
    )
    return replace(fitted, model=model)


def _check_dial(fitted: Fitted, asked: float) -> AdditivityEntry:
    """Return how additive the model is beside what was asked for, and warn when it is less."""
    measured = fitted.model.explain_global().additivity
    if measured < asked - 0.03:
        warnings.warn(
            f"additivity={asked:g} was asked for and {measured:.3f} reached: the penalty needs more "
            "steps or the interactions are too strong. Raise max_epochs, or accept what was measured.",
            NAEWarning,
            stacklevel=6,  # the call of fit
        )
    return {"asked": asked, "measured": measured}
