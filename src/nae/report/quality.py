"""How good a model is on the rows of a report, beside a baseline that knows only the target's distribution."""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array
from nae.encoding.cells import Cells
from nae.report.rows import ReportRows
from nae.tables.model import TableModel

__all__ = ["Quality", "Score", "area_under_curve", "measure_quality"]

_LEAST = 1e-15  # probabilities below it would make one row decide the log loss


@dataclass(frozen=True)
class Score:
    """One measure of the model and of the baseline."""

    name: str
    better: str  # 'lower' or 'higher'
    model: float
    baseline: float


@dataclass(frozen=True)
class Quality:
    """The measures, the most telling first."""

    n_rows: int
    scores: tuple[Score, ...]
    baseline: str  # what the baseline does, in words


def measure_quality(model: TableModel, cells: Cells, rows: ReportRows) -> Quality | None:
    """Return the quality on the rows whose truth is known; None where none is."""
    if rows.target is None:
        return None
    known = np.flatnonzero(~np.isnan(rows.target).any(axis=1))
    if len(known) == 0:
        return None
    few, truth = cells.take(known), rows.target[known]
    if not model.classes:
        return _of_numbers(model.link.inverse(model.decision_function(few)).reshape(truth.shape), truth)
    return _of_classes(model, model.predict_proba(few), truth[:, 0].astype(np.int64))


def _of_numbers(prediction: Array, truth: Array) -> Quality:
    constant = truth.mean(axis=0)
    square, base_square = ((prediction - truth) ** 2).mean(axis=0), ((constant - truth) ** 2).mean(axis=0)
    size, base_size = np.abs(prediction - truth).mean(), np.abs(np.median(truth, axis=0) - truth).mean()
    explained = 1 - float(np.mean(square / np.maximum(base_square, 1e-300)))
    scores = (
        Score("RMSE", "lower", float(np.sqrt(square.mean())), float(np.sqrt(base_square.mean()))),
        Score("mean absolute error", "lower", float(size), float(base_size)),
        Score("explained variance, R²", "higher", explained, 0.0),
    )
    return Quality(len(truth), scores, "always predicting the mean (the median, for the absolute error)")


def _of_classes(model: TableModel, probability: Array, truth: Array) -> Quality:
    share = np.bincount(truth, minlength=len(model.classes)) / len(truth)
    chosen = probability[np.arange(len(truth)), truth]
    entropy = -float(np.sum(share[share > 0] * np.log(share[share > 0])))
    scores = [
        Score("accuracy", "higher", float((probability.argmax(axis=1) == truth).mean()), float(share.max())),
        Score("log loss", "lower", float(-np.log(np.maximum(chosen, _LEAST)).mean()), entropy),
    ]
    if len(model.classes) == 2 and 0 < share[1] < 1:
        scores.insert(0, Score("area under the ROC curve", "higher", area_under_curve(probability[:, 1], truth), 0.5))
    return Quality(len(truth), tuple(scores), "always predicting how often each class occurs")


def area_under_curve(score: Array, truth: Array) -> float:
    """Return the chance that a row of the second class scores above one of the first; ties count half."""
    _, inverse, counts = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    n_second = int(truth.sum())
    n_first = len(truth) - n_second
    return float((rank[truth == 1].sum() - n_second * (n_second + 1) / 2) / (n_first * n_second))
