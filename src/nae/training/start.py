"""The start of the training of a small table: an additive model of lines, levels and waves.

A few hundred rows can tell little more than a penalised additive model; the experts then learn what it leaves. Rows
that are held out choose the penalties. The model is fitted by Newton's steps in double precision, over all rows at
once, so that weights count exactly as repeated rows do.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as fn
from torch import Tensor

from nae._typing import Array, BoolArray
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
_LEAST_ERROR, _LEAST_CURVATURE = 0.05, 1e-4


def fit_start(rows: TrainingRows, schema: Schema, loss: Loss, *, own_fold: Tensor, n_slots: int) -> Tensor:
    """Return what the members start from, (F * S + 1, O, M); the last row is the intercept.

    A member is fitted without the rows of its fold. The penalties of lines and waves are those that predict best what
    members hold out. If all members hold out the same rows or none, the other rows are divided into parts for that.
    """
    weight = rows.slot_weight(len(schema) * n_slots).double().view(len(schema), n_slots).numpy()
    design = _Design([_terms(feature, weight[i]) for i, feature in enumerate(schema.features)], rows, n_slots)
    columns = design.columns(rows)
    folds, members = own_fold.unique(return_inverse=True)
    is_out = torch.zeros(len(rows), 1, dtype=torch.bool) if rows.fold is None else rows.fold.unsqueeze(-1) == folds
    if is_out.shape[1] > 1:
        problems = _Problem(columns, rows, loss, ~is_out), _Problem(columns, rows, loss, is_out)
        return design.tables(_search(*problems, design.penalty)[0])[..., members]
    kept = torch.nonzero(~is_out[:, 0]).flatten()
    columns, rows = columns[kept], rows.take(kept)
    is_part = _parts(rows).unsqueeze(-1) == torch.arange(_N_PARTS)
    problems = _Problem(columns, rows, loss, ~is_part), _Problem(columns, rows, loss, is_part)
    guesses, penalty = _search(*problems, design.penalty)
    everything = torch.ones(len(rows), 1, dtype=torch.bool)
    found = _Problem(columns, rows, loss, everything).solve(penalty, guesses.mean(dim=-1, keepdim=True))
    return design.tables(found).expand(-1, -1, len(own_fold))


def _parts(rows: TrainingRows) -> Tensor:
    """Return one of a few equal parts for every row. It depends on what the rows hold and not on their order."""
    held = torch.cat([rows.cells.slot, rows.cells.fraction, rows.target.view(len(rows), -1)], dim=1)
    # Six digits: the last ones depend on how the weights were added up.
    written = [" ".join(f"{number:.6g}" for number in row) for row in held.tolist()]
    digests = [hashlib.blake2b(row.encode(), digest_size=8).digest() for row in written]
    found = torch.empty(len(rows), dtype=torch.int64)
    found[sorted(range(len(rows)), key=digests.__getitem__)] = torch.arange(len(rows)) % _N_PARTS
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
        self.slot_values = [torch.as_tensor(each.table) for each in terms]
        self.is_wave = torch.as_tensor(np.concatenate([each.is_wave for each in terms]))
        values, weight = self._values(rows), rows.weight.double().unsqueeze(-1)
        self.centre = (weight * values).sum(dim=0) / weight.sum()
        scaled = (values - self.centre) * weight.sqrt()
        self.turns = [_directions(scaled[:, group]) for group in (~self.is_wave, self.is_wave)]

    def columns(self, rows: TrainingRows) -> Tensor:
        """Return a column of ones, then the position of every row along the directions of lines and of waves."""
        values = self._values(rows) - self.centre
        lines, waves = values[:, ~self.is_wave] @ self.turns[0], values[:, self.is_wave] @ self.turns[1]
        return torch.cat([torch.ones(len(values), 1, dtype=values.dtype), lines, waves], dim=1)

    def penalty(self, line: float, wave: float) -> Tensor:
        """Return the penalty of every column."""
        n_lines, n_waves = (turn.shape[1] for turn in self.turns)
        return torch.tensor([_PRIOR, *[line] * n_lines, *[wave] * n_waves], dtype=torch.float64)

    def tables(self, coefficients: Tensor) -> Tensor:
        """Return the effect of every padded slot, then the intercept, (F * S + 1, O, M)."""
        n_lines = self.turns[0].shape[1]
        own = torch.zeros(len(self.is_wave), *coefficients.shape[1:], dtype=coefficients.dtype)
        own[~self.is_wave] = torch.einsum("pd,dom->pom", self.turns[0], coefficients[1 : 1 + n_lines])
        own[self.is_wave] = torch.einsum("pd,dom->pom", self.turns[1], coefficients[1 + n_lines :])
        parts = own.split([values.shape[1] for values in self.slot_values])
        effects = [torch.einsum("sp,pom->som", *pair) for pair in zip(self.slot_values, parts, strict=True)]
        padded = [fn.pad(effect, (0, 0, 0, 0, 0, self.n_slots - len(effect))) for effect in effects]
        intercept = coefficients[0] - torch.einsum("p,pom->om", self.centre, own)
        return torch.cat([*padded, intercept.unsqueeze(0)])

    def _values(self, rows: TrainingRows) -> Tensor:
        slots, fractions = rows.cells.slot, rows.cells.fraction.double().unsqueeze(-1)
        found = []
        for i, values in enumerate(self.slot_values):
            at = slots[:, i] - i * self.n_slots
            upper = at + (fractions[:, i, 0] > 0)
            found.append(torch.lerp(values[at], values[upper], fractions[:, i]))
        return torch.cat(found, dim=1)


def _directions(values: Tensor) -> Tensor:
    """Return an orthonormal basis of the space that the columns span, the widest directions first.

    The penalty is the same in all directions, so the basis changes nothing, and few rows span few directions.
    """
    if values.shape[1] == 0:
        return values.new_zeros(0, 0)
    _, sizes, turn = torch.linalg.svd(values, full_matrices=False)
    n_kept = int((sizes > _LEAST_SPREAD * sizes[0]).sum())
    directions: Tensor = turn[: min(n_kept, _MOST_DIRECTIONS)].T
    return directions


class _Problem:
    """A penalised loss over several choices of the rows at once."""

    def __init__(self, columns: Tensor, rows: TrainingRows, loss: Loss, is_counted: Tensor) -> None:
        self.columns, self.loss = columns, loss
        self.target = rows.target.double() if rows.target.is_floating_point() else rows.target
        self.base = None if rows.base is None else rows.base.double().unsqueeze(-1)
        self.weight = rows.weight.double().unsqueeze(-1) * is_counted  # (B, C)
        self.n_outputs = rows.target.shape[1] if rows.base is None else rows.base.shape[1]

    def loss_of(self, coefficients: Tensor) -> float:
        """Return the mean loss over the rows of all choices."""
        losses = self.loss.per_row(self._score(coefficients), self.target)
        return float((losses * self.weight).sum() / self.weight.sum())

    def solve(self, penalty: Tensor, guess: Tensor | None) -> Tensor:
        """Return the coefficients (column, O, C) of the least penalised loss, by Newton's steps with halving."""
        n_columns, n_choices = self.columns.shape[1], self.weight.shape[1]
        found = guess if guess is not None else self.columns.new_zeros(n_columns, self.n_outputs, n_choices)
        value = self._objective(found, penalty)
        for _ in range(_MOST_STEPS):
            step = self._newton_step(found, penalty)
            size = torch.ones_like(value)
            for _ in range(_MOST_HALVINGS):
                moved = found - size * step
                lowered = value - self._objective(moved, penalty)
                if bool((lowered >= 0).all()):
                    break
                size = torch.where(lowered >= 0, size, size / 2)
            is_better = lowered > 0
            found = torch.where(is_better, moved, found)
            value = torch.where(is_better, value - lowered, value)
            if float(torch.where(is_better, lowered, 0.0).max()) < _ENOUGH:
                break
        return found

    def _newton_step(self, found: Tensor, penalty: Tensor) -> Tensor:
        slope, curvature = _derivatives(self.loss, self._score(found), self.target)
        weight = self._shares.unsqueeze(1)
        gradient = torch.einsum("bp,boc->ocp", self.columns, slope * weight)
        gradient = gradient + (penalty.view(-1, 1, 1) * found).permute(1, 2, 0)
        bent = torch.einsum("boc,bp->ocpb", curvature * weight, self.columns)
        matrix = bent @ self.columns + torch.diag(penalty)
        root, _ = torch.linalg.cholesky_ex(matrix)  # no numbers where it overflows
        step: Tensor = torch.cholesky_solve(gradient.unsqueeze(-1), root).squeeze(-1)
        return step.permute(2, 0, 1)

    def _objective(self, coefficients: Tensor, penalty: Tensor) -> Tensor:
        losses = self.loss.per_row(self._score(coefficients), self.target)
        size = (penalty.view(-1, 1, 1) * coefficients**2).sum(dim=(0, 1))
        return (losses * self._shares).sum(dim=0) + 0.5 * size

    @property
    def _shares(self) -> Tensor:
        return self.weight / self.weight.sum(dim=0)

    def _score(self, coefficients: Tensor) -> Tensor:
        score = torch.einsum("bp,poc->boc", self.columns, coefficients)
        return score if self.base is None else score + self.base


def _derivatives(loss: Loss, score: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return slope and curvature of every row's loss along each of its scores, (B, O, M).

    Where a loss of the distance to a number has a corner or a straight side, the curvature is that of a parabola with
    the same slope. Classes are treated one by one.
    """
    if loss.has_classes:
        shares = score.softmax(dim=1)
        slope = shares - fn.one_hot(target, score.shape[1]).unsqueeze(-1)
        return slope, (shares * (1 - shares)).clamp(min=_LEAST_CURVATURE)
    with torch.enable_grad():
        moving = score.detach().requires_grad_()
        (slope,) = torch.autograd.grad(loss.per_row(moving, target).sum(), moving, create_graph=True)
        curvature = torch.zeros_like(score)
        if slope.requires_grad:
            (curvature,) = torch.autograd.grad(slope.sum(), moving)
    if loss.is_scaled:
        distance = (score - target.unsqueeze(-1)).abs().clamp(min=_LEAST_ERROR)
        curvature = torch.maximum(curvature, slope.detach().abs() / distance)
    return slope.detach(), curvature.clamp(min=_LEAST_CURVATURE)


def _search(training: _Problem, judges: _Problem, penalty: Callable[[float, float], Tensor]) -> tuple[Tensor, Tensor]:
    """Return the best coefficients and their penalties; the penalties of lines and waves are searched in turn."""
    solved: dict[tuple[int, int], Tensor] = {}
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
