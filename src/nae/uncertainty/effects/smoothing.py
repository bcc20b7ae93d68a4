"""The additive fit: reweighted penalised squares, how much to smooth, and a covariance."""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array
from nae.uncertainty.effects.basis import Basis
from nae.uncertainty.effects.families import Family

__all__ = ["Fit", "Sample", "fit_additive"]

_STEPS = 12
_CLOSE = 1e-3  # a step that moves the score by less, in units of its spread, is the last one
_RIDGE = 1e-8
_RANGE = 1e6  # of penalties, around the size of the rows' own matrix
_GRID = 10.0 ** np.arange(-5.0, 3.1, 0.25)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows as columns of the additive fit, for one output."""

    columns: Array  # (row, column)
    truth: Array  # (row,)
    offset: Array  # (row,)
    weight: Array  # (row,)
    shown: Array  # (row, feature), the effects that the model shows

    def take(self, rows: slice) -> "Sample":
        """Return some of the rows."""
        return Sample(self.columns[rows], self.truth[rows], self.offset[rows], self.weight[rows], self.shown[rows])


@dataclass(frozen=True, eq=False)
class Fit:
    """The fitted coefficients with their covariance, and what they leave of every row."""

    coefficients: Array  # (column,)
    covariance: Array  # (column, column)
    freedom: Array  # (column,), effective degrees of freedom
    prior: Array  # (feature,), variance of a level before its rows are seen; 0 for numbers
    weights: Array  # (row,), of the last step
    pulls: Array  # (row,), what each row asks of its score beyond the fit, before its weight
    n_left: float  # rows beyond the degrees of freedom


@dataclass(frozen=True, eq=False)
class _Step:
    """One step of reweighted squares."""

    coefficients: Array
    inverse: Array  # of the penalised matrix
    matrix: Array  # of the rows alone
    noise: float
    centred: Array  # (row, column)
    weights: Array
    residuals: Array
    base: float


def fit_additive(sample: Sample, basis: Basis, family: Family, *, start: float) -> Fit:
    """Return the additive fit of some rows; ``start`` is the intercept of the model."""
    score = sample.offset + start + sample.shown.sum(axis=1)
    match = _matching(sample, basis, family, score)
    penalties, fitted, base = match, sample.shown.sum(axis=1), start
    for _ in range(_STEPS):
        step = _solve(sample, basis, family, penalties, fitted=fitted, base=base)
        moved = sample.columns @ step.coefficients
        change, base, fitted = float(np.abs(moved - fitted).max(initial=0.0)), step.base, moved
        asked = np.minimum(match, _likely(step, basis, penalties))
        is_settled = np.allclose(np.log(asked + 1e-300), np.log(penalties + 1e-300), atol=0.05)
        penalties = asked
        if is_settled and change <= _CLOSE * (float(moved.std()) + 1e-300):
            break
    return _finished(
        _solve(sample, basis, family, penalties, fitted=fitted, base=base), basis, penalties, sample.weight
    )


def _solve(sample: Sample, basis: Basis, family: Family, penalties: Array, *, fitted: Array, base: float) -> _Step:
    pull, residuals = family.pull(sample.truth, sample.offset + base + fitted)
    weights = pull * sample.weight
    share = weights / weights.sum()
    centred = sample.columns - share @ sample.columns
    goal = fitted + residuals
    mean = float(share @ goal)
    scaled = centred * weights[:, None]
    matrix = scaled.T @ centred
    inverse = np.linalg.inv(matrix + _penalty(basis, penalties, matrix))
    coefficients = inverse @ (scaled.T @ (goal - mean))
    moved = sample.columns @ coefficients
    left = goal - mean - centred @ coefficients
    freedom = float(np.einsum("ij,ji->", inverse, matrix))
    n_left = max(float(sample.weight.sum()) - 1 - freedom, 1.0)
    noise = 1.0 if family.has_known_noise else float(weights @ left**2) / n_left
    base = base + float(share @ (residuals - moved + fitted))
    return _Step(coefficients, inverse, matrix, noise, centred, weights, left, base)


def _penalty(basis: Basis, penalties: Array, matrix: Array) -> Array:
    found = _RIDGE * (np.trace(matrix) / len(matrix) + 1e-300) * np.eye(len(matrix))
    for part, curve, penalty in zip(basis.parts, basis.curves, penalties, strict=True):
        found[part, part] += penalty * curve.penalty
    return np.asarray(found)


def _likely(step: _Step, basis: Basis, penalties: Array) -> Array:
    """Return the penalties that restricted maximum likelihood asks for next (Wood and Fasiolo, 2017)."""
    found = np.zeros_like(penalties)
    for i, (part, curve) in enumerate(zip(basis.parts, basis.curves, strict=True)):
        if curve.rank:
            own = step.coefficients[part]
            left = max(curve.rank - penalties[i] * float(np.sum(step.inverse[part, part] * curve.penalty)), 1e-8)
            size = max(float(own @ curve.penalty @ own) / step.noise, 1e-300)
            unit = _unit(step.matrix[part, part], curve.penalty)
            found[i] = np.clip(left / size, unit / _RANGE, unit * _RANGE)
    return found


def _matching(sample: Sample, basis: Basis, family: Family, score: Array) -> Array:
    """Return the penalties with which the fit comes closest to the curves that the model shows, one by one."""
    pull, residuals = family.pull(sample.truth, score)
    weights = pull * sample.weight
    share = weights / weights.sum()
    found = np.zeros(len(basis.curves))
    for i, (part, curve) in enumerate(zip(basis.parts, basis.curves, strict=True)):
        if not curve.rank:
            continue
        centred = sample.columns[:, part] - share @ sample.columns[:, part]
        shown = sample.shown[:, i] - share @ sample.shown[:, i]
        scaled = centred * weights[:, None]
        matrix, unit = scaled.T @ centred, _unit(scaled.T @ centred, curve.penalty)
        ridge = _RIDGE * (np.trace(matrix) / len(matrix) + 1e-300) * np.eye(len(matrix))
        goal, here = scaled.T @ (shown + residuals - share @ residuals), scaled.T @ shown
        sums = [np.linalg.solve(matrix + ridge + size * unit * curve.penalty, goal) for size in _GRID]
        found[i] = unit * _GRID[np.argmin([own @ matrix @ own - 2 * own @ here for own in sums])]
    return found


def _unit(matrix: Array, penalty: Array) -> float:
    """Return the penalty that counts as much as the rows do."""
    return float((np.trace(matrix) + 1e-300) / np.trace(penalty))


def _finished(step: _Step, basis: Basis, penalties: Array, weight: Array) -> Fit:
    """Return the fit with its covariance: noise as the residuals show it, and the prior of what smoothing hides."""
    freedom = np.einsum("ij,ji->i", step.inverse, step.matrix)
    n_rows = float(weight.sum())
    n_left = max(n_rows - 1 - float(freedom.sum()), 1.0)
    pulls = step.weights * step.residuals / weight
    noise = (step.centred * (weight * pulls**2)[:, None]).T @ step.centred * (n_rows / n_left)
    hidden = step.noise * _penalty(basis, penalties, step.matrix)
    has_levels = np.array([curve.has_levels for curve in basis.curves])
    return Fit(
        coefficients=step.coefficients,
        covariance=step.inverse @ (noise + hidden) @ step.inverse,
        freedom=freedom,
        prior=np.where(has_levels, step.noise / np.maximum(penalties, 1e-300), 0.0),
        weights=step.weights,
        pulls=pulls,
        n_left=n_left,
    )
