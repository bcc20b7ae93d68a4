"""The slope and the shift of a score under which the log loss is smallest: how far log-odds are from calibrated."""

import numpy as np

from nae._typing import Array, IntArray

__all__ = ["fit_slope", "fit_temperature", "slope_errors"]

_STEPS = 100
_CLOSE = 1e-10


def fit_slope(score: Array, truth: Array, weight: Array, *, base: Array | float = 0.0) -> tuple[float, float]:
    """Return slope and shift: the log-odds ``slope * score + shift + base`` fit the truth (0 or 1) best.

    Where the score separates the classes, no slope is best: it is the one after a hundred of Newton's steps.
    """
    found = np.array([1.0, 0.0])
    for _ in range(_STEPS):
        chance = _chance(found[0] * score + found[1] + base)
        wrong = weight * (chance - truth)
        gradient = np.array([wrong @ score, wrong.sum()])
        step = np.linalg.solve(_curvature(score, weight * chance * (1 - chance)), gradient)
        step *= min(1.0, 1.0 / max(np.abs(step).max(), 1e-300))
        found = found - step
        if np.abs(step).max() < _CLOSE:
            break
    return float(found[0]), float(found[1])


def fit_temperature(score: Array, codes: IntArray, weight: Array, *, base: Array | float = 0.0) -> float:
    """Return the slope of the scores of several classes, (row, class), that fits the classes of the rows best.

    The log loss of ``slope * score + base`` is convex in the slope, so Newton's steps in halves find its minimum.
    """
    slope, at = 1.0, np.arange(len(codes))
    for _ in range(_STEPS):
        logits = slope * score + base
        chance = np.exp(logits - logits.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
        mean = (chance * score).sum(axis=1)
        gradient = weight @ (mean - score[at, codes])
        bend = weight @ ((chance * score**2).sum(axis=1) - mean**2)
        step = float(np.clip(gradient / max(float(bend), 1e-300), -0.5 * slope, 0.5))
        slope -= step
        if abs(step) < _CLOSE:
            break
    return slope


def slope_errors(score: Array, weight: Array, slope: float, shift: float) -> tuple[float, float]:
    """Return the standard errors of slope and shift."""
    chance = _chance(slope * score + shift)
    variance = np.diag(np.linalg.inv(_curvature(score, weight * chance * (1 - chance))))
    return float(np.sqrt(variance[0])), float(np.sqrt(variance[1]))


def _curvature(score: Array, bend: Array) -> Array:
    first = float(bend @ score)
    own = np.array([[float(bend @ score**2), first], [first, float(bend.sum())]])
    return np.asarray(own + 1e-9 * (1 + np.trace(own)) * np.eye(2))


def _chance(score: Array) -> Array:
    return np.asarray(0.5 * (1 + np.tanh(score / 2)))
