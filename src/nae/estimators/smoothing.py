"""``smoothness="auto"``: how much rough curves cost is chosen by validation.

The first fit is a whole one, with the least smoothness. Each further one starts from the network before it, with ten
times the smoothness and a quarter of the epochs. The walk ends where validation gets worse.
"""

import time
from dataclasses import replace

import numpy as np

from nae._typing import Array
from nae.estimators.fitting import Fitted, Run
from nae.estimators.path import Train
from nae.estimators.prepared import Prepared
from nae.recipes import PATH, SMOOTHNESS
from nae.training import TrainingConfig

__all__ = ["fit_smoothest"]


def fit_smoothest(prepared: Prepared, run: Run, train: Train) -> tuple[Fitted, None, float]:
    """Return the smoothest fit that validation does not speak against, no path of additivity, and its smoothness.

    A time limit applies to the whole path. A callback that stops a fit ends the path.
    """
    config = prepared.settings.training
    limit, started = config.time_limit, time.monotonic()
    share = None if limit is None else limit / (1 + PATH.share * (len(SMOOTHNESS) - 1))
    first = train(_with(prepared, SMOOTHNESS[0], replace(config, time_limit=share)), run)
    best, chosen, last = first, SMOOTHNESS[0], first
    n_epochs = max(2, round(PATH.share * len(first.history)))
    for smoothness in SMOOTHNESS[1:]:
        left = None if limit is None else limit - (time.monotonic() - started)
        if last.history.was_asked_to_stop or (left is not None and left <= 0):
            break
        further = _further(config, n_epochs=n_epochs, time_limit=left)
        last = train(replace(_with(prepared, smoothness, further), state=last.state), run)
        if _loss(last) > _loss(best) + _tolerance(best):
            break
        best, chosen = last, smoothness
    return best, None, chosen


def _with(prepared: Prepared, smoothness: float, config: TrainingConfig) -> Prepared:
    return replace(prepared.with_training(config), smoothness=_everywhere(smoothness, len(prepared.schema)))


def _everywhere(smoothness: float, n_features: int) -> Array:
    return np.full(n_features, smoothness)


def _further(config: TrainingConfig, *, n_epochs: int, time_limit: float | None) -> TrainingConfig:
    return replace(
        config,
        time_limit=time_limit,
        schedule="cosine",
        patience=None,
        max_epochs=n_epochs,
        learning_rate=config.learning_rate * PATH.learning_rate_share,
        evaluate_every=min(config.evaluate_every, max(1, n_epochs // PATH.least_looks)),
    )


def _loss(fitted: Fitted) -> float:
    found = fitted.history.best_validation
    return np.inf if found is None else found


def _tolerance(best: Fitted) -> float:
    """Return how much worse a smoother fit may be: a tenth of the standard error of the validation loss."""
    return 0.1 * (best.history.standard_error or 0.0)
