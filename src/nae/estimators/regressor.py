"""NAERegressor."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from nae._typing import Array
from nae.encoding.kinds import FeatureTypes
from nae.estimators.base import NAEEstimator
from nae.estimators.targets import NumberTarget, Target
from nae.parameters import NumberParameters
from nae.quality import explained

__all__ = ["NAERegressor"]


class NAERegressor(RegressorMixin, NAEEstimator):  # type: ignore[misc]
    """Neural additive experts for numbers.

    Parameters
    ----------
    loss : {'squared', 'absolute', 'huber', 'quantile', 'poisson', 'gamma', 'tweedie'}
        What is minimised. The last three predict through a log link: contributions multiply.
    quantile : float
        The quantile of ``loss='quantile'``.
    huber_delta : float
        Where ``loss='huber'`` turns linear, in units of the target's spread: the range without its lowest and highest
        tenths, divided by 2.563, which is the standard deviation of a normal target and does not see outliers. The
        standard deviation stands in where that range is 0.
    tweedie_power : float
        The power of ``loss='tweedie'``, between 1 and 2.
    additivity : float, 'auto' or None
        How much of each contribution's variance its own value must explain, at least, in the mean over the features
        (:func:`nae.metrics.additivity`): 1 is a GAM, ``None`` asks for nothing, 'auto' takes the most additive model
        within one standard error of the best on validation.
    variant : {'nae', 'nae-e', 'nae-d'}
        Softmax routing, equal weights over the active experts, or a gate that sees its own feature only.
    encoder : {'piecewise', 'mlp'}
        Knots with a piecewise-linear input, or the paper's network on rows.
    gate : {'auto', 'additive', 'low-rank', 'deep', 'diagonal'}
        How features decide about each other's experts; 'auto' is additive or low-rank, whichever is cheaper.
    n_experts : int or None
        Experts per feature (the paper's K). Unless given: 8; up to 64 features, 16 from 32,000 rows on (10,000 with
        classes), and for numbers where ``additivity`` is asked for; 64 for 'nae-d'. ``additivity=1`` has one.
    n_active : int or None
        Experts that take part at once (the paper's C); all unless given, half of them for 'nae-e'.
    n_members : int
        Networks trained side by side and averaged; each is validated on rows of its own.
    n_knots : int or None
        Most knots of a number, and most levels of a category before the rare ones share one; 128 unless given, fewer
        knots beyond 64 features and below 512 rows, twice as many for an additive model from 10,000 rows on.
    n_ramps : int or None
        Resolution of the piecewise-linear input; 48 unless given, 64 for an additive model from 10,000 rows on.
    n_blocks : int
        Depth of the encoders.
    hidden_dim : int or None
        Width of the encoders; 32 unless given, 64 from 32,000 rows on (10,000 with classes) and up to 64 features.
    gate_rank : int
        Width of a low-rank or deep gate.
    normalization : {'layer', 'batch'}
        Norm of the blocks of ``encoder='mlp'``.
    variation_penalty : float
        Weight of the spread of the experts (the paper's lambda).
    output_penalty : float or None
        Weight of the mean square of the contributions; none unless given, or 0.01 where ``additivity`` is asked for,
        so that contributions do not reach it by growing and cancelling each other.
    context_penalty : float or None
        Weight of the share that context has in the contributions' variance: 0.05 unless given, and none with
        ``encoder='mlp'``. Where ``additivity`` is asked for, it grows until the target is met.
    expert_dropout : float or None
        Share of the experts' weights dropped in training; unless given, 0.1 where classes are learned by
        ``variant='nae'``, and none elsewhere. Nothing is dropped where ``additivity`` is asked for, and up to 256 rows.
    encoder_dropout : float
        Share of the hidden units dropped in training, with ``encoder='mlp'`` only.
    weight_decay : float or None
        Of AdamW; 0.1 unless given, and up to 1 where there are many pairs of features for every row.
    learning_rate : float
        Of AdamW. It stays until validation stops improving, then falls to zero.
    batch_size, max_epochs, early_stopping_rounds : int or None
        Rows of a step, most epochs, and epochs without progress on validation before stopping; chosen by the
        number of rows unless given.
    validation_size : float
        Share of the rows held out to choose the best epoch: the rows are divided into so many equal parts as come
        closest to it (two at least), and members hold out one each, in turn. Up to 256 rows, what a row holds decides
        its part, so that a weight of 2 is the row twice.
    validation : splitter, indices or None
        Which rows to hold out instead: a scikit-learn splitter (its first split), indices or a mask.
    time_limit : float or None
        Seconds after which training stops at the end of an epoch, keeping the best.
    feature_types : dict, list or None
        'number', 'boolean' or 'category' by column name, or one word per column; inferred unless given.
    callbacks : list of callables or None
        Called after every epoch with the keywords ``epoch, n_epochs, loss, validation, additivity, seconds``; one
        that returns True or 'stop' ends training.
    verbose : bool
        Show a progress bar.
    warm_start : bool
        Start the next fit from the weights of this one.
    random_state : int, RandomState or None
        Seed: the same seed gives the same model, bit for bit, on one machine.
    n_jobs : int or None
        Threads.
    device : {'auto', 'cpu', 'cuda'}
        Where to train.

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
    quantile: float
    huber_delta: float
    tweedie_power: float

    def __init__(
        self,
        loss: str = "squared",
        *,
        quantile: float = 0.5,
        huber_delta: float = 1.35,
        tweedie_power: float = 1.5,
        additivity: float | str | None = None,
        variant: str = "nae",
        encoder: str = "piecewise",
        gate: str = "auto",
        n_experts: int | None = None,
        n_active: int | None = None,
        n_members: int = 8,
        n_knots: int | None = None,
        n_ramps: int | None = None,
        n_blocks: int = 2,
        hidden_dim: int | None = None,
        gate_rank: int = 64,
        normalization: str = "layer",
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
        device: str = "auto",
    ) -> None:
        self._store(locals())

    def predict(self, X: Any, *, offset: Any = None) -> Array:
        """Return the predicted target: (row,), or (row, output)."""
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
        tags.target_tags.multi_output = True
        tags.target_tags.positive_only = self.loss in ("poisson", "gamma", "tweedie")
        return tags
