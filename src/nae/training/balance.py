"""The last step of a fit: the intercept with which predicted totals are those of the training rows.

Training stops where validation is best. Members end a little above or below the totals, and they are averaged before
the link, so that the mean of the predictions is off by some percent. One number per output corrects that exactly. If
a loss has no total to match (quantile, absolute and Huber loss), the intercept is the one that minimises the loss. The
intercepts of several quantiles are solved for together: they minimise the loss among those with which no input makes
the quantiles cross.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nae._typing import AnyArray, Array, IntArray
from nae.tables.model import TableModel
from nae.training.assemble import Scale, unpadded
from nae.training.data import RowSource, Scored, TrainingRows
from nae.training.losses import Excess, Loss
from nae.training.ordering import least_apart, pool_violators
from nae.training.workers import ALONE, Workers

__all__ = ["balance", "balance_again"]

_ROWS = 1 << 16  # rows summed together
_SCORED = 1 << 13  # rows scored together: their cells are many more numbers
_CLOSE = 1e-10  # an excess of this share of the total is none
_NARROW = 1e-13  # an interval of this width, in standard deviations of the target or units of a logarithm, is a point
_STEP = 2.0  # the longest step that a slope is believed
_PASSES = 200  # over the rows, at most; a smooth condition takes about five, one that jumps about fifty


def balance(
    model: TableModel,
    sources: Sequence[RowSource],
    loss: Loss,
    scale: Scale,
    *,
    class_weight: Array | None = None,
    workers: Workers = ALONE,
) -> TableModel:
    """Return the same model with the intercept at which its predictions have the totals of the rows.

    Parameters
    ----------
    model
        The finished model.
    sources
        The training rows whose totals are matched.
    loss, scale
        The loss that was minimised, and the scale that turns the score of training into that of the model.
    class_weight
        The factor by which learning multiplied the weights of each class. It is taken out again, so that probabilities
        are those of the classes in the data.
    workers
        The processes that hold the other rows; sums are taken over all of them.
    """
    parts = [part for source in sources for part in source.scored(lambda rows: _score(model, rows, loss, scale))]
    rows = _Rows(parts, loss.excess, class_weight, workers)
    weights = np.ones(1) if class_weight is None else class_weight
    logs = np.log(weights)
    shift = _solve(model, rows, loss, scale.unit, logs)
    shift = np.where(scale.spread > 0, workers.agree(shift.tolist()), 0.0)  # a constant target is predicted already
    return replace(
        model,
        intercept=model.intercept + shift,
        class_weight=tuple(weights.tolist()) if logs.any() else (),
        training=replace(model.training, intercept_shift=tuple(shift.tolist())),
    )


def balance_again(model: TableModel, rows: Scored, loss: Loss, unit: Array) -> TableModel:
    """Return the same model with the intercept at which its predictions have the totals of rows.

    ``unit`` is what scores and targets of a scaled loss are divided by, per output; ``rows`` hold neither.
    """
    score, target = rows.score / unit, rows.target
    if loss.is_scaled:
        target = np.broadcast_to(target, rows.score.shape) / unit
    found = _Rows([Scored(score, target, rows.weight)], loss.excess, None, ALONE)
    shift = _solve(model, found, loss, unit, np.zeros(max(len(model.classes), 1)))
    return replace(
        model,
        intercept=model.intercept + shift,
        training=replace(model.training, intercept_shift=tuple(shift.tolist())),
    )


def _solve(model: TableModel, rows: "_Rows", loss: Loss, unit: Array, logs: Array) -> Array:
    """Return the shift of every output, on the scale of the model; ``logs`` are those of the weights of classes."""
    if loss.has_classes:
        shift = _solve_classes(rows, -logs)
        return np.asarray(shift - shift.mean())
    if loss.levels:
        return _solve_ordered(rows, least_apart(model) / unit[1:]) * unit
    start = np.full(model.n_outputs, logs[0] - logs[-1])
    return _solve_outputs(rows, start, is_relative=not loss.is_scaled) * unit


def _score(model: TableModel, rows: TrainingRows, loss: Loss, scale: Scale) -> Array:
    """Return the score of every row on the scale of training, (B, O), offset included."""
    score = np.empty((len(rows), model.n_outputs))
    nothing = np.zeros_like(scale.centre)
    begin, centre = nothing, scale.centre
    if not loss.is_scaled:  # the base begins at the centre, rounded as the base is
        begin, centre = scale.centre.astype(rows.weight.dtype).astype(np.float64), nothing
    for start in range(0, len(rows), _SCORED):
        part = slice(start, start + _SCORED)
        found = model.decision_function(unpadded(model.schema, rows.cells.take(part))).reshape(-1, model.n_outputs)
        score[part] = (found - centre) / scale.unit
        if rows.base is not None:
            score[part] += rows.base[part].astype(np.float64) - begin
    return score


@dataclass(frozen=True, eq=False)
class _Rows:
    """Scored rows of this worker, and sums over the rows of all workers."""

    parts: list[Scored]
    excess: Excess
    class_weight: Array | None
    workers: Workers

    def total(self, summed: Callable[[Array, AnyArray, Array], Array]) -> Array:
        """Return the sum over all rows; ``summed`` gives that of a few, from their scores, targets and weights."""
        found = sum(summed(*few) for few in self._few())
        return np.asarray(self.workers.total(np.asarray(found, dtype=np.float64)))

    def _few(self) -> Iterator[tuple[Array, AnyArray, Array]]:
        for part in self.parts:
            for start in range(0, len(part), _ROWS):
                rows = slice(start, start + _ROWS)
                target, weight = np.asarray(part.target[rows]), np.asarray(part.weight[rows], dtype=np.float64)
                if self.class_weight is not None:
                    weight = weight / self.class_weight[target.reshape(-1).astype(np.int64)]
                yield np.asarray(part.score[rows]), target, weight


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Outputs that move together: the number of each one's block, and what it is moved besides."""

    of_output: IntArray  # (O,), from 0
    besides: Array  # (O,)

    @staticmethod
    def alone(n_outputs: int) -> "_Blocks":
        return _Blocks(np.arange(n_outputs), np.zeros(n_outputs))

    def __len__(self) -> int:
        return int(self.of_output[-1]) + 1

    def total(self, values: Array) -> Array:
        """Return the sum over the outputs of every block; (..., O) -> (..., block)."""
        first = np.flatnonzero(np.diff(self.of_output, prepend=-1))
        return np.asarray(np.add.reduceat(values, first, axis=-1))

    def spread(self, moved: Array) -> Array:
        """Return by how much every output is moved where blocks are."""
        return np.asarray(moved[self.of_output] + self.besides)


def _solve_ordered(rows: _Rows, apart: Array) -> Array:
    """Return the shifts with the least loss that leave each output at least where the one before it is.

    ``apart`` is how far each output is above the one before it without a shift. Where shifts that balance every output
    alone would let two cross, these two are moved as one: the shares of rows below them are right on average.
    """
    n_outputs = len(apart) + 1
    besides = -np.cumsum(np.append(0.0, apart))
    of_output: IntArray = np.arange(n_outputs)
    while True:
        blocks = _Blocks(of_output, besides)
        moved = _solve_outputs(rows, -besides[np.unique(of_output, return_index=True)[1]], blocks=blocks)
        joined = pool_violators(of_output, moved)
        if joined[-1] == of_output[-1]:
            return blocks.spread(moved)
        of_output = joined


def _solve_outputs(rows: _Rows, start: Array, *, is_relative: bool = False, blocks: _Blocks | None = None) -> Array:
    """Return the shift of every block at which its excess is zero, by Newton's steps within an interval.

    If ``blocks`` is None, every output is a block.

    The excess grows with the shift, so an interval holds the solution. It is halved where a step is not trusted. If a
    total is zero and the link is a logarithm, there is no solution. The shift then stays where it starts, since the
    excess is compared with the weights.
    """
    together = _Blocks.alone(len(start)) if blocks is None else blocks

    def sizes(_: Array, target: AnyArray, weight: Array) -> Array:
        return np.stack([weight @ np.abs(target), np.full(len(together.of_output), weight.sum())])

    size = together.total(rows.total(sizes))
    close = _CLOSE * (np.where(size[0] > 0, size[0], size[1]) if is_relative else size[1])
    at, low, high = start.copy(), np.full_like(start, -np.inf), np.full_like(start, np.inf)
    reach = np.ones_like(start)

    def sums(score: Array, target: AnyArray, weight: Array) -> Array:
        gap, slope = rows.excess(score + together.spread(at), target)
        return together.total(np.stack([_with(weight, gap), _with(weight, slope)]))

    for number in range(_PASSES):
        gap, slope = rows.total(sums)
        low, high = np.where(gap < 0, at, low), np.where(gap > 0, at, high)
        is_done = (np.abs(gap) <= close) | (high - low <= _NARROW * np.maximum(1.0, np.abs(at)))
        if is_done.all():
            break
        step = np.clip(-gap / np.where(slope > 0, slope, np.inf), -_STEP, _STEP)
        is_bounded = np.isfinite(high - low)
        middle = (np.where(is_bounded, low, 0.0) + np.where(is_bounded, high, 0.0)) / 2
        halved = np.where(is_bounded, middle, at - np.sign(gap) * reach)
        reach = np.where(is_bounded, reach, 2 * reach)
        is_believed = (slope > 0) & (low < at + step) & (at + step < high) & (number % 3 < 2)
        at = np.where(is_done, at, np.where(is_believed, at + step, halved))
    return at


def _with(weight: Array, values: Array) -> Array:
    """Return the weighted sum of rows; infinite terms count as very large ones."""
    return np.asarray(weight @ np.nan_to_num(values, posinf=1e200))


def _solve_classes(rows: _Rows, start: Array) -> Array:
    """Return the shift of every class at which all classes have their totals, by Newton's steps.

    The excess is the slope of the cross-entropy, which is convex. A step is halved until it lowers the cross-entropy.
    Only differences between classes matter.
    """
    n_classes = len(start)
    total = rows.total(lambda _, target, weight: np.bincount(target, weight, minlength=n_classes).astype(np.float64))
    close = _CLOSE * total
    at = start.copy()
    value, gap, slope = _class_sums(rows, at)
    for _ in range(_PASSES):
        if (np.abs(gap) <= close).all():
            break
        size = max(float(np.trace(slope)), 1e-200)  # all classes moved alike change nothing: the sum stays as it is
        step = -np.linalg.solve(slope + size * (1 + 1e-14 * np.eye(n_classes)), gap)
        step *= min(1.0, _STEP / np.abs(step).max())
        length, drop = 1.0, float(gap @ step)
        found = _class_sums(rows, at + step)
        while found[0] > value + 1e-4 * length * drop and length > 1e-6:
            length /= 2
            found = _class_sums(rows, at + length * step)
        if not found[0] < value:  # as far as rounding lets it go
            break
        at, (value, gap, slope) = at + length * step, found
    return at


def _class_sums(rows: _Rows, at: Array) -> tuple[float, Array, Array]:
    """Return the cross-entropy, the excess of every class, and the slope of each excess in the shift of each class."""
    n_classes = len(at)

    def sums(score: Array, target: AnyArray, weight: Array) -> Array:
        moved = score + at
        gap, chance = rows.excess(moved, target)
        most = moved.max(axis=1)
        log_total = most + np.log(np.exp(moved - most[:, None]).sum(axis=1))
        value = weight @ (log_total - moved[np.arange(len(moved)), target])
        slope = np.diag(weight @ chance) - (chance * weight[:, None]).T @ chance
        return np.concatenate([[value], weight @ gap, slope.ravel()])

    found = rows.total(sums)
    return float(found[0]), found[1 : 1 + n_classes], found[1 + n_classes :].reshape(n_classes, n_classes)
