"""The out-of-fold predictions of a fit: every row is predicted by the members that held it out."""

import numpy as np

from nae._typing import Array, IntArray
from nae.estimators.fitting import Fitted
from nae.estimators.prepared import Prepared
from nae.tables.members import some_members
from nae.tables.model import TableModel
from nae.training import TrainingRows
from nae.training.assemble import unpadded
from nae.training.data import own_folds
from nae.uncertainty import Outcomes, remember_residuals

__all__ = ["outcomes_of", "remember_held_out"]


def remember_held_out(model: TableModel, fitted: Fitted, prepared: Prepared) -> TableModel:
    """Return the same model with the residuals of the rows that its members held out; without, if there are none."""
    settings = prepared.settings
    n_members = settings.network.n_members
    rows = None if settings.n_folds is None else prepared.source.held_out(n_members)
    is_fresh = prepared.state is None and prepared.task.scale.spread.all()
    if rows is None or rows.fold is None or prepared.validation is not None or not is_fresh:
        return model
    score = _score(model, fitted.intercepts, rows, rows.fold, own_folds(n_members, settings.n_folds))
    return remember_residuals(model, outcomes_of(model, rows, score, prepared))


def _score(model: TableModel, intercepts: Array, rows: TrainingRows, folds: IntArray, own_fold: IntArray) -> Array:
    """Return the score that the members which held a row out give it, (B, O), without its offset."""
    cells = unpadded(model.schema, rows.cells)
    apart = intercepts - intercepts.mean(axis=1, keepdims=True)
    score = np.empty((len(rows), model.n_outputs))
    for fold in np.unique(folds):
        held, members = np.flatnonzero(folds == fold), np.flatnonzero(own_fold == fold)
        found = some_members(model, members).decision_function(cells.take(held))
        score[held] = found.reshape(len(held), -1) + apart[:, members].mean(axis=1)
    return score


def outcomes_of(model: TableModel, rows: TrainingRows, score: Array, prepared: Prepared) -> Outcomes:
    """Return held-out rows with score, offset and target on the scale of the model."""
    scale, loss, weights = prepared.task.scale, prepared.task.loss, prepared.task.class_weight
    weight = np.asarray(rows.weight, dtype=np.float64)
    truth = np.asarray(rows.target, dtype=np.float64).reshape(len(rows), -1)
    if rows.base is not None:
        begin = 0.0 if loss.is_scaled else scale.centre.astype(rows.weight.dtype).astype(np.float64)
        score = score + rows.base.astype(np.float64) * scale.unit + scale.base - begin
    if loss.is_scaled:
        truth = truth * scale.unit + scale.centre + scale.base
    if weights is not None:
        weight = weight / weights[truth[:, 0].astype(np.int64)]
    truth = truth if model.classes else np.broadcast_to(truth, score.shape)
    return Outcomes(unpadded(model.schema, rows.cells), score, truth, weight, rows.fold)
