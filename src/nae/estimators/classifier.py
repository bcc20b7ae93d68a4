"""NAEClassifier."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from nae._typing import AnyArray, Array
from nae.encoding.kinds import FeatureTypes
from nae.estimators.base import NAEEstimator
from nae.estimators.docstrings import documented
from nae.estimators.targets import ClassTarget, Target
from nae.parameters import (
    BoundsName,
    ClassParameters,
    Device,
    EffortName,
    Encoder,
    EngineName,
    Gate,
    Normalization,
    Parameters,
    Variant,
)
from nae.quality import check_offset

__all__ = ["NAEClassifier"]


@documented(ClassParameters, Parameters)
class NAEClassifier(ClassifierMixin, NAEEstimator):  # type: ignore[misc]
    """Neural additive experts for classes, two or more, of any label type.

    Attributes
    ----------
    classes_ : ndarray
        The class labels.
    class_weight_ : ndarray
        The weight of every class. An offset of its logarithm gives the weighted probabilities: for two
        classes ``offset=np.full(len(X), np.log(class_weight_[1] / class_weight_[0]))``, for more
        ``offset=np.tile(np.log(class_weight_), (len(X), 1))``.
    model_ : TableModel
        The model: numpy tables.
    history_ : History
        Loss, validation loss and additivity of every epoch.
    feature_importances_ : array of shape (feature,)
        Standard deviation of each feature's contribution, as shares of their sum.
    additivity_path_ : tuple of PathPoint
        With ``additivity='auto'``, every model that was considered.
    smoothness_ : float
        With ``smoothness='auto'``, the one that was chosen.
    table_error_ : float
        With ``encoder='mlp'``, the largest difference seen between network and tables; 0 otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from nae import NAEClassifier
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> y = np.where(X[:, 0] > X[:, 1], "left", "right")
    >>> model = NAEClassifier(random_state=0, n_members=1, max_epochs=50).fit(X, y)
    >>> model.predict_proba(X[:3]).shape
    (3, 2)
    """

    classes_: AnyArray

    class_weight: Any
    calibrate: Any
    positive_class: Any

    def __init__(
        self,
        *,
        class_weight: Any = None,
        calibrate: Any = False,
        positive_class: Any = None,
        additivity: float | Literal["auto"] | None = None,
        variant: Variant = "nae",
        encoder: Encoder = "piecewise",
        gate: Gate = "auto",
        n_experts: int | None = None,
        n_active: int | None = None,
        effort: EffortName = "normal",
        n_members: int | None = None,
        n_knots: int | None = None,
        n_ramps: int | None = None,
        n_blocks: int = 2,
        hidden_dim: int | None = None,
        gate_rank: int = 64,
        normalization: Normalization = "layer",
        variation_penalty: float = 0.1,
        output_penalty: float | None = None,
        context_penalty: float | None = None,
        expert_dropout: float | None = None,
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
        device: Device = "auto",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        max_effect: Any = None,
        convex: Any = None,
        concave: Any = None,
        smoothness: Any = None,
        bounds: BoundsName = "data",
        engine: EngineName = "auto",
    ) -> None:
        self._store(locals())

    def decision_function(self, X: Any, *, offset: Any = None) -> Array:
        """Return log-odds of the second class (row,), or one score per class (row, class), as scikit-learn asks for.

        Of two classes it is the sum of intercept and contributions, or minus that sum where ``positive_class`` is the
        first of ``classes_``.
        """
        cells = self._cells(X)
        score = self.model_.decision_function(cells, offset=offset)
        return -score if self._is_mirrored else score

    def predict(self, X: Any, *, offset: Any = None) -> AnyArray:
        """Return the most probable class of every row; with ``class_weight``, the largest probability times weight."""
        cells = self._cells(X)
        chosen = self.model_.choose(self.model_.predict_proba(cells, offset=offset))
        return np.asarray(self.classes_[1 - chosen if self._is_mirrored else chosen])

    def predict_proba(self, X: Any, *, offset: Any = None) -> Array:
        """Return the probability of every class, (row, class), in the order of ``classes_``."""
        cells = self._cells(X)
        found = self.model_.predict_proba(cells, offset=offset)
        return np.ascontiguousarray(found[:, ::-1]) if self._is_mirrored else found

    def predict_log_proba(self, X: Any, *, offset: Any = None) -> Array:
        """Return the logarithm of the probability of every class."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, offset=offset))

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """Return the accuracy; a model that was fitted with an offset is measured with one.

        ``nae.quality.measure`` has more measures.
        """
        from sklearn.metrics import accuracy_score

        check_is_fitted(self)
        check_offset(self.model_, offset)
        return float(accuracy_score(y, self.predict(X, offset=offset), sample_weight=sample_weight))

    @property
    def class_weight_(self) -> Array:
        """The weight of every class, ones where ``class_weight`` is not given."""
        weight = self._explained_model().class_weight or (1.0,) * len(self.classes_)
        return np.array(weight[::-1] if self._is_mirrored else weight)

    @property
    def _is_mirrored(self) -> bool:
        """Whether the model speaks for the first of two classes."""
        return len(self.classes_) == 2 and self.model_.classes[0] != str(self.classes_.tolist()[0])

    def _target(self) -> Target:
        return ClassTarget(ClassParameters.read(self.get_params(deep=False)))
