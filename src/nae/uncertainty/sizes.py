"""How large residuals usually are: a small additive model of their size, from out-of-fold rows.

The expected size of a residual is ``exp`` of a sum: a curve per feature, and one of the score. Fisher's scoring for a
gamma likelihood finds the curves; how much rough and large curves cost is chosen on the other folds. Residuals are
divided by sizes that were found without their own fold, as the residuals of new rows will be.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding.cells import Cells
from nae.tables.residuals import Sizes
from nae.uncertainty.design import Design, hats, penalty
from nae.uncertainty.outcomes import Outcomes

__all__ = ["CrossFitted", "fit_sizes"]

_COSTS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
_FIRST_COST = 30.0
_STEPS = 4  # of Fisher's scoring, before the cost is chosen and after
_MOST = 4.0  # a residual counts as at most this many times its expected size
_LARGEST = 8.0  # of a logarithm, relative to the mean size
_SCORE_KNOTS = 12
_MOST_ROWS = 8000


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """The sizes of new rows, and those of every fold, found without it."""

    sizes: Sizes
    by_fold: dict[int, Sizes]

    def of_rows(self, cells: Cells, score: Array, fold: IntArray) -> Array:
        """Return the logarithm of the size of every residual, found without its fold, (row, output)."""
        found = np.empty(score.shape)
        for number, sizes in self.by_fold.items():
            own = np.flatnonzero(fold == number)
            found[own] = sizes.at(cells.take(own), score[own])
        return found


def fit_sizes(design: Design, rows: Outcomes, residuals: Array) -> CrossFitted | None:
    """Return the sizes of residuals (row, output); None if an output has none but zeros, or there is one fold.

    At most 8,000 rows are used, evenly spaced.
    """
    some = np.arange(0, len(rows), -(-len(rows) // _MOST_ROWS))
    rows, sizes = rows.take(some), np.abs(residuals[some])
    numbers = np.unique(rows.folds)
    if len(numbers) < 2 or not (sizes.mean(axis=0) > 0).all():
        return None
    columns = design.columns(rows.cells)
    outputs = [_fit_output(design, columns, rows, rows.score[:, o], size) for o, size in enumerate(sizes.T)]
    joined = [_joined(parts) for parts in zip(*outputs, strict=True)]
    return CrossFitted(joined[0], dict(zip(numbers.tolist(), joined[1:], strict=True)))


def _joined(outputs: Sequence[Sizes]) -> Sizes:
    """Return the sizes of several outputs as one."""
    return Sizes(*(np.stack(parts, axis=1) for parts in zip(*(vars(one).values() for one in outputs), strict=True)))


def _fit_output(design: Design, columns: Array, rows: Outcomes, score: Array, size: Array) -> list[Sizes]:
    """Return the sizes of one output from all rows, then those without each fold; arrays have one axis."""
    knots = np.quantile(score, np.linspace(0.01, 0.99, _SCORE_KNOTS))
    own = np.unique(knots)
    whole = np.concatenate([np.ones((len(score), 1)), columns, hats(score, own)], axis=1)
    costs = _blocks([np.zeros((1, 1)), *design.penalties(), penalty(len(own) + 1, is_ordered=True)[:-1, :-1]])
    mean = float(np.average(size, weights=rows.weight))
    problem = _Problem(whole, np.minimum(size / mean, 1e6), rows.weight, rows.folds, costs)
    shares = rows.weight @ columns / rows.weight.sum()
    found = []
    for coefficients in problem.solve():
        middle, curves = coefficients[0], coefficients[1 : 1 + columns.shape[1]]
        level = middle + np.log(mean) + shares @ curves + np.interp(knots, own, coefficients[1 + len(curves) :])
        found.append(Sizes(_centred(design, curves, shares), knots, level))
    return found


def _centred(design: Design, curves: Array, shares: Array) -> Array:
    """Return the curves at all slots, each with the mean zero over the rows."""
    ends = np.cumsum([0, *design.sizes])
    slots = design.at_slots(curves)
    for at, i in enumerate(design.features):
        own = slice(ends[at], ends[at + 1])
        slots[design.schema.slots(int(i))] -= shares[own] @ curves[own]
    return slots


def _blocks(parts: Sequence[Array]) -> Array:
    """Return a matrix with the given ones along its diagonal."""
    ends = np.cumsum([0, *map(len, parts)])
    found = np.zeros((ends[-1], ends[-1]))
    for part, first, last in zip(parts, ends, ends[1:], strict=False):
        found[first:last, first:last] = part
    return found


class _Problem:
    """Coefficients whose sum is the logarithm of a positive number's expectation."""

    def __init__(self, columns: Array, values: Array, weight: Array, fold: IntArray, costs: Array) -> None:
        self.columns, self.values, self.weight, self.costs = columns, values, weight, costs
        self.folds = [fold == number for number in np.unique(fold)]
        self.grams = [self._gram(own) for own in self.folds]
        self.gram = np.sum(self.grams, axis=0)
        self.tiny = 1e-8 * np.eye(len(costs)) * max(float(np.trace(self.gram)), 1.0) / len(costs)

    def solve(self) -> list[Array]:
        """Return the coefficients of all rows, then those without each fold."""
        start = self._scored(np.zeros(len(self.costs)), _FIRST_COST)
        cost = self._choose(self._products(start))
        found = self._scored(start, cost)
        return [found, *self._without(self._products(found), cost)]

    def _gram(self, own: Array) -> Array:
        part = self.columns[own]
        return np.asarray((part * self.weight[own, None]).T @ part)

    def _scored(self, coefficients: Array, cost: float) -> Array:
        """Return the coefficients after some steps of Fisher's scoring."""
        inverse = np.linalg.inv(self.gram + cost * self.costs + self.tiny)
        for _ in range(_STEPS):
            excess = self.columns.T @ (self.weight * self._excess(coefficients)[1])
            coefficients = coefficients + inverse @ (excess - cost * (self.costs @ coefficients))
        return coefficients

    def _excess(self, coefficients: Array) -> tuple[Array, Array]:
        """Return the logarithms of the expectations, and by which share the values are above them."""
        logs = np.clip(self.columns @ coefficients, -_LARGEST, _LARGEST)
        return logs, np.minimum(self.values * np.exp(-logs), _MOST) - 1

    def _products(self, coefficients: Array) -> list[Array]:
        """Return the products of the columns with the working response, per fold."""
        logs, excess = self._excess(coefficients)
        response = self.weight * (logs + excess)
        return [self.columns[own].T @ response[own] for own in self.folds]

    def _without(self, products: list[Array], cost: float) -> list[Array]:
        """Return the coefficients that are found without each fold."""
        total = np.sum(products, axis=0)
        penalised = self.gram + cost * self.costs + self.tiny
        return [
            np.linalg.solve(penalised - gram, total - product)
            for gram, product in zip(self.grams, products, strict=True)
        ]

    def _choose(self, products: list[Array]) -> float:
        """Return the cost with which the folds are predicted best by the others."""

        def loss(cost: float) -> float:
            parts = zip(self.grams, products, self._without(products, cost), strict=True)
            return sum(float(own @ gram @ own - 2 * product @ own) for gram, product, own in parts)

        return min(_COSTS, key=loss)
