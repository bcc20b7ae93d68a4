"""Contributions as features of another model, in scikit-learn's terms."""

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
        An estimator, fitted by :meth:`fit`; or a :class:`~nae.tables.TableModel`, used as it is.
    is_fitted : bool
        Use the estimator as it is, too: :meth:`fit` then learns nothing.

    Attributes
    ----------
    model_
        The model whose contributions are given out.

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
        """Fit the estimator; options such as ``sample_weight`` go to it."""
        if self.model is None:
            raise ConfigError("ContributionTransformer needs a model: an estimator, or a TableModel.")
        if isinstance(self.model, TableModel) or self.is_fitted:
            self.model_ = self.model
        else:
            self.model_ = clone(self.model).fit(X, y, **options)
        return self

    def transform(self, X: Any) -> Array:
        """Return the contributions, (row, feature), or (row, feature and output)."""
        check_is_fitted(self)
        values = self.model_.contributions(X).values
        return np.asarray(values.reshape(len(values), -1))

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return one name per column: 'contribution of x', or 'contribution of x to y' for several outputs."""
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
