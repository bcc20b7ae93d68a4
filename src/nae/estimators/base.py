"""The common base of both estimators: fitting, saving, and all results that are computed from the model."""

import os
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from nae._typing import Array
from nae.contributions import Contributions
from nae.encoding import Cells, Columns
from nae.errors import ConfigError, DataError
from nae.estimators.given import Before, Given, State
from nae.estimators.learning import Learned, learn
from nae.estimators.path import PathPoint, Train
from nae.estimators.reading import Expected
from nae.estimators.saving import load_estimator, save_estimator
from nae.estimators.targets import Target
from nae.explanation.reference import require_statistics
from nae.parameters import Parameters
from nae.scanning.scan import Scan
from nae.tables.answers import Answers
from nae.tables.model import TableModel
from nae.training import History
from nae.training.checkpoint import Checkpoints
from nae.training.workers import Workers

__all__ = ["NAEEstimator"]


class NAEEstimator(Answers, BaseEstimator):  # type: ignore[misc]
    """The base of both estimators; abstract. The final classes define the target and the predictions."""

    model_: TableModel
    history_: History
    n_iter_: int
    table_error_: float
    n_features_in_: int
    additivity_path_: tuple[PathPoint, ...]
    smoothness_: float

    @abstractmethod
    def _target(self) -> Target:
        """Return the target to learn. Parameters that break their rules are an error."""

    def _store(self, given: dict[str, Any]) -> None:
        """Store the arguments of ``__init__``, given as its ``locals()``, without changes."""
        for name, value in given.items():
            if name != "self":
                setattr(self, name, value)

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, eval_set: Any = None, offset: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X
            A data frame (pandas, polars, pyarrow), an array or nested lists; or :func:`nae.scan` of files that need
            not fit in memory, where ``y``, ``sample_weight`` and ``offset`` are names of its columns.
        y
            The target. For a regressor, one number per row or one column per output; for a classifier, one class per
            row.
        sample_weight
            One weight per row: 2 is the row twice, 0 is the row absent.
        eval_set
            ``(X, y)`` to validate on, instead of a part of the training rows; ``(X, y, sample_weight, offset)``
            if the training rows have weights or an offset.
        offset
            One number per row on the scale of the score, such as the log of an exposure; for more than two classes,
            one per row and class.
        """
        given = self._given(X, y, sample_weight=sample_weight, eval_set=eval_set, offset=offset)
        return self._keep(learn(given))

    def fit_with(
        self, train: Train, X: Any, y: Any, *, sample_weight: Any = None, eval_set: Any = None, offset: Any = None
    ) -> Self:
        """Fit to a table in memory, and call ``train`` with the prepared rows. ``nae.scale`` uses this method.

        ``train`` takes the arguments of :func:`~nae.estimators.fitting.fit_model`.
        """
        given = self._given(X, y, sample_weight=sample_weight, eval_set=eval_set, offset=offset)
        return self._keep(learn(given, train=train))

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
        """Fit to this worker's share of the rows, together with the other workers, as ``nae.scale`` does.

        All workers end with the same model. With ``checkpoints``, a second attempt continues where the first one ended.
        """
        given = self._given(scan, y, sample_weight=sample_weight, offset=offset)
        for name in ("additivity", "smoothness"):
            if isinstance(getattr(given.parameters, name), str):
                raise ConfigError(
                    f"{name}='auto' trains several times, but several workers share one training. Pass a number."
                )
        return self._keep(learn(given, workers=workers, checkpoints=checkpoints))

    def _given(self, X: Any, y: Any, **beside: Any) -> Given:
        """Return the arguments of fit as one value. Later steps do not read the estimator."""
        owner = type(self).__name__
        if y is None:
            raise DataError(f"{owner} requires y to be passed, but the target y is None.")
        parameters = Parameters.read(self.get_params(deep=False))
        state: State | None = getattr(self, "_state", None) if parameters.warm_start else None
        before = None if state is None else Before(self.model_, state)
        return Given(owner, parameters, self._target(), before, X, y, **beside)

    def _keep(self, learned: Learned) -> Self:
        """Store what was learned, and remove everything of an earlier fit. A fit that fails changes nothing."""
        for name in ("_state", "additivity_path_", "smoothness_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self.model_, self.history_ = learned.model, learned.history
        self.n_iter_, self.table_error_ = len(learned.history), learned.table_error
        self.n_features_in_ = learned.expected.n_features
        if learned.expected.names is not None:
            self.feature_names_in_ = np.array(learned.expected.names, dtype=object)
        if learned.labels is not None:
            self.classes_ = learned.labels
        if learned.path is not None:
            self.additivity_path_ = learned.path
        if learned.smoothness is not None:
            self.smoothness_ = learned.smoothness
        if learned.state is not None:
            self._state = learned.state
        return self

    def _explained_columns(self, X: Any) -> Columns:
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        return Expected(type(self).__name__, self.n_features_in_, None if names is None else tuple(names)).read(X)

    def _cells(self, X: Any) -> Cells:
        return self._explained_model().schema.locate(self._explained_columns(X), dtype=self.model_.experts.dtype)

    def _explained_model(self) -> TableModel:
        check_is_fitted(self)
        return self.model_

    def contributions(self, X: Any, *, with_experts: bool = False) -> Contributions:
        """Return the contribution of every feature to every row's score, with guaranteed bounds.

        Parameters
        ----------
        X
            A table.
        with_experts
            Also return the expert values and gate weights behind them.

        Returns
        -------
        Contributions
            ``values.sum(axis=1) + intercept`` is the score. The inverse link of the score is the prediction.
        """
        cells = self._cells(X)
        return self.model_.contributions(cells, with_experts=with_experts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to one file that holds no code. If writing fails, no file is left.

        ``nae.load`` reads the model in it, without torch and scikit-learn. :meth:`load` returns the estimator;
        parameters that are functions or other objects get their defaults.
        """
        check_is_fitted(self)
        save_estimator(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool = False) -> Self:
        """Read an estimator written by :meth:`save`. Nothing in the file is executed.

        If ``verify``, what the fit was made to keep is proven again. A promise that is not proven is an error.
        """
        estimator = load_estimator(cls, path)
        if verify:
            estimator.model_.verify(name=str(path))
        return estimator

    @property
    def intercept_(self) -> Any:
        """The intercept: a number, or one per output."""
        check_is_fitted(self)
        return float(self.model_.intercept[0]) if self.model_.n_outputs == 1 else self.model_.intercept

    @property
    def feature_importances_(self) -> Array:
        """The standard deviation of every feature's contribution over the training rows, as shares of their sum.

        With several outputs, it is the root mean square over them. ``explain_global()`` has it in units of the score.
        """
        importance = np.sqrt(require_statistics(self._explained_model()).variance.mean(axis=1))
        total = importance.sum()
        return np.asarray(importance / total if total > 0 else np.zeros_like(importance))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        return tags
