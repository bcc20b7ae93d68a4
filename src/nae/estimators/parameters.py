"""The parameters that both estimators share, and the settings that follow from them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import check_random_state

from nae._typing import Array
from nae.encoding.kinds import FeatureTypes
from nae.estimators.settings import SMALL, Settings, resolve

__all__ = ["Parameters"]


class Parameters(BaseEstimator):  # type: ignore[misc]
    """Flat parameters, stored as they are given; abstract. The estimators document them."""

    # Those that are read here and in the classes between; each estimator lists all of its own in its signature.
    additivity: float | str | None
    encoder: str
    n_members: int
    validation: Any
    feature_types: FeatureTypes
    callbacks: Sequence[Callable[..., Any]] | None
    verbose: bool | int
    warm_start: bool
    random_state: Any
    n_jobs: int | None
    device: str

    def _store(self, given: dict[str, Any]) -> None:
        """Store the arguments of an ``__init__``, which are its ``locals()``, as they are."""
        for name, value in given.items():
            if name != "self":
                setattr(self, name, value)

    def _settings(self, weight: Array, *, n_features: int) -> Settings:
        is_whole = bool(np.all(weight == np.rint(weight)))
        return self._resolve(len(weight), total=float(weight.sum()) if is_whole else None, n_features=n_features)

    def _resolve(self, n_rows: int, *, total: float | None, n_features: int) -> Settings:
        """Return the settings for so many rows of a total weight, None where weights are not whole."""
        # Whole weights mean repetition, so they decide what counts as small; others are only relative.
        n_counted = n_rows if total is None else int(total)
        if n_counted > SMALL:
            n_counted = max(n_rows, SMALL + 1)
        return resolve(
            self.get_params(deep=False), n_rows=n_counted, n_features=n_features, is_classes=is_classifier(self)
        )

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))
