"""The path of ``additivity="auto"``: from a flexible model to an additive one.

The first point is a whole fit. Each further point starts from the network before it, aims at a higher additivity and
takes a quarter of the epochs, so the path costs less than three fits.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from nae import metrics
from nae.encoding import Cells
from nae.estimators.fitting import Fitted, Run
from nae.estimators.prepared import Prepared
from nae.recipes import PATH
from nae.selection import most_additive
from nae.training import TrainingConfig

__all__ = ["PathPoint", "Train", "fit_path"]

_ROWS = 20_000  # number of rows on which tightness is measured

Train = Callable[[Prepared, Run], Fitted]


@dataclass(frozen=True)
class PathPoint:
    """One model on the path from flexible to additive."""

    target: float | None
    """The required additivity; None for the flexible model."""
    additivity: float
    """The measured additivity: the mean over the features, which the dial steers."""
    interaction_share: float
    cancellation: float
    tightness: float
    validation: float
    """Validation loss."""
    standard_error: float
    """Standard error of the validation loss."""
    is_chosen: bool = False


def fit_path(prepared: Prepared, run: Run, train: Train) -> tuple[Fitted, tuple[PathPoint, ...]]:
    """Return the most additive model within one standard error of the best, and the whole path.

    A time limit applies to the whole path. A callback that stops a fit ends the path.
    """
    config = prepared.settings.training
    limit, started = config.time_limit, time.monotonic()
    share = None if limit is None else limit / (1 + PATH.share * len(PATH.targets))
    first = train(prepared.with_training(replace(config, time_limit=share)), run)
    fits, points = [first], [_measure(first, None, prepared.cells)]
    n_epochs = max(2, round(PATH.share * len(first.history)))
    penalty = config.initial_penalty
    for i, target in enumerate(PATH.targets):
        if fits[-1].history.was_asked_to_stop:
            break
        if target <= points[-1].additivity:
            continue
        left = None if limit is None else (limit - (time.monotonic() - started)) / (len(PATH.targets) - i)
        if left is not None and left <= 0:
            break
        further = _further(config, target, n_epochs=n_epochs, penalty=penalty, time_limit=left)
        fitted = train(replace(prepared.with_training(further), state=fits[-1].state), run)
        penalty = fitted.history.penalty or penalty
        fits.append(fitted)
        points.append(_measure(fitted, target, prepared.cells))
    taken = most_additive(
        [point.validation for point in points],
        [point.standard_error for point in points],
        [point.additivity for point in points],
    )
    points[taken] = replace(points[taken], is_chosen=True)
    return fits[taken], tuple(points)


def _further(
    config: TrainingConfig, target: float, *, n_epochs: int, penalty: float, time_limit: float | None
) -> TrainingConfig:
    return replace(
        config,
        additivity=target,
        initial_penalty=penalty,
        time_limit=time_limit,
        output_penalty=max(config.output_penalty, PATH.output_penalty),
        schedule="cosine",
        patience=None,
        max_epochs=n_epochs,
        learning_rate=config.learning_rate * PATH.learning_rate_share,
        evaluate_every=min(config.evaluate_every, max(1, n_epochs // PATH.least_looks)),
    )


def _measure(fitted: Fitted, target: float | None, cells: Cells) -> PathPoint:
    tightness = metrics.tightness(fitted.model, cells.take(slice(None, None, -(-len(cells) // _ROWS))))
    found = fitted.model.explain_global()
    history = fitted.history
    validation, error = history.best_validation, history.standard_error
    return PathPoint(
        target=target,
        additivity=found.additivity,
        interaction_share=found.interaction_share,
        cancellation=found.cancellation,
        tightness=float(tightness),
        validation=float("nan") if validation is None else validation,
        standard_error=float("nan") if error is None else error,
    )
