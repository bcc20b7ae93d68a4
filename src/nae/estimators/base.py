"""What both estimators share once they are fitted: everything that is read off the model."""

import os
from typing import Any, Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from nae._typing import Array
from nae.contributions import Contributions
from nae.encoding import Cells, Columns
from nae.estimators.learning import Learner
from nae.estimators.reading import read_columns
from nae.estimators.saving import load_estimator, save_estimator
from nae.explanation.reference import require_statistics
from nae.tables.explains import Explains
from nae.tables.model import TableModel

__all__ = ["NAEEstimator"]


class NAEEstimator(Explains, Learner):
    """What is read off the model of either estimator; abstract."""

    def _cells(self, X: Any) -> Cells:
        check_is_fitted(self)
        return self.model_.schema.locate(read_columns(self, X, is_fit=False), dtype=self.model_.experts.dtype)

    def _explained_model(self) -> TableModel:
        check_is_fitted(self)
        return self.model_

    def _explained_columns(self, X: Any) -> Columns:
        check_is_fitted(self)
        return read_columns(self, X, is_fit=False)

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
        save_estimator(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an estimator written by :meth:`save`. Nothing in the file is executed."""
        return load_estimator(cls, path)

    @property
    def intercept_(self) -> Any:
        """The intercept: a number, or one per output."""
        check_is_fitted(self)
        return float(self.model_.intercept[0]) if self.model_.n_outputs == 1 else self.model_.intercept

    @property
    def feature_importances_(self) -> Array:
        """The standard deviation of every feature's contribution over the training rows, as shares of their sum.

        Over several outputs, its root mean square. ``explain_global()`` has it in units of the score.
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
        tags.input_tags.string = True
        return tags
