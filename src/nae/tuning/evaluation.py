"""One trial: fit an estimator with some settings, once per seed, and measure both objectives."""

import math
import statistics
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nae.encoding import read_table
from nae.encoding.fingerprint import fingerprint
from nae.encoding.target import to_array
from nae.errors import DataError, NAEWarning
from nae.tuning.trials import Trial

__all__ = ["PASSING", "Measured", "TuningProblem", "evaluate", "measure"]


PASSING = frozenset({"callbacks", "verbose", "n_jobs", "device", "engine"})
"""Parameters that do not change the model."""
_OWN = PASSING | {"n_members", "random_state", "warm_start"}  # and parameters that the search sets itself


@dataclass(frozen=True)
class Measured:
    """The result of one setting with one seed."""

    loss: float
    standard_error: float
    additivity: float
    """Additivity of the whole model, with features weighted by their variance."""
    seconds: float


@dataclass(frozen=True, eq=False)
class TuningProblem:
    """The estimator to tune, and its rows."""

    estimator: Any
    X: Any
    y: Any
    fit_params: Mapping[str, Any]
    seeds: tuple[Any, ...]
    """The values of ``random_state``. A trial fits once with each of them."""

    def fingerprint(self) -> str:
        """Return a digest of the table and its target."""
        target = to_array(self.y)
        return fingerprint(read_table(self.X), target)

    def fingerprint_of_rest(self) -> str:
        """Return a digest of weights, offsets and validation rows: with others, losses could not be compared."""
        weight, eval_set = self.fit_params.get("sample_weight"), self.fit_params.get("eval_set")
        digests = ["" if weight is None else fingerprint(read_table({"weight": np.atleast_1d(to_array(weight))}))]
        if self.fit_params.get("offset") is not None:
            offset = np.asarray(self.fit_params["offset"], dtype=np.float64)
            digests.append(fingerprint(read_table({"offset": offset.reshape(-1)})))
        if eval_set is not None:
            from nae.estimators.reading import read_eval_set

            table, *others = read_eval_set(eval_set)
            arrays = (np.atleast_1d(to_array(one)) for one in others if one is not None)
            digests.append(fingerprint(read_table(table), *arrays))
        return " ".join(digests).strip() or "none"

    @property
    def given(self) -> dict[str, Any]:
        """The estimator's parameters outside the space that differ from their defaults."""
        defaults = type(self.estimator)().get_params()
        return {
            name: value
            for name, value in self.estimator.get_params().items()
            if name not in _OWN and repr(value) != repr(defaults[name]) and not isinstance(value, np.ndarray)
        }

    def average(self, measured: Sequence[Measured], params: Mapping[str, Any], number: int) -> Trial:
        """Return the trial that combines the fits with all seeds."""
        losses = [one.loss for one in measured]
        squared = statistics.fmean(one.standard_error**2 for one in measured)
        has_fixed = "eval_set" in self.fit_params or self.estimator.get_params()["validation"] is not None
        n_validations = 1 if has_fixed else len(measured)  # each seed holds out different rows
        return Trial(
            number=number,
            params=dict(params),
            loss=statistics.fmean(losses),
            standard_error=math.sqrt(squared / n_validations),
            additivity=statistics.fmean(one.additivity for one in measured),
            seconds=sum(one.seconds for one in measured),
            deviation=statistics.stdev(losses) if len(losses) > 1 else 0.0,
        )


def evaluate(problem: TuningProblem, params: Mapping[str, Any], number: int) -> Trial:
    """Fit with ``params`` once per seed and return the trial."""
    return problem.average([measure(problem, params, seed) for seed in problem.seeds], params, number)


def measure(problem: TuningProblem, params: Mapping[str, Any], seed: Any) -> Measured:
    """Fit with ``params`` and one seed, and return the result."""
    from sklearn.base import clone

    started = time.monotonic()
    estimator = clone(problem.estimator).set_params(**{"random_state": seed, **params})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NAEWarning)  # if the dial misses its target, the measured additivity shows it
        estimator.fit(problem.X, problem.y, **problem.fit_params)
    loss, error = estimator.history_.best_validation, estimator.history_.standard_error
    if loss is None:
        n_rows = estimator.model_.training.n_rows
        raise DataError(f"Tuning needs rows to validate on; all {n_rows} are used for training. Pass eval_set.")
    return Measured(
        loss=float(loss),
        standard_error=float(error or 0.0),
        additivity=float(estimator.model_.explain_global().additivity_weighted),
        seconds=time.monotonic() - started,
    )
