"""Merge members that were trained separately into one model and one history."""

import statistics
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nae._typing import Array
from nae.encoding import Cells
from nae.estimators.fitting import Fitted
from nae.explanation.statistics import remember
from nae.tables import TableModel
from nae.tables.gates import MEMBER_AXES, GateTables
from nae.tables.summary import TrainingSummary
from nae.training.clamping import Guards, clamped
from nae.training.history import Epoch, History

__all__ = ["merge_fits", "merge_histories", "merge_models"]


def merge_fits(
    fits: Sequence[Fitted], cells: Cells, weights: Array, *, has_own_rows: bool, guards: Guards | None = None
) -> Fitted:
    """Return the result of fitting all members together; ``cells`` and ``weights`` belong to the training rows.

    If ``guards`` are given, the model gets clamps, which must not break them.
    """
    model = merge_models([fit.model for fit in fits])
    if guards is not None:
        model = clamped(model, cells, weights, guards)
    return Fitted(
        remember(model, cells, weights),
        merge_histories([fit.history for fit in fits], has_own_rows=has_own_rows),
        {f"{member}.{name}": array for member, fit in enumerate(fits) for name, array in fit.state.items()},
        max(fit.table_error for fit in fits),
        np.concatenate([fit.intercepts for fit in fits], axis=1),
    )


def merge_models(models: Sequence[TableModel]) -> TableModel:
    """Return the model that consists of the members of all models, in their order, without statistics.

    Without clamps, scores, contributions and bounds are means over members, so those of the result are the means of
    the models'. Clamps are left out: they hold for the mean, and are measured on it again.
    """
    first = models[0]
    gate = {
        name: np.concatenate([model.gate.arrays[name] for model in models], axis=MEMBER_AXES[name])
        for name in first.gate.arrays
    }
    shares = np.array([model.n_members for model in models], dtype=np.float64)
    return replace(
        first,
        experts=np.concatenate([model.experts for model in models], axis=-1),
        gate=GateTables(first.gate.kind, **gate),
        intercept=np.average([model.intercept for model in models], axis=0, weights=shares),
        statistics=None,
        clamps=None,
        residuals=None,
        evidence=None,
        training=TrainingSummary(),
    )


def merge_histories(histories: Sequence[History], *, has_own_rows: bool) -> History:
    """Return the mean history of members that ended at different epochs.

    A member that has ended counts with its best epoch, so the last epoch is the mean of what all members kept.
    ``has_own_rows`` says that each member was validated on different rows.
    """
    n_epochs = max(map(len, histories))
    epochs = [_merge_epochs(number, [_epoch_at(one, number) for one in histories]) for number in range(1, n_epochs + 1)]
    errors = [one.standard_error for one in histories if one.standard_error is not None]
    penalties = [one.penalty for one in histories if one.penalty is not None]
    squared = statistics.fmean(error**2 for error in errors) if errors else 0.0
    return History(
        epochs,
        best_epoch=n_epochs,
        stopped="; ".join(dict.fromkeys(one.stopped for one in histories)),
        standard_error=(squared / (len(errors) if has_own_rows else 1)) ** 0.5 if errors else None,
        penalty=statistics.fmean(penalties) if penalties else None,
    )


def _epoch_at(history: History, number: int) -> Epoch:
    if number < len(history):
        return history[number - 1]
    return replace(history[history.best_epoch - 1], seconds=history[-1].seconds)


def _merge_epochs(number: int, epochs: Sequence[Epoch]) -> Epoch:
    return Epoch(
        epoch=number,
        loss=statistics.fmean(one.loss for one in epochs),
        validation=_mean([one.validation for one in epochs]),
        additivity=_mean([one.additivity for one in epochs]),
        seconds=max(one.seconds for one in epochs),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean, or None if a member has no value."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if len(known) == len(values) else None
