"""The out-of-fold predictions of a fit: every row is predicted by the members that held it out."""

from dataclasses import dataclass

import numpy as np

from nae._typing import AnyArray, Array, BoolArray, IntArray
from nae.encoding import Cells
from nae.estimators.fitting import Fitted
from nae.estimators.prepared import Prepared
from nae.tables.members import some_members
from nae.tables.model import TableModel
from nae.training import TrainingRows
from nae.training.assemble import unpadded
from nae.training.data import own_folds
from nae.training.workers import ALONE, Workers
from nae.uncertainty import MemberScores, Outcomes, remember_residuals

__all__ = ["HeldOut", "held_out", "outcomes_of", "remember_held_out"]

_MOST_ROWS = 2000  # whose scores by every member are compared


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows that members held out of their training, with the scores of these members."""

    score: Array  # (B, O), the mean over the members that held the row out, without offset
    offset: Array  # (B, O)
    truth: Array  # (B, O) numbers, or (B, 1) positions among the classes
    weight: Array  # (B,), without class weights
    fold: IntArray  # (B,)


def remember_held_out(model: TableModel, fitted: Fitted, prepared: Prepared, *, workers: Workers = ALONE) -> TableModel:
    """Return the same model with the residuals of the rows that its members held out; without, if there are none."""
    rows = _held_out_rows(prepared)
    if rows is None:
        return model
    own = _predicted(model, fitted, prepared, rows, _holds(rows, prepared))
    return remember_residuals(model, *_joined(workers.gather(own)))


def held_out(model: TableModel, fitted: Fitted, prepared: Prepared, *, workers: Workers = ALONE) -> HeldOut | None:
    """Return the rows that members held out, those of all workers; None if there are none."""
    rows = _held_out_rows(prepared)
    if rows is None:
        return None
    holds = _holds(rows, prepared)
    score = _mean_of(_score(model, fitted.intercepts, rows, holds), holds)
    known = outcomes_of(model, rows, score, prepared)
    offset = np.broadcast_to(_offset(rows, prepared), score.shape)
    own = {"score": score, "offset": offset, "truth": known.truth, "weight": known.weight, "fold": rows.fold}
    parts = workers.gather(own)
    return HeldOut(**{name: np.concatenate([part[name] for part in parts]) for name in own})


def _held_out_rows(prepared: Prepared) -> TrainingRows | None:
    """Return the training rows if members held out folds of them, and the fit does not go on with another one."""
    settings = prepared.settings
    rows = None if settings.n_folds is None else prepared.source.held_out(settings.network.n_members)
    is_fresh = prepared.state is None and bool(prepared.task.scale.spread.all())
    if rows is None or rows.fold is None or prepared.validation is not None or not is_fresh:
        return None
    return rows


def _holds(rows: TrainingRows, prepared: Prepared) -> BoolArray:
    """Return whether a member held a row out, (B, M)."""
    settings = prepared.settings
    own = own_folds(settings.network.n_members, settings.n_folds)
    return np.asarray(np.asarray(rows.fold)[:, None] == own)


def _mean_of(score: Array, holds: BoolArray) -> Array:
    """Return the mean score of the members that held a row out, (B, O), from those of all members, (B, O, M)."""
    total = np.where(holds[:, None], score, 0.0).sum(axis=-1)
    return np.asarray(total / holds.sum(axis=1, keepdims=True))


def _predicted(
    model: TableModel, fitted: Fitted, prepared: Prepared, rows: TrainingRows, holds: BoolArray
) -> dict[str, AnyArray]:
    """Return held-out rows with what members say of them, as arrays that travel between workers."""
    gains = len(model.classes) != 2  # with two classes, nothing is known to be gained by averaging
    compared = np.arange(0, len(rows) if gains else 0, -(-len(rows) // _MOST_ROWS))
    is_wanted = holds.copy()
    is_wanted[compared] = True
    score = _score(model, fitted.intercepts, rows, is_wanted)
    known = outcomes_of(model, rows, _mean_of(score, holds), prepared)
    return {
        "slot": known.cells.slot,
        "fraction": known.cells.fraction,
        "score": known.score,
        "truth": known.truth,
        "weight": known.weight,
        "fold": known.folds,
        "n_held": holds.sum(axis=1),
        "compared": compared,
        "by_member": score[compared] + _offset(rows.take(compared), prepared)[..., None],
        "has_learned": ~holds[compared],
    }


def _joined(parts: list[dict[str, AnyArray]]) -> tuple[Outcomes, MemberScores]:
    """Return the rows of all workers."""
    begins = np.cumsum([0, *(len(part["weight"]) for part in parts[:-1])])
    moved = [part | {"compared": part["compared"] + begin} for part, begin in zip(parts, begins, strict=True)]
    whole = {name: np.concatenate([part[name] for part in moved]) for name in parts[0]}
    cells = Cells(whole["slot"], whole["fraction"])
    rows = Outcomes(cells, whole["score"], whole["truth"], whole["weight"], whole["fold"])
    n_held = float(whole["n_held"].mean())
    return rows, MemberScores(whole["compared"], whole["by_member"], whole["has_learned"], n_held)


def _score(model: TableModel, intercepts: Array, rows: TrainingRows, is_wanted: BoolArray) -> Array:
    """Return the scores that members give to the rows wanted of them, (B, O, M), without offset."""
    cells = unpadded(model.schema, rows.cells)
    apart = intercepts - intercepts.mean(axis=1, keepdims=True)
    score = np.zeros((len(rows), model.n_outputs, model.n_members))
    for m in range(model.n_members):
        own = np.flatnonzero(is_wanted[:, m])
        found = some_members(model, [m]).decision_function(cells.take(own))
        score[own, :, m] = found.reshape(len(own), -1) + apart[:, m]
    return score


def _offset(rows: TrainingRows, prepared: Prepared) -> Array:
    """Return the offset of rows on the scale of the model, (B, O); one zero without an offset."""
    scale, loss = prepared.task.scale, prepared.task.loss
    if rows.base is None:
        return np.zeros((1, 1))
    begin = 0.0 if loss.is_scaled else scale.centre.astype(rows.weight.dtype).astype(np.float64)
    return np.asarray(rows.base.astype(np.float64) * scale.unit + scale.base - begin)


def outcomes_of(model: TableModel, rows: TrainingRows, score: Array, prepared: Prepared) -> Outcomes:
    """Return rows with their target and weight on the scale of the model, and with their offset added to a score."""
    scale, class_weight = prepared.task.scale, prepared.task.class_weight
    weight = np.asarray(rows.weight, dtype=np.float64)
    truth = np.asarray(rows.target, dtype=np.float64).reshape(len(rows), -1)
    if prepared.task.loss.is_scaled:
        truth = truth * scale.unit + scale.centre + scale.base
    if class_weight is not None:
        weight = weight / class_weight[truth[:, 0].astype(np.int64)]
    truth = truth if model.classes else np.broadcast_to(truth, score.shape)
    whole = score + _offset(rows, prepared)
    return Outcomes(unpadded(model.schema, rows.cells), whole, truth, weight, rows.fold)
