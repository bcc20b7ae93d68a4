"""What both estimators share: parameters, reading input, and everything that is read off the model."""

import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from nae import metrics
from nae._typing import AnyArray, Array, IntArray
from nae.contributions import Contributions
from nae.encoding import Cells, Columns, infer_kinds, read_table
from nae.encoding.fingerprint import fingerprint
from nae.encoding.kinds import FeatureTypes
from nae.encoding.schema import check_numbers
from nae.encoding.target import to_array
from nae.errors import ConfigError, DataError, FormatError, NAEWarning
from nae.estimators.fitting import Fitted, Prepared, Rows, Task, fit_model, prepare
from nae.estimators.path import PathPoint, fit_path
from nae.estimators.reading import (
    check_columns,
    held_out_rows,
    random_folds,
    random_rows,
    read_callbacks,
    read_eval_set,
    read_offset,
    read_weight,
    remember_columns,
)
from nae.estimators.saving import (
    decode_classes,
    decode_history,
    decode_params,
    encode_classes,
    encode_history,
    encode_params,
)
from nae.estimators.settings import SMALL, Settings, resolve
from nae.scanning.scan import Scan
from nae.tables.archive import read_archive, save
from nae.tables.explains import Explains
from nae.tables.model import TableModel
from nae.training import History, TrainingConfig
from nae.training.checkpoint import Checkpoints
from nae.training.device import fit_in_memory
from nae.training.workers import ALONE, Workers

if TYPE_CHECKING:
    from nae.scanning.chunks import Roles
    from nae.scanning.survey import Survey

__all__ = ["NAEEstimator"]


class NAEEstimator(Explains, BaseEstimator):  # type: ignore[misc]
    """Parameters and plumbing of both estimators; abstract."""

    model_: TableModel
    history_: History
    additivity_path_: tuple[PathPoint, ...]
    n_features_in_: int

    def __init__(
        self,
        *,
        additivity: float | str | None = None,
        variant: str = "nae",
        encoder: str = "piecewise",
        gate: str = "auto",
        n_experts: int | None = None,
        n_active: int | None = None,
        n_members: int = 8,
        n_knots: int | None = None,
        n_ramps: int = 48,
        n_blocks: int = 2,
        hidden_dim: int | None = None,
        gate_rank: int = 64,
        normalization: str = "layer",
        variation_penalty: float = 0.1,
        output_penalty: float | None = None,
        context_penalty: float | None = None,
        expert_dropout: float = 0.0,
        encoder_dropout: float = 0.0,
        weight_decay: float | None = None,
        learning_rate: float = 5e-3,
        batch_size: int | None = None,
        max_epochs: int | None = None,
        early_stopping_rounds: int | None = None,
        validation_size: float = 0.125,
        validation: Any = None,
        time_limit: float | None = None,
        feature_types: FeatureTypes = None,
        callbacks: Sequence[Callable[..., Any]] | None = None,
        verbose: bool | int = False,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        device: str = "auto",
    ) -> None:
        self.additivity = additivity
        self.variant = variant
        self.encoder = encoder
        self.gate = gate
        self.n_experts = n_experts
        self.n_active = n_active
        self.n_members = n_members
        self.n_knots = n_knots
        self.n_ramps = n_ramps
        self.n_blocks = n_blocks
        self.hidden_dim = hidden_dim
        self.gate_rank = gate_rank
        self.normalization = normalization
        self.variation_penalty = variation_penalty
        self.output_penalty = output_penalty
        self.context_penalty = context_penalty
        self.expert_dropout = expert_dropout
        self.encoder_dropout = encoder_dropout
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_size = validation_size
        self.validation = validation
        self.time_limit = time_limit
        self.feature_types = feature_types
        self.callbacks = callbacks
        self.verbose = verbose
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    @abstractmethod
    def _read_task(self, columns: Columns, y: Any, weight: Array, offset: Any) -> tuple[Rows, Task]:
        """Return the rows and what is to be learned from those of positive weight; sets ``classes_``."""

    @abstractmethod
    def _read_target(self, y: Any, task: Task) -> AnyArray:
        """Return the target of an evaluation set, in terms of the training target."""

    @abstractmethod
    def _scan_task(self, survey: "Survey", roles: "Roles") -> tuple[Task, Array]:
        """Return what is to be learned from a surveyed scan, and the weight of every class; sets ``classes_``."""

    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any, offset: Any) -> Self:
        if y is None:
            raise DataError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        if isinstance(X, Scan):
            return self._fit_scan(X, y, sample_weight, eval_set, offset)
        columns = self._read_columns(X, is_fit=True)
        n_targets = len(np.atleast_1d(to_array(y)))
        if n_targets != columns.n_rows:
            raise DataError(
                "X and y must have one length: found input variables with inconsistent numbers of samples "
                f"[{columns.n_rows}, {n_targets}]."
            )
        weight = read_weight(sample_weight, columns.n_rows)
        kept = np.flatnonzero(weight > 0)
        rows, task = self._read_task(columns, y, weight, offset)
        rows = rows.take(kept)
        check_numbers(rows.columns, infer_kinds(rows.columns, self.feature_types), kept)
        settings = self._settings(weight[kept], n_features=len(columns.arrays))
        state = self._state_to_continue(rows.columns.names, len(rows.columns.arrays), task)
        training, validation = self._split(rows, kept, eval_set, settings, task=task, n_rows=columns.n_rows)
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
        )
        fitted = fit_in_memory(
            lambda config: self._train(prepared, task, replace(settings, training=config), state, seed=seed),
            settings.training,
            n_rows=len(training),
        )
        self._keep(
            fitted,
            prepared,
            loss=task.loss.name,
            n_rows=len(training),
            n_validation_rows=_count_held_out(training, validation, self.n_members),
            data_sha256=fingerprint(rows.columns, rows.target, rows.weight),
        )
        return self

    def fit_share(self, scan: Scan, y: Any, *, workers: Workers, checkpoints: Checkpoints | None = None) -> Self:
        """Fit to this worker's share of the rows, together with the other workers: what ``nae.scale`` runs in each.

        Every worker ends with the same model; with ``checkpoints`` a second try goes on where the first one ended.
        """
        if self.additivity == "auto":
            raise ConfigError("additivity='auto' is several trainings; several workers share one. Pass a number.")
        return self._fit_scan(scan, y, None, None, None, workers=workers, checkpoints=checkpoints)

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
        from nae.estimators.streaming import ScanPlan, WithSchema, read_roles, survey_roles

        if self.encoder == "mlp":
            raise ConfigError("encoder='mlp' needs its rows in memory; with a scan, leave encoder='piecewise'.")
        if self.validation is not None:
            raise ConfigError("validation must be None with a scan; pass eval_set=(X, y) to choose validation rows.")
        is_verbose = bool(self.verbose)
        roles = read_roles(scan, y, sample_weight, offset)
        scan, survey, n_own_rows = survey_roles(
            scan,
            roles,
            is_classes=is_classifier(self),
            feature_types=self.feature_types,
            is_verbose=is_verbose,
            workers=workers,
        )
        remember_columns(self, Columns(tuple(np.empty(0) for _ in roles.features), roles.features))
        task, class_weight = self._scan_task(survey, roles)
        total = survey.weight if survey.is_whole else None
        settings = self._resolve(survey.n_rows, total=total, n_features=len(roles.features))
        state = self._state_to_continue(roles.features, len(roles.features), task)
        schema = self.model_.schema if state else survey.schema(n_knots=settings.n_knots, n_levels=settings.n_levels)
        if checkpoints is not None:
            checkpoints = WithSchema(checkpoints, schema)
            schema = checkpoints.schema
        plan = ScanPlan(scan, roles, survey, schema, task, settings, class_weight, n_own_rows, workers)
        validation = None
        if eval_set is not None:
            validation = self._read_eval_set(eval_set, task, has_offset=bool(roles.offset))
        random = check_random_state(self.random_state)
        with plan.write(random, device=self.device, validation=validation, is_verbose=is_verbose) as written:

            def attempt(config: TrainingConfig) -> Fitted:
                return self._train(
                    written.prepared,
                    task,
                    replace(settings, training=config),
                    state,
                    seed=self._seed(),
                    workers=workers,
                    checkpoints=checkpoints,
                )

            # Several workers would have to agree on a smaller batch: they fail together instead.
            config = settings.training
            is_alone = workers.count == 1
            fitted = fit_in_memory(attempt, config, n_rows=survey.n_rows) if is_alone else attempt(config)
            self._keep(
                fitted,
                written.prepared,
                loss=task.loss.name,
                n_rows=len(written.prepared.source),
                n_validation_rows=written.n_validation_rows,
                data_sha256=written.fingerprint if workers.count == 1 else None,
                n_bad_rows=survey.bad_rows.count,
                n_unknown_rows=survey.bad_rows.n_unknown,
                baseline=survey.baseline,
            )
        return self

    def _keep(self, fitted: Fitted, prepared: Prepared, **facts: Any) -> None:
        """Keep the model, with a summary of how it was trained."""
        self._check_dial(fitted, prepared)
        best = fitted.history[fitted.history.best_epoch - 1]
        self.model_ = fitted.model.with_training(
            estimator=type(self).__name__,
            n_epochs=len(fitted.history),
            best_epoch=fitted.history.best_epoch,
            stopped=fitted.history.stopped,
            validation_loss=best.validation,
            table_error=fitted.table_error,
            device=str(prepared.place.device),
            **facts,
        )
        self.history_ = fitted.history
        self.n_iter_ = len(fitted.history)
        self.table_error_ = fitted.table_error
        self.__dict__.pop("_state", None)
        if self.warm_start:
            self._state = fitted.state

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _state_to_continue(
        self, names: tuple[str, ...] | None, n_features: int, task: Task
    ) -> dict[str, AnyArray] | None:
        """Return the network of the fit before, if this one goes on with it."""
        state: dict[str, AnyArray] | None = getattr(self, "_state", None) if self.warm_start else None
        if state is None:
            return None
        before = self.model_
        names = names or tuple(f"x{i}" for i in range(n_features))
        if (names, task.outputs, task.classes) != (before.feature_names, before.outputs, before.classes):
            raise DataError(
                "warm_start needs the features and classes of the fit before; they changed. "
                "Set warm_start=False to start again."
            )
        return state

    def _settings(self, weight: Array, *, n_features: int) -> Settings:
        is_whole = bool(np.all(weight == np.rint(weight)))
        return self._resolve(len(weight), total=float(weight.sum()) if is_whole else None, n_features=n_features)

    def _resolve(self, n_rows: int, *, total: float | None, n_features: int) -> Settings:
        """Return the settings for so many rows of a total weight, None where weights are not whole."""
        # Whole weights mean repetition, so they decide what counts as small; others are only relative.
        n_counted = n_rows if total is None else int(total)
        if n_counted > SMALL:
            n_counted = max(n_rows, SMALL + 1)
        return resolve(self.get_params(deep=False), n_rows=n_counted, n_features=n_features)

    def _split(
        self, rows: Rows, kept: IntArray, eval_set: Any, settings: Settings, *, task: Task, n_rows: int
    ) -> tuple[Rows, Rows | None]:
        """Return training and validation rows: as given, by a splitter or indices, or at random."""
        if eval_set is not None:
            return rows, self._read_eval_set(eval_set, task, has_offset=rows.offset is not None)
        if self.validation is not None:
            held_out = held_out_rows(self.validation, rows.target, kept, n_rows)
        elif settings.is_small or len(rows) < 2:
            return rows, None
        else:
            codes = rows.target.ravel() if task.classes else None
            random = check_random_state(self.random_state)
            if settings.n_folds is not None:
                return rows.with_folds(random_folds(settings.n_folds, codes, len(rows), random)), None
            held_out = random_rows(settings.validation_size, codes, len(rows), random)
        is_held_out = np.zeros(len(rows), dtype=bool)
        is_held_out[held_out] = True
        return rows.take(np.flatnonzero(~is_held_out)), rows.take(held_out)

    def _read_eval_set(self, eval_set: Any, task: Task, *, has_offset: bool) -> Rows:
        table, y, sample_weight, offset = read_eval_set(eval_set)
        columns = self._read_columns(table, is_fit=False)
        target = self._read_target(y, task)
        if len(target) != columns.n_rows or columns.n_rows == 0:
            raise DataError(f"eval_set must have one target per row; got {columns.n_rows} and {len(target)}.")
        if has_offset != (offset is not None):
            raise DataError(
                "offset must be given for the training rows and for eval_set, or for neither; "
                "pass eval_set=(X, y, sample_weight, offset)."
            )
        shift = read_offset(offset, columns.n_rows, len(task.outputs), is_per_class=len(task.classes) > 2)
        return Rows(columns, target, read_weight(sample_weight, columns.n_rows), shift)

    def _train(
        self,
        prepared: Prepared,
        task: Task,
        settings: Settings,
        state: dict[str, AnyArray] | None,
        *,
        seed: int,
        workers: Workers = ALONE,
        checkpoints: Checkpoints | None = None,
    ) -> Fitted:
        def fit(settings: Settings, state: dict[str, AnyArray] | None) -> Fitted:
            return fit_model(
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
            return fit(settings, state)
        if prepared.validation is None and prepared.source.held_out(self.n_members) is None:
            raise DataError(
                f"additivity='auto' needs rows to validate on; got {len(prepared.source)}, which are all used for "
                "training. Pass eval_set, or a number as additivity."
            )
        fitted, self.additivity_path_ = fit_path(fit, settings, lambda _: prepared.cells)
        return fitted

    def _check_dial(self, fitted: Fitted, prepared: Prepared) -> None:
        """Warn when the model is less additive than asked for."""
        if not isinstance(self.additivity, float) or fitted.model.n_experts == 1:
            return
        step = -(-len(prepared.cells) // 20_000)
        measured = float(metrics.additivity(fitted.model, prepared.cells.take(slice(None, None, step))))
        fitted.model.training["additivity"] = {"asked": self.additivity, "measured": measured}
        if measured < self.additivity - 0.03:
            warnings.warn(
                f"additivity={self.additivity:g} was asked for and {measured:.3f} reached: the penalty needs more "
                "steps or the interactions are too strong. Raise max_epochs, or accept what was measured.",
                NAEWarning,
                stacklevel=5,
            )

    def _read_columns(self, X: Any, *, is_fit: bool) -> Columns:
        columns = read_table(X)
        if not columns.arrays:
            raise DataError(
                f"Found array with 0 feature(s) (shape=({columns.n_rows}, 0)) while a minimum of 1 is required."
            )
        if is_fit and columns.n_rows == 0:
            raise DataError(
                f"Found array with 0 sample(s) (shape=(0, {len(columns.arrays)})) while a minimum of 1 is required."
            )
        if is_fit:
            remember_columns(self, columns)
        else:
            check_columns(self, columns)
        return columns

    def _cells(self, X: Any) -> Cells:
        columns = self._explained_columns(X)
        return self.model_.schema.locate(columns, dtype=self.model_.experts.dtype)

    def _explained_model(self) -> TableModel:
        check_is_fitted(self)
        return self.model_

    def _explained_columns(self, X: Any) -> Columns:
        check_is_fitted(self)
        return self._read_columns(X, is_fit=False)

    def contributions(self, X: Any, *, with_experts: bool = False) -> Contributions:
        """Return what every feature contributes to every row's score, with guaranteed bounds.

        Parameters
        ----------
        X
            A table.
        with_experts
            Also return the expert values and gate weights behind them.

        Returns
        -------
        Contributions
            ``values.sum(axis=1) + intercept`` is the score; the link's inverse makes it the prediction.
        """
        cells = self._cells(X)
        return self.model_.contributions(cells, with_experts=with_experts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to one file that holds no code, whole or not at all.

        ``nae.load`` reads the model in it, without torch and scikit-learn; :meth:`load` gives the estimator back, but
        for parameters that are functions or other objects.
        """
        check_is_fitted(self)
        classes = getattr(self, "classes_", None)
        estimator = {
            "class": type(self).__name__,
            "params": encode_params(self.get_params(deep=False)),
            "classes": None if classes is None else encode_classes(classes),
            "history": encode_history(self.history_),
            "table_error": float(self.table_error_),
        }
        save(self.model_, path, extra={"estimator": estimator})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an estimator written by :meth:`save`. Nothing in the file is executed."""
        model, extra = read_archive(path)
        found = extra.get("estimator")
        if not isinstance(found, dict):
            raise FormatError(f"{path} must hold an estimator; it holds a model alone. Use nae.load.")
        if found.get("class") != cls.__name__:
            raise FormatError(f"{path} must hold a {cls.__name__}; it holds a {str(found.get('class'))[:40]}.")
        if bool(model.classes) != (found.get("classes") is not None):
            raise FormatError(f"{path} must hold the classes of its model.")
        estimator = cls()
        estimator.set_params(**decode_params(found.get("params"), estimator.get_params(deep=False)))
        estimator.model_ = model
        estimator.history_ = decode_history(found.get("history"))
        estimator.n_iter_ = len(estimator.history_)
        error = found.get("table_error")
        estimator.table_error_ = error if isinstance(error, float) else 0.0
        estimator.n_features_in_ = model.n_features
        if model.schema.has_names:
            estimator.feature_names_in_ = np.array(model.feature_names, dtype=object)
        if model.classes:
            estimator.classes_ = decode_classes(found["classes"], model.classes)
        return estimator

    @property
    def intercept_(self) -> Any:
        """The intercept: a number, or one per output."""
        check_is_fitted(self)
        return float(self.model_.intercept[0]) if self.model_.n_outputs == 1 else self.model_.intercept

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _count_held_out(rows: Rows, validation: Rows | None, n_members: int) -> int:
    if rows.fold is not None:
        return int((rows.fold < n_members).sum())
    return 0 if validation is None else len(validation)
