"""The out-of-fold predictions of a fit: every row is predicted by the members that held it out."""

import numpy as np

from nae._typing import AnyArray, Array, BoolArray
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

__all__ = ["outcomes_of", "remember_held_out"]

_MOST_ROWS = 2000  # whose scores by every member are compared


def remember_held_out(model: TableModel, fitted: Fitted, prepared: Prepared, *, workers: Workers = ALONE) -> TableModel:
    """Return the same model with the residuals of the rows that its members held out; without, if there are none."""
    settings = prepared.settings
    n_members = settings.network.n_members
    rows = None if settings.n_folds is None else prepared.source.held_out(n_members)
    is_fresh = prepared.state is None and bool(prepared.task.scale.spread.all())
    if rows is None or rows.fold is None or prepared.validation is not None or not is_fresh:
        return model
    holds = rows.fold[:, None] == own_folds(n_members, settings.n_folds)
    own = _predicted(model, fitted, prepared, rows, holds)
    return remember_residuals(model, *_joined(workers.gather(own)))


def _predicted(
    model: TableModel, fitted: Fitted, prepared: Prepared, rows: TrainingRows, holds: BoolArray
) -> dict[str, AnyArray]:
    """Return held-out rows with what members say of them, as arrays that travel between workers."""
    compared = np.arange(0, 0 if model.classes else len(rows), -(-len(rows) // _MOST_ROWS))
    is_wanted = holds.copy()
    is_wanted[compared] = True
    score = _score(model, fitted.intercepts, rows, is_wanted)
    held = np.where(holds[:, None], score, 0.0).sum(axis=-1) / holds.sum(axis=1, keepdims=True)
    known = outcomes_of(model, rows, held, prepared)
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
