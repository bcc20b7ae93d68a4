"""What both estimators share: parameters, reading input, and everything that is read off the model."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from nae._typing import AnyArray, Array, IntArray
from nae.contributions import Contributions
from nae.encoding import Columns, read_table
from nae.encoding.kinds import FeatureTypes
from nae.errors import ConfigError, DataError
from nae.estimators.fitting import Fitted, Rows, Task, fit_model
from nae.estimators.settings import SMALL, Settings, resolve
from nae.tables.model import TableModel
from nae.training import History

__all__ = ["NAEEstimator"]


class NAEEstimator(BaseEstimator):  # type: ignore[misc]
    """Parameters and plumbing of both estimators; abstract."""

    model_: TableModel
    history_: History
    n_features_in_: int

    def __init__(
        self,
        *,
        additivity: float | None = None,
        variant: str = "nae",
        encoder: str = "piecewise",
        gate: str = "auto",
        n_experts: int | None = None,
        n_active: int | None = None,
        n_members: int = 4,
        n_knots: int | None = None,
        n_ramps: int = 48,
        n_blocks: int = 2,
        hidden_dim: int = 64,
        gate_rank: int = 64,
        normalization: str = "layer",
        variation_penalty: float = 0.1,
        output_penalty: float = 0.0,
        expert_dropout: float = 0.1,
        encoder_dropout: float = 0.0,
        weight_decay: float = 1e-2,
        learning_rate: float = 3e-3,
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
    def _read_task(self, y: Any, weight: Array, offset: Array | None) -> tuple[AnyArray, Task]:
        """Return the target and what is to be learned from it; sets ``classes_``."""

    @abstractmethod
    def _read_target(self, y: Any) -> AnyArray:
        """Return the target of an evaluation set, in terms of the training target."""

    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any, offset: Any) -> Self:
        if y is None:
            raise DataError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        columns = self._read_columns(X, is_fit=True)
        weight = _read_weight(sample_weight, columns.n_rows)
        shift = _read_offset(offset, columns.n_rows)
        kept = np.flatnonzero(weight > 0)
        if len(kept) == 0:
            raise DataError("At least one row must have a positive weight; all are zero.")
        rows, task = self._training_rows(columns, y, weight, shift, kept)
        settings = self._settings(rows)
        rows, validation = self._split(rows, kept, eval_set, settings, n_outputs=len(task.outputs))
        fitted = self._train(rows, validation, task, settings)
        self.model_ = fitted.model.with_training(**self._summary(fitted, rows, validation, task))
        self.history_ = fitted.history
        self.n_iter_ = len(fitted.history)
        self.table_error_ = fitted.table_error
        if self.warm_start:
            self._state = fitted.state
        return self

    def _training_rows(
        self, columns: Columns, y: Any, weight: Array, offset: Array | None, kept: IntArray
    ) -> tuple[Rows, Task]:
        target, task = self._read_task(y, weight, offset)
        if len(target) != columns.n_rows:
            raise DataError(
                "X and y must have one length: found input variables with inconsistent numbers of samples "
                f"[{columns.n_rows}, {len(target)}]."
            )
        weight = weight * self._class_weights(target)
        return Rows(columns, target, weight, offset).take(kept), task

    def _class_weights(self, target: AnyArray) -> Array | float:
        return 1.0

    def _settings(self, rows: Rows) -> Settings:
        params = self.get_params(deep=False)
        # Whole weights mean repetition, so they decide what counts as small; others are only relative.
        is_whole = bool(np.all(rows.weight == np.rint(rows.weight)))
        n_rows = int(rows.weight.sum()) if is_whole else len(rows)
        if n_rows > SMALL:
            n_rows = max(len(rows), SMALL + 1)
        return resolve(params, n_rows=n_rows, n_features=len(rows.columns.arrays))

    def _split(
        self, rows: Rows, kept: IntArray, eval_set: Any, settings: Settings, *, n_outputs: int
    ) -> tuple[Rows, Rows | None]:
        """Return training and validation rows: as given, by a splitter or indices, or at random."""
        if eval_set is not None:
            return rows, self._read_eval_set(eval_set, n_outputs)
        if self.validation is not None:
            return _split_by(self.validation, rows, kept)
        if settings.is_small:
            return rows, None
        stratify = rows.target if rows.target.ndim == 1 and np.bincount(rows.target).min() > 1 else None
        random = check_random_state(self.random_state)
        everything = np.arange(len(rows))
        if stratify is not None and len(np.unique(stratify)) > settings.validation_size * len(rows):
            stratify = None
        train, held_out = train_test_split(
            everything, test_size=settings.validation_size, random_state=random, stratify=stratify
        )
        return rows.take(train), rows.take(held_out)

    def _read_eval_set(self, eval_set: Any, n_outputs: int) -> Rows:
        if isinstance(eval_set, list) and len(eval_set) == 1:
            eval_set = eval_set[0]
        if not isinstance(eval_set, tuple) or len(eval_set) not in (2, 3):
            raise ConfigError("eval_set must be a pair (X, y), or (X, y, sample_weight).")
        columns = self._read_columns(eval_set[0], is_fit=False)
        target = self._read_target(eval_set[1])
        if len(target) != columns.n_rows:
            raise DataError(f"eval_set must have one target per row; got {columns.n_rows} and {len(target)}.")
        weight = _read_weight(eval_set[2] if len(eval_set) == 3 else None, columns.n_rows)
        return Rows(columns, target, weight, None)

    def _train(self, rows: Rows, validation: Rows | None, task: Task, settings: Settings) -> Fitted:
        state = getattr(self, "_state", None) if self.warm_start else None
        return fit_model(
            rows,
            validation,
            task,
            settings,
            feature_types=self.feature_types,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            device=self.device,
            n_jobs=self.n_jobs,
            callbacks=self.callbacks or (),
            is_verbose=bool(self.verbose),
            schema=self.model_.schema if state is not None else None,
            state=state,
        )

    def _summary(self, fitted: Fitted, rows: Rows, validation: Rows | None, task: Task) -> dict[str, Any]:
        best = fitted.history[fitted.history.best_epoch - 1]
        return {
            "estimator": type(self).__name__,
            "loss": task.loss.name,
            "n_rows": len(rows),
            "n_validation_rows": 0 if validation is None else len(validation),
            "n_epochs": len(fitted.history),
            "best_epoch": fitted.history.best_epoch,
            "stopped": fitted.history.stopped,
            "validation_loss": best.validation,
            "table_error": fitted.table_error,
        }

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
        named = _Named(columns)
        validate_data(self, named, reset=is_fit, skip_check_array=True)
        return columns

    def _cells(self, X: Any) -> Any:
        check_is_fitted(self)
        columns = self._read_columns(X, is_fit=False)
        return self.model_.schema.locate(columns, dtype=self.model_.experts.dtype)

    def decision_function(self, X: Any, *, offset: Any = None) -> Array:
        """Return the score of every row, before the link: (row,), or (row, output)."""
        cells = self._cells(X)
        return self.model_.decision_function(cells, offset=offset)

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
            ``values.sum(axis=1) + intercept`` equals :meth:`decision_function`.
        """
        cells = self._cells(X)
        return self.model_.contributions(cells, with_experts=with_experts)

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


class _Named:
    """The names and shape of a table, in the form scikit-learn's checks read."""

    def __init__(self, columns: Columns) -> None:
        self.shape = (columns.n_rows, len(columns.arrays))
        if columns.names is not None:
            self.columns = np.array(columns.names, dtype=object)
            self._names = columns.names

    def __len__(self) -> int:
        return self.shape[0]

    def __getattr__(self, name: str) -> Any:
        if name == "__dataframe__" and "_names" in self.__dict__:
            return lambda: self
        raise AttributeError(name)

    def column_names(self) -> tuple[str, ...]:
        return self._names


def _read_weight(sample_weight: Any, n_rows: int) -> Array:
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise DataError(f"sample_weight must have one value per row ({n_rows}); got shape {weight.shape}.")
    if not np.isfinite(weight).all() or weight.min() < 0:
        row = int(np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))[0])
        raise DataError(f"sample_weight must be finite and not negative; row {row} has {weight[row]:g}.")
    return weight


def _read_offset(offset: Any, n_rows: int) -> Array | None:
    if offset is None:
        return None
    given = np.asarray(offset, dtype=np.float64)
    given = given[:, None] if given.ndim == 1 else given
    if len(given) != n_rows or given.ndim != 2:
        raise DataError(f"offset must have one value per row ({n_rows}); got shape {given.shape}.")
    if not np.isfinite(given).all():
        row = int(np.flatnonzero(~np.isfinite(given).all(axis=1))[0])
        raise DataError(f"offset must be finite; row {row} is not.")
    return given


def _split_by(validation: Any, rows: Rows, kept: IntArray) -> tuple[Rows, Rows]:
    """Split by a splitter's first fold or by the indices of the validation rows."""
    if hasattr(validation, "split"):
        train, held_out = next(iter(validation.split(np.zeros(len(rows)), rows.target)))
        return rows.take(train), rows.take(held_out)
    indices = np.asarray(validation)
    if indices.dtype == bool:
        indices = np.flatnonzero(indices)
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise ConfigError("validation must be a splitter, or the indices (or a mask) of the validation rows.")
    is_held_out = np.isin(kept, indices)
    if not is_held_out.any() or is_held_out.all():
        raise ConfigError("validation must leave rows on both sides; it takes none or all of them.")
    return rows.take(np.flatnonzero(~is_held_out)), rows.take(np.flatnonzero(is_held_out))
