"""NAERegressor."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from nae._typing import Array
from nae.encoding.kinds import FeatureTypes
from nae.estimators.base import NAEEstimator
from nae.estimators.docstrings import documented
from nae.estimators.targets import NumberTarget, Target
from nae.parameters import (
    BoundsName,
    Device,
    EffortName,
    Encoder,
    EngineName,
    Gate,
    LossName,
    Normalization,
    NumberParameters,
    Parameters,
    Variant,
)
from nae.quality import explained

__all__ = ["NAERegressor"]


@documented(NumberParameters, Parameters)
class NAERegressor(RegressorMixin, NAEEstimator):  # type: ignore[misc]
    """Neural additive experts for numbers.

    Attributes
    ----------
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
    >>> from nae import NAERegressor
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> y = np.where(X[:, 1] > 0.5, X[:, 0], -X[:, 0])
    >>> model = NAERegressor(random_state=0, n_members=1, max_epochs=50).fit(X, y)
    >>> model.contributions(X[:3]).values.shape
    (3, 2)
    """

    loss: str
    quantile: float | Sequence[float]
    huber_delta: float
    tweedie_power: float

    def __init__(
        self,
        loss: LossName = "squared",
        *,
        quantile: float | Sequence[float] = 0.5,
        huber_delta: float = 1.35,
        tweedie_power: float = 1.5,
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

    def predict(self, X: Any, *, offset: Any = None) -> Array:
        """Return the predicted target: (row,), or (row, output). Several quantiles never cross."""
        cells = self._cells(X)
        return np.asarray(self.model_.predict(cells, offset=offset))

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """Return R² for ``loss='squared'`` and 'huber'; D², the explained share of the loss, for the others.

        A model that was fitted with an offset is measured with one. ``nae.quality.measure`` has more measures.
        """
        check_is_fitted(self)
        columns = self._explained_columns(X)
        return explained(self, columns, y, sample_weight=sample_weight, offset=offset)

    def _target(self) -> Target:
        return NumberTarget(NumberParameters.read(self.get_params(deep=False)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self.loss != "quantile" or np.ndim(self.quantile) == 0
        tags.target_tags.positive_only = self.loss in ("poisson", "gamma", "tweedie")
        return tags
