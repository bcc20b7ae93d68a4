"""One trial: fit an estimator with some settings, and measure both objectives on what it left."""

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nae.encoding import read_table
from nae.encoding.fingerprint import fingerprint
from nae.encoding.target import to_array
from nae.errors import DataError, NAEWarning
from nae.tuning.trials import Trial

__all__ = ["Question", "evaluate"]


@dataclass(frozen=True, eq=False)
class Question:
    """What is to be tuned on which rows."""

    estimator: Any
    X: Any
    y: Any
    fit_params: Mapping[str, Any]

    def fingerprint(self) -> str:
        """Return a digest of the table and its target."""
        target = to_array(self.y)
        return fingerprint(read_table(self.X), target)


def evaluate(question: Question, params: Mapping[str, Any], number: int) -> Trial:
    """Fit with ``params`` and return the trial."""
    from sklearn.base import clone

    started = time.monotonic()
    estimator = clone(question.estimator).set_params(**params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NAEWarning)  # a dial out of reach shows in the measured additivity
        estimator.fit(question.X, question.y, **question.fit_params)
    loss, error = estimator.history_.best_validation, estimator.history_.standard_error
    if loss is None:
        n_rows = estimator.model_.training["n_rows"]
        raise DataError(f"Tuning needs rows to validate on; all {n_rows} are used for training. Pass eval_set.")
    return Trial(
        number=number,
        params=dict(params),
        loss=float(loss),
        standard_error=float(error or 0.0),
        additivity=float(estimator.model_.explain_global().additivity),
        seconds=time.monotonic() - started,
    )
