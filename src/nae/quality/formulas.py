"""Measures of predictions, each as a function of the rows' weights, so that a resample costs one pass over the rows.

The values equal those of scikit-learn's functions, if scikit-learn has the measure.
"""

from collections.abc import Callable

import numpy as np

from nae._typing import Array, BoolArray, IntArray

__all__ = [
    "Statistic",
    "area_under_curve",
    "average_precision",
    "calibration_error",
    "coverage_error",
    "deviance",
    "gini",
    "huber_loss",
    "log_loss",
    "mean_of",
    "pinball_loss",
    "quantile_of",
    "root_mean_of",
    "share_explained",
    "squared_distance",
]

Statistic = Callable[[Array], float]
_N_BINS = 10  # bins of the calibration error


def mean_of(errors: Array) -> Statistic:
    """Return the weighted mean of the rows' errors."""
    return lambda weight: float(weight @ errors / weight.sum())


def root_mean_of(errors: Array) -> Statistic:
    """Return the root of the weighted mean of the rows' errors."""
    return lambda weight: float(np.sqrt(weight @ errors / weight.sum()))


def share_explained(errors: Array, of_constant: Callable[[Array], Array]) -> Statistic:
    """Return by which share the model reduces the errors of the best constant: R² or D²."""

    def value(weight: Array) -> float:
        left, most = float(weight @ errors), float(weight @ of_constant(weight))
        if most > 1e-290:
            share = 1 - left / most
            return share if abs(share) > 1e-12 else 0.0  # rounding: the constant itself explains nothing
        return 1.0 if left <= 1e-290 else 0.0

    return value


def quantile_of(values: Array, level: float) -> Statistic:
    """Return the weighted quantile; between two rows, their midpoint."""
    order = np.argsort(values, kind="stable")

    def value(weight: Array) -> float:
        kept = order[weight[order] > 0]
        total = np.cumsum(weight[kept])
        wanted, tolerance = level * total[-1], 1e-12 * total[-1]
        at = min(int(np.searchsorted(total, wanted - tolerance)), len(kept) - 1)
        above = at if total[at] - wanted > tolerance else min(at + 1, len(kept) - 1)
        return float(values[kept[at]] + values[kept[above]]) / 2

    return value


def squared_distance(truth: Array) -> Callable[[Array], Array]:
    """Return the squared errors of always predicting the weighted mean."""
    if (truth == truth[0]).all():
        return lambda weight: np.zeros_like(truth)  # exactly zero; a computed mean could differ in the last digit
    return lambda weight: (truth - weight @ truth / weight.sum()) ** 2


def deviance(truth: Array, mean: Array, power: float) -> Array:
    """Return the unit deviance of every row: Poisson's (power 1), gamma's (2), or Tweedie's between them."""
    mean = np.maximum(mean, 1e-300)
    if power == 1:
        positive = np.where(truth > 0, truth, 1.0)
        return np.asarray(2 * (np.where(truth > 0, truth * np.log(positive / mean), 0.0) - truth + mean))
    if power == 2:
        return np.asarray(2 * (np.log(mean / truth) + truth / mean - 1))
    one, two = 1 - power, 2 - power
    return np.asarray(2 * (truth**two / (one * two) - truth * mean**one / one + mean**two / two))


def pinball_loss(truth: Array, predicted: Array | float, level: float) -> Array:
    """Return the pinball loss of every row."""
    error = truth - predicted
    return np.asarray(np.maximum(level * error, (level - 1) * error))


def coverage_error(truth: Array, predicted: Array, level: float) -> Statistic:
    """Return by how much the share of rows at or below a predicted quantile differs from its level."""
    share = mean_of((truth <= predicted).astype(np.float64))
    return lambda weight: abs(share(weight) - level)


def huber_loss(truth: Array, predicted: Array, threshold: float) -> Array:
    """Return the Huber loss of every row: half the square up to the threshold, linear beyond."""
    error = np.abs(truth - predicted)
    return np.where(error <= threshold, 0.5 * error**2, threshold * (error - 0.5 * threshold))


def log_loss(codes: IntArray, chance: Array) -> Array:
    """Return the log loss of every row."""
    least = float(np.finfo(chance.dtype).eps)
    return np.asarray(-np.log(np.clip(chance[np.arange(len(codes)), codes], least, 1 - least)))


def area_under_curve(is_second: BoolArray, score: Array) -> Statistic:
    """Return the AUC: how often a row of the second class scores above one of the first. Ties count half."""
    sums = _sums_by(score)

    def value(weight: Array) -> float:
        second, first = sums(weight * is_second), sums(weight * ~is_second)
        pairs = float(second.sum() * first.sum())
        return float(second @ (np.cumsum(first) - first / 2)) / pairs if pairs else np.nan

    return value


def average_precision(is_second: BoolArray, score: Array) -> Statistic:
    """Return the average precision: the precision at every threshold, weighted by the gain in recall."""
    sums = _sums_by(-score)

    def value(weight: Array) -> float:
        found, taken = sums(weight * is_second), sums(weight)
        precision = np.cumsum(found) / np.maximum(np.cumsum(taken), 1e-300)
        return float(found @ precision / found.sum()) if found.any() else np.nan

    return value


def calibration_error(is_second: BoolArray, chance: Array) -> Statistic:
    """Return the expected calibration error: predicted against observed shares in ten bins, weighted by rows."""
    place = np.minimum((chance * _N_BINS).astype(np.int64), _N_BINS - 1)
    gap = is_second - chance
    return lambda weight: float(np.abs(np.bincount(place, weight * gap)).sum() / weight.sum())


def gini(truth: Array, predicted: Array, exposure: Array) -> Statistic:
    """Return the normalised Gini coefficient of a predicted rate: 1 is the true order of the rows, 0 a random one."""
    by_prediction, by_truth = _sums_by(predicted / exposure), _sums_by(truth / exposure)

    def value(weight: Array) -> float:
        found, best = (
            _concentration(sums(weight * exposure), sums(weight * truth)) for sums in (by_prediction, by_truth)
        )
        return found / best if best > 1e-12 else np.nan

    return value


def _concentration(exposure: Array, amount: Array) -> float:
    """Return the Gini coefficient of amounts over exposures, both in ascending order of a rank."""
    total = float(exposure.sum() * amount.sum())
    return 1 - 2 * float(exposure @ (np.cumsum(amount) - amount / 2)) / total if total > 0 else 0.0


def _sums_by(score: Array) -> Callable[[Array], Array]:
    """Return a function that sums numbers over rows with equal scores, in ascending order of the score."""
    order = np.argsort(score, kind="stable")
    ascending = score[order]
    is_new = np.diff(ascending) > 1e-12 * np.abs(ascending[1:])  # a rate may differ in the last digits
    place = np.empty(len(score), dtype=np.int64)
    place[order] = np.concatenate([[0], np.cumsum(is_new)])
    return lambda values: np.bincount(place, values, minlength=int(place.max()) + 1).astype(np.float64)
