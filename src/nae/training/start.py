"""The start of the training of a small table: an additive model of lines, levels and waves.

A few hundred rows can tell little more than a penalised additive model; the experts then learn what it leaves. Rows
that are held out choose the penalties. The model is fitted by Newton's steps in double precision, over all rows at
once, so that weights count exactly as repeated rows do.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.encoding import Feature, Number, Schema
from nae.training.data import TrainingRows
from nae.training.losses import Loss

__all__ = ["fit_start"]

_PENALTIES = (1e6, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4)  # beside a mean loss; the first leaves nothing
_WAVES = 8
_N_PARTS = 8
_ROUGHNESS = 1.5  # a wave of k half periods is smaller by k to this power, so that it costs more to be as large
_MOST_DIRECTIONS = 200  # of lines and of waves, where a table has hundreds of features
_LEAST_SPREAD = 1e-6  # of a direction, beside the largest
_PRIOR = 1e-4  # penalty of the intercept: it stays near that of all rows where a class is held out whole
_MOST_STEPS, _MOST_HALVINGS = 12, 12
_ENOUGH = 1e-10  # a step that lowers the objective by less is the last one


@np.errstate(over="ignore", invalid="ignore")  # what overflows is no better, so it is not taken
def fit_start(rows: TrainingRows, schema: Schema, loss: Loss, *, own_fold: IntArray, n_slots: int) -> Array:
    """Return what the members start from, (F * S + 1, O, M); the last row is the intercept.

    A member is fitted without the rows of its fold. The penalties of lines and waves are those that predict best what
    members hold out. If all members hold out the same rows or none, the other rows are divided into parts for that.
    """
    weight = rows.slot_weight(len(schema) * n_slots).reshape(len(schema), n_slots)
    design = _Design([_terms(feature, weight[i]) for i, feature in enumerate(schema.features)], rows, n_slots)
    columns = design.columns(rows)
    folds, members = np.unique(own_fold, return_inverse=True)
    is_out = np.zeros((len(rows), 1), dtype=bool) if rows.fold is None else rows.fold[:, None] == folds
    if is_out.shape[1] > 1:
        problems = _Problem(columns, rows, loss, ~is_out), _Problem(columns, rows, loss, is_out)
        return design.tables(_search(*problems, design.penalty)[0])[..., members]
    kept = np.flatnonzero(~is_out[:, 0])
    columns, rows = columns[kept], rows.take(kept)
    is_part = _parts(rows)[:, None] == np.arange(_N_PARTS)
    problems = _Problem(columns, rows, loss, ~is_part), _Problem(columns, rows, loss, is_part)
    guesses, penalty = _search(*problems, design.penalty)
    everything = np.ones((len(rows), 1), dtype=bool)
    found = _Problem(columns, rows, loss, everything).solve(penalty, guesses.mean(axis=-1, keepdims=True))
    return np.repeat(design.tables(found), len(own_fold), axis=-1)


def _parts(rows: TrainingRows) -> IntArray:
    """Return one of a few equal parts for every row. It depends on what the rows hold and not on their order."""
    held = np.concatenate([rows.cells.slot, rows.cells.fraction, rows.target.reshape(len(rows), -1)], axis=1)
    # Six digits: the last ones depend on how the weights were added up.
    written = [" ".join(f"{number:.6g}" for number in row) for row in held.tolist()]
    digests = [hashlib.blake2b(row.encode(), digest_size=8).digest() for row in written]
    found = np.empty(len(rows), dtype=np.int64)
    found[sorted(range(len(rows)), key=digests.__getitem__)] = np.arange(len(rows)) % _N_PARTS
    return found


@dataclass(frozen=True, eq=False)
class _Terms:
    """The columns of one feature: their values on its slots, and which columns are waves."""

    table: Array  # (slot, column)
    is_wave: BoolArray  # (column,)


def _terms(feature: Feature, weight: Array) -> _Terms:
    """Return a line and waves over the rank for a number, a column for each level, and one for *missing*."""
    n_values = feature.n_values
    share = weight[:n_values] / max(weight[:n_values].sum(), 1e-300)
    if not isinstance(feature, Number):
        columns: Array = np.eye(n_values)
        n_lines = n_values
    else:
        columns, n_lines = _line_and_waves(feature.knots, share), 1
    is_wave = np.arange(columns.shape[1]) >= n_lines
    table = np.zeros((feature.n_slots, columns.shape[1] + feature.has_missing))
    table[:n_values, : columns.shape[1]] = columns
    table[n_values:, : columns.shape[1]] = share @ columns  # unseen is the mean; so is missing, before it is seen
    if feature.has_missing:
        table[n_values, :-1], table[n_values, -1] = 0.0, 1.0
        is_wave = np.append(is_wave, False)
    return _Terms(table, is_wave)


def _line_and_waves(knots: Array, share: Array) -> Array:
    if len(knots) == 1:
        return np.zeros((1, 0))
    line = knots / np.abs(knots).max()  # numbers near the largest have no squares
    line = line - share @ line
    line /= max(float(np.sqrt(share @ line**2)), 1e-300)
    n_waves = min(_WAVES, len(knots) - 1) if len(knots) > 2 else 0
    rank = (np.arange(len(knots)) + 0.5) / len(knots)
    waves = [np.sqrt(2) * np.cos(np.pi * k * rank) / k**_ROUGHNESS for k in range(1, 1 + n_waves)]
    return np.stack([line, *waves], axis=1)


class _Design:
    """Turns rows into columns, with lines apart from waves, and coefficients back into tables."""

    def __init__(self, terms: list[_Terms], rows: TrainingRows, n_slots: int) -> None:
        self.n_slots = n_slots
        self.slot_values = [each.table for each in terms]
        self.is_wave = np.concatenate([each.is_wave for each in terms])
        values, weight = self._values(rows), rows.weight.astype(np.float64)[:, None]
        self.centre = (weight * values).sum(axis=0) / weight.sum()
        scaled = (values - self.centre) * np.sqrt(weight)
        self.turns = [_directions(scaled[:, group]) for group in (~self.is_wave, self.is_wave)]

    def columns(self, rows: TrainingRows) -> Array:
        """Return a column of ones, then the position of every row along the directions of lines and of waves."""
        values = self._values(rows) - self.centre
        lines, waves = values[:, ~self.is_wave] @ self.turns[0], values[:, self.is_wave] @ self.turns[1]
        return np.concatenate([np.ones((len(values), 1)), lines, waves], axis=1)

    def penalty(self, line: float, wave: float) -> Array:
        """Return the penalty of every column."""
        n_lines, n_waves = (turn.shape[1] for turn in self.turns)
        return np.array([_PRIOR, *[line] * n_lines, *[wave] * n_waves])

    def tables(self, coefficients: Array) -> Array:
        """Return the effect of every padded slot, then the intercept, (F * S + 1, O, M)."""
        n_lines = self.turns[0].shape[1]
        own = np.zeros((len(self.is_wave), *coefficients.shape[1:]))
        own[~self.is_wave] = np.tensordot(self.turns[0], coefficients[1 : 1 + n_lines], axes=1)
        own[self.is_wave] = np.tensordot(self.turns[1], coefficients[1 + n_lines :], axes=1)
        found = np.zeros((len(self.slot_values) * self.n_slots + 1, *coefficients.shape[1:]))
        at = 0
        for i, values in enumerate(self.slot_values):
            first = i * self.n_slots
            found[first : first + len(values)] = np.tensordot(values, own[at : at + values.shape[1]], axes=1)
            at += values.shape[1]
        found[-1] = coefficients[0] - np.tensordot(self.centre, own, axes=1)
        return found

    def _values(self, rows: TrainingRows) -> Array:
        slots, fractions = rows.cells.slot, rows.cells.fraction.astype(np.float64)[..., None]
        found = []
        for i, values in enumerate(self.slot_values):
            at = slots[:, i] - i * self.n_slots
            lower, upper = values[at], values[at + (fractions[:, i, 0] > 0)]
            found.append(lower + fractions[:, i] * (upper - lower))
        return np.concatenate(found, axis=1)


def _directions(values: Array) -> Array:
    """Return an orthonormal basis of the space that the columns span, the widest directions first.

    The penalty is the same in all directions, so the basis changes nothing, and few rows span few directions.
    """
    if values.shape[1] == 0:
        return np.zeros((0, 0))
    _, sizes, turn = np.linalg.svd(values, full_matrices=False)
    n_kept = int((sizes > _LEAST_SPREAD * sizes[0]).sum())
    return np.asarray(turn[: min(n_kept, _MOST_DIRECTIONS)].T)


class _Problem:
    """A penalised loss over several choices of the rows at once."""

    def __init__(self, columns: Array, rows: TrainingRows, loss: Loss, is_counted: BoolArray) -> None:
        self.columns, self.loss = columns, loss
        self.target = rows.target if loss.has_classes else rows.target.astype(np.float64)
        self.base = None if rows.base is None else rows.base.astype(np.float64)[..., None]
        self.weight = rows.weight.astype(np.float64)[:, None] * is_counted  # (B, C)
        self.n_outputs = rows.target.shape[1] if rows.base is None else rows.base.shape[1]

    def loss_of(self, coefficients: Array) -> float:
        """Return the mean loss over the rows of all choices."""
        losses = self.loss.per_row(self._score(coefficients), self.target)
        return float((losses * self.weight).sum() / self.weight.sum())

    def solve(self, penalty: Array, guess: Array | None) -> Array:
        """Return the coefficients (column, O, C) of the least penalised loss, by Newton's steps with halving."""
        n_columns, n_choices = self.columns.shape[1], self.weight.shape[1]
        found = guess if guess is not None else np.zeros((n_columns, self.n_outputs, n_choices))
        value = self._objective(found, penalty)
        for _ in range(_MOST_STEPS):
            step = self._newton_step(found, penalty)
            size = np.ones_like(value)
            for _ in range(_MOST_HALVINGS):
                moved = found - size * step
                lowered = value - self._objective(moved, penalty)
                if (lowered >= 0).all():
                    break
                size = np.where(lowered >= 0, size, size / 2)
            is_better = lowered > 0
            found = np.where(is_better, moved, found)
            value = np.where(is_better, value - lowered, value)
            if np.where(is_better, lowered, 0.0).max() < _ENOUGH:
                break
        return found

    def _newton_step(self, found: Array, penalty: Array) -> Array:
        slope, curvature = self.loss.derivatives(self._score(found), self.target)  # (B, O, C)
        weight = self._shares[:, None]
        gradient = np.tensordot(self.columns, slope * weight, axes=(0, 0)) + penalty[:, None, None] * found
        step = np.empty_like(found)
        for o, c in np.ndindex(found.shape[1:]):
            matrix = (self.columns.T * (curvature[:, o, c] * weight[:, 0, c])) @ self.columns + np.diag(penalty)
            step[:, o, c] = _solve(matrix, gradient[:, o, c])
        return step

    def _objective(self, coefficients: Array, penalty: Array) -> Array:
        losses = self.loss.per_row(self._score(coefficients), self.target)
        size = (penalty[:, None, None] * coefficients**2).sum(axis=(0, 1))
        return np.asarray((losses * self._shares).sum(axis=0) + 0.5 * size)

    @property
    def _shares(self) -> Array:
        total = self.weight.sum(axis=0)
        return np.asarray(self.weight / np.where(total > 0, total, 1.0))  # a choice may be of no rows

    def _score(self, coefficients: Array) -> Array:
        score = np.tensordot(self.columns, coefficients, axes=1)
        return score if self.base is None else score + self.base


def _solve(matrix: Array, gradient: Array) -> Array:
    """Return the solution for a positive definite matrix; no numbers where it overflows."""
    if not np.isfinite(matrix).all():
        return np.full_like(gradient, np.nan)
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    try:
        return np.asarray(cho_solve(cho_factor(matrix, lower=True, check_finite=False), gradient, check_finite=False))
    except LinAlgError:
        return np.full_like(gradient, np.nan)


def _search(training: _Problem, judges: _Problem, penalty: Callable[[float, float], Array]) -> tuple[Array, Array]:
    """Return the best coefficients and their penalties; the penalties of lines and waves are searched in turn."""
    solved: dict[tuple[int, int], Array] = {}
    losses: dict[tuple[int, int], float] = {}

    def look(at: tuple[int, int], guess: tuple[int, int] | None) -> float:
        if at not in losses:
            solved[at] = training.solve(penalty(*(_PENALTIES[i] for i in at)), None if guess is None else solved[guess])
            losses[at] = judges.loss_of(solved[at])
        return losses[at]

    best = (0, 0)
    look(best, None)
    for axis in (0, 1, 0, 1):
        for direction in (1, -1):
            best = _walk(best, axis, direction, look)
    return solved[best], penalty(*(_PENALTIES[i] for i in best))


def _walk(
    best: tuple[int, int],
    axis: int,
    direction: int,
    look: Callable[[tuple[int, int], tuple[int, int] | None], float],
) -> tuple[int, int]:
    """Return the best place along one axis. The walk ends after two places in a row that are no better."""
    at, n_worse = best, 0
    while n_worse < 2:
        following = (at[0] + direction, at[1]) if axis == 0 else (at[0], at[1] + direction)
        if not 0 <= following[axis] < len(_PENALTIES):
            break
        n_worse = 0 if look(following, at) < look(best, None) else n_worse + 1
        best, at = (following if n_worse == 0 else best), following
    return best
