"""Contributions as features of another model: a transformer for scikit-learn."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from nae._typing import AnyArray, Array
from nae.errors import ConfigError
from nae.tables.model import TableModel

__all__ = ["ContributionTransformer"]


class ContributionTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn rows into the contributions of their features.

    Parameters
    ----------
    model
        An estimator, which :meth:`fit` fits, or a :class:`~nae.tables.TableModel`, which is used as it is.
    is_fitted : bool
        If true, the estimator is used as it is, and :meth:`fit` learns nothing. Default: False.

    Attributes
    ----------
    model_
        The model whose contributions are returned.

    Examples
    --------
    >>> import numpy as np
    >>> from nae import ContributionTransformer, NAERegressor
    >>> X = np.random.default_rng(0).uniform(size=(100, 2))
    >>> model = ContributionTransformer(NAERegressor(n_members=1, max_epochs=5, random_state=0))
    >>> model.fit(X, X[:, 0]).get_feature_names_out()
    array(['contribution of x0', 'contribution of x1'], dtype=object)
    """

    model_: Any

    def __init__(self, model: Any = None, *, is_fitted: bool = False) -> None:
        self.model = model
        self.is_fitted = is_fitted

    def fit(self, X: Any, y: Any = None, **options: Any) -> Self:
        """Fit the estimator. Options such as ``sample_weight`` are passed on to it."""
        if self.model is None:
            raise ConfigError("ContributionTransformer needs a model: an estimator, or a TableModel.")
        if isinstance(self.model, TableModel) or self.is_fitted:
            self.model_ = self.model
        else:
            self.model_ = clone(self.model).fit(X, y, **options)
        return self

    def transform(self, X: Any) -> Array:
        """Return the contributions, one column per feature, or per feature and output."""
        check_is_fitted(self)
        values = self.model_.contributions(X).values
        return np.asarray(values.reshape(len(values), -1))

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return the names of the columns: 'contribution of x', or for several outputs 'contribution of x to y'."""
        check_is_fitted(self)
        tables: TableModel = getattr(self.model_, "model_", self.model_)
        outputs = [f" to {name}" for name in tables.outputs] if tables.n_outputs > 1 else [""]
        names = [f"contribution of {name}{output}" for name in tables.feature_names for output in outputs]
        return np.array(names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.target_tags.required = not (self.is_fitted or isinstance(self.model, TableModel))
        return tags
