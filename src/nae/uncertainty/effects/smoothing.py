"""The additive fit: how much to smooth, and a covariance."""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array
from nae.uncertainty.effects.basis import Basis
from nae.uncertainty.effects.families import Family
from nae.uncertainty.effects.squares import Sample, Squares, reweighted

__all__ = ["Fit", "fit_additive"]

_STEPS, _SEARCH, _ROUNDS = 16, 8, 12  # of reweighting; of them, with a search of smoothness; within each
_CLOSE = 1e-2  # a step that moves scores by less, in units of their size, is the last one
_NEAR = 0.1  # the same, for the last step that is made
_FARTHEST = 2.0  # no score moves by more in one step
_SETTLED = 0.05  # penalties that change by less, as a logarithm, stay
_RIDGE = 1e-8
_RANGE = 1e6  # of penalties, around the size of the rows' own matrix
_GRID = 10.0 ** np.arange(-5.0, 3.1, 0.25)


@dataclass(frozen=True, eq=False)
class Fit:
    """The fitted coefficients with their covariance, and what they leave of every row."""

    coefficients: Array  # (column,)
    covariance: Array  # (column, column), of what is not known about them
    scatter: Array  # (column, column), the part of it that noise causes
    inverse: Array  # (column, column), of the penalised matrix
    penalties: Array  # (feature,)
    matrix: Array  # (column, column), of the rows
    freedom: Array  # (column,), effective degrees of freedom
    prior: Array  # (feature,), variance of a level before its rows are seen; 0 for numbers
    weights: Array  # (row,), of the last step
    pulls: Array  # (row,), what each row asks of its score beyond the fit, before its weight
    n_left: float  # rows beyond the degrees of freedom


@dataclass(frozen=True, eq=False)
class _Solution:
    """Penalised squares, solved."""

    penalties: Array  # (feature,)
    coefficients: Array
    inverse: Array  # of the penalised matrix
    freedom: Array  # (column,)
    noise: float
    n_left: float


def fit_additive(sample: Sample, basis: Basis, family: Family, *, start: float) -> Fit:
    """Return the additive fit of some rows; ``start`` is the intercept of the model. A LinAlgError if there is none."""
    fitted, base = sample.shown.sum(axis=1), start
    squares = reweighted(sample, family, fitted=fitted, base=base)
    penalties = match = _matching(sample, squares, basis)
    n_rows = float(sample.weight.sum())
    for step in range(_STEPS):
        rounds = _ROUNDS if step < _SEARCH else 0  # in the end, penalties stay as they are
        found = _settled(squares, basis, penalties, most=match, n_rows=n_rows, rounds=rounds)
        penalties = found.penalties
        if family.is_linear:
            break
        ahead = sample.columns @ found.coefficients - fitted
        lift = squares.mean - float(squares.centre @ found.coefficients)
        farthest = float(np.abs(ahead + lift).max(initial=0.0))
        change = np.average((ahead + lift) ** 2, weights=squares.weights)
        size = np.average((fitted + ahead) ** 2, weights=squares.weights)
        if change <= _CLOSE**2 * size or (step == _STEPS - 1 and change <= _NEAR**2 * size):
            break
        if step == _STEPS - 1:
            raise np.linalg.LinAlgError("The reweighted squares do not converge.")
        length = min(1.0, _FARTHEST / farthest)
        fitted, base = fitted + length * ahead, base + length * lift
        squares = reweighted(sample, family, fitted=fitted, base=base)
    return _finished(sample, squares, basis, found)


def _settled(squares: Squares, basis: Basis, penalties: Array, *, most: Array, n_rows: float, rounds: int) -> _Solution:
    """Return the solution at the penalties that restricted maximum likelihood asks for, or at ``most``."""
    found = _solve(squares, basis, penalties, n_rows=n_rows)
    for _ in range(rounds):
        asked = np.minimum(most, _likely(squares, basis, found))
        if np.allclose(np.log(asked + 1e-300), np.log(penalties + 1e-300), rtol=0, atol=_SETTLED):
            break
        penalties = asked
        found = _solve(squares, basis, penalties, n_rows=n_rows)
    return found


def _solve(squares: Squares, basis: Basis, penalties: Array, *, n_rows: float) -> _Solution:
    inverse = np.linalg.inv(squares.matrix + _penalty(squares, basis, penalties))
    coefficients = inverse @ squares.vector
    freedom = np.einsum("ij,ji->i", inverse, squares.matrix)
    n_left = max(n_rows - 1 - float(freedom.sum()), 1.0)
    noise = 1.0 if squares.has_known_noise else max(squares.rest(coefficients), 1e-12 * squares.total) / n_left
    return _Solution(penalties, coefficients, inverse, freedom, noise, n_left)


def _penalty(squares: Squares, basis: Basis, penalties: Array) -> Array:
    size = len(squares.matrix)
    found = (_RIDGE * (np.trace(squares.matrix) / size + 1e-300) + squares.precision) * np.eye(size)
    for part, curve, penalty in zip(basis.parts, basis.curves, penalties, strict=True):
        found[part, part] += penalty * curve.penalty
    return np.asarray(found)


def _likely(squares: Squares, basis: Basis, found: _Solution) -> Array:
    """Return the penalties that restricted maximum likelihood asks for next (Wood and Fasiolo, 2017)."""
    asked = np.zeros_like(found.penalties)
    for i, (part, curve) in enumerate(zip(basis.parts, basis.curves, strict=True)):
        if curve.rank:
            own = found.coefficients[part]
            left = curve.rank - found.penalties[i] * float(np.sum(found.inverse[part, part] * curve.penalty))
            size = max(float(own @ curve.penalty @ own) / max(found.noise, 1e-300), 1e-300)
            unit = _unit(squares.matrix[part, part], curve.penalty)
            asked[i] = np.clip(max(left, 1e-8) / size, unit / _RANGE, unit * _RANGE)
    return asked


def _matching(sample: Sample, squares: Squares, basis: Basis) -> Array:
    """Return the penalties with which the fit comes closest to the curves that the model shows, one by one."""
    weighted = sample.shown * squares.weights[:, None]
    shown = sample.columns.T @ weighted - np.outer(squares.centre, weighted.sum(axis=0))  # (column, feature)
    rest = squares.vector - shown.sum(axis=1)
    found = np.zeros(len(basis.curves))
    for i, (part, curve) in enumerate(zip(basis.parts, basis.curves, strict=True)):
        if curve.rank:
            matrix, here = squares.matrix[part, part], shown[part, i]
            unit = _unit(matrix, curve.penalty)
            ridge = _RIDGE * (np.trace(matrix) / len(matrix) + 1e-300) * np.eye(len(matrix))
            goal = here + rest[part]
            sums = [np.linalg.solve(matrix + ridge + size * unit * curve.penalty, goal) for size in _GRID]
            found[i] = unit * _GRID[np.argmin([own @ matrix @ own - 2 * own @ here for own in sums])]
    return found


def _unit(matrix: Array, penalty: Array) -> float:
    """Return the penalty that counts as much as the rows do."""
    return float((np.trace(matrix) + 1e-300) / np.trace(penalty))


def _finished(sample: Sample, squares: Squares, basis: Basis, found: _Solution) -> Fit:
    """Return the fit with its covariance: noise as the residuals show it, and the prior of what smoothing hides."""
    n_rows = float(sample.weight.sum())
    pulls = squares.weights * squares.residuals(sample.columns, found.coefficients) / sample.weight
    jolts = sample.weight * pulls**2
    scaled = sample.columns * jolts[:, None]
    centre, beside = squares.centre, scaled.sum(axis=0)
    crossed = np.outer(beside, centre)
    noise = scaled.T @ sample.columns - crossed - crossed.T + jolts.sum() * np.outer(centre, centre)
    likely = np.maximum(_likely(squares, basis, found), found.penalties)  # of a truth this smooth, less is hidden
    hidden = found.noise * _penalty(squares, basis, found.penalties**2 / np.maximum(likely, 1e-300))
    scatter = found.inverse @ (noise * (n_rows / found.n_left)) @ found.inverse
    has_levels = np.array([curve.has_levels for curve in basis.curves])
    return Fit(
        coefficients=found.coefficients,
        covariance=scatter + found.inverse @ hidden @ found.inverse,
        scatter=scatter,
        inverse=found.inverse,
        penalties=found.penalties,
        matrix=squares.matrix,
        freedom=found.freedom,
        prior=np.where(has_levels, found.noise / np.maximum(found.penalties, 1e-300), 0.0),
        weights=squares.weights,
        pulls=pulls,
        n_left=found.n_left,
    )
