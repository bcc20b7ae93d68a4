"""Can a feature be told from noise? Tests of its curve, and of its products with other features."""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array, IntArray
from nae.uncertainty.effects.basis import Basis
from nae.uncertainty.effects.smoothing import Fit
from nae.uncertainty.effects.squares import Sample

__all__ = ["chance_of_curves", "chance_of_products"]

_MOST_ROWS = 10_000  # on which products are tested
_MOST_PARTNERS, _LEAST_PARTNERS, _MOST_PAIRS = 20, 4, 1200
_SHAPES = 3  # of a feature, in its products
_FREEDOMS = (2.0, 10.0)  # degrees of freedom with which a curve is tested
_LEAST, _KNOWN = 1e-9, 1e-6  # of a direction, beside the largest; in smaller ones there is nothing but rounding


def chance_of_curves(basis: Basis, fit: Fit, *, is_exact: bool) -> Array:
    """Return, for every feature, the chance of a curve as large as its own if there were none.

    The smoothness of the fit was chosen by the same rows, which would make curves of idle features look too good. So a
    curve is tested with smoothness that no target had a say in: once stiff and once flexible. The smaller chance
    counts twice. ``is_exact`` says whether the noise is known; otherwise it is estimated, too.
    """
    found = np.ones(len(basis.curves))
    for i, part in enumerate(basis.parts):
        matrix, penalty = fit.matrix[part, part], basis.curves[i].penalty
        sizes = {_size_for(matrix, penalty, freedom) for freedom in _FREEDOMS} if basis.curves[i].rank else {0.0}
        n_left = np.inf if is_exact else fit.n_left
        chances = [_chance_of_curve(fit, part, (size - fit.penalties[i]) * penalty, n_left) for size in sizes]
        found[i] = min(1.0, len(chances) * min(chances))
    return found


def _chance_of_curve(fit: Fit, part: slice, change: Array, n_left: float) -> float:
    """Return the chance of a curve when its penalty is changed (a Wald test).

    All directions count, each beside its standard error. In those that smoothing or other features hide, noise is
    smaller than the error, so the statistic is a sum of weighted squares (Satterthwaite's approximation).
    """
    inverse = fit.inverse[part, part]
    turn = np.linalg.inv(np.eye(len(inverse)) + inverse @ change)
    coefficients, scatter = turn @ fit.coefficients[part], turn @ fit.scatter[part, part] @ turn.T
    known = turn @ inverse
    root = _root(fit.matrix[part, part])
    sizes, directions = np.linalg.eigh(root @ (known + known.T) @ root)
    is_there = sizes > _KNOWN * max(float(sizes[-1:].sum()), 1e-300)
    if not is_there.any():
        return 1.0
    scaled = (directions[:, is_there] / np.sqrt(sizes[is_there])).T @ root
    weights = np.maximum(np.linalg.eigvalsh(scaled @ scatter @ scaled.T), 0.0)
    if not weights.sum() > 0:
        return 1.0
    unit, rank = np.sum(weights**2) / weights.sum(), weights.sum() ** 2 / np.sum(weights**2)
    return _chance(float(np.sum((scaled @ coefficients) ** 2) / unit), float(rank), n_left)


def _size_for(matrix: Array, penalty: Array, freedom: float) -> float:
    """Return the penalty with which a feature alone has about so many degrees of freedom, or all that it can have."""
    unit = (np.trace(matrix) + 1e-300) / np.trace(penalty)
    ridge = _LEAST * (np.trace(matrix) / len(matrix) + 1e-300) * np.eye(len(matrix))
    sizes = unit * 10.0 ** np.arange(-6.0, 6.1, 0.5)
    left = [np.trace(np.linalg.solve(matrix + ridge + size * penalty, matrix)) for size in sizes]
    return float(sizes[np.argmin(np.abs(np.array(left) - min(freedom, max(left))))])


def _root(matrix: Array) -> Array:
    """Return the symmetric root of a matrix without negative directions."""
    sizes, directions = np.linalg.eigh(matrix)
    return np.asarray(directions * np.sqrt(np.maximum(sizes, 0.0)) @ directions.T)


def chance_of_products(sample: Sample, basis: Basis, fit: Fit) -> Array:
    """Return, for every feature, the chance of residuals that follow its products as closely, if none counted.

    The smallest chance over its partners, times their number. Partners are the features whose effects are largest.
    """
    n_features = len(basis.curves)
    if n_features < 2:
        return np.ones(n_features)
    n_partners = int(np.clip(_MOST_PAIRS // n_features, _LEAST_PARTNERS, _MOST_PARTNERS))
    partners = np.argsort(-sample.shown.std(axis=0), kind="stable")[: n_partners + 1]
    rows = _Rows.of(sample, basis, fit, slice(None, None, -(-len(sample.weight) // _MOST_ROWS)))
    found, counted = np.ones((n_features, n_features)), np.zeros((n_features, n_features), dtype=bool)
    for i in range(n_features):
        for j in partners:
            if i != j and not counted[i, j]:
                found[i, j] = found[j, i] = rows.product(i, int(j))
                counted[i, j] = counted[j, i] = True
    return np.asarray(np.minimum(1.0, found.min(axis=1) * counted.sum(axis=1)))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows on which products are tested."""

    columns: Array
    parts: list[slice]
    matrix: Array  # of the columns
    shapes: list[Array]  # (row, shape) of every feature
    count: Array
    weights: Array
    pulls: Array

    @staticmethod
    def of(sample: Sample, basis: Basis, fit: Fit, rows: slice) -> "_Rows":
        weights = fit.weights[rows]
        columns = sample.columns[rows] - weights @ sample.columns[rows] / weights.sum()
        matrix = (columns * weights[:, None]).T @ columns
        shapes = [columns[:, part] @ _widest(matrix[part, part]) for part in basis.parts]
        return _Rows(columns, basis.parts, matrix, shapes, sample.weight[rows], weights, fit.pulls[rows])

    def product(self, first: int, second: int) -> float:
        """Return the chance that residuals follow the products of two features so closely."""
        crossed = (self.shapes[first][:, :, None] * self.shapes[second][:, None, :]).reshape(len(self.count), -1)
        if not crossed.shape[1]:
            return 1.0
        own = np.r_[self.parts[first], self.parts[second]]
        products = self._apart(crossed, own)
        total = products.T @ (self.count * self.pulls)
        noise = (products * (self.count * self.pulls**2)[:, None]).T @ products
        sizes, directions = np.linalg.eigh(noise)
        is_there = sizes > _LEAST * max(float(sizes[-1]), 1e-300)
        rank, n_rows = int(is_there.sum()), float(self.count.sum())
        if not rank:
            return 1.0
        along = directions[:, is_there].T @ total
        n_left = max(n_rows - len(own) - rank, 1.0)
        return _chance(float(np.sum(along**2 / sizes[is_there])) * n_left / n_rows, rank, n_left)

    def _apart(self, products: Array, own: IntArray) -> Array:
        """Return what the features' own columns leave of their products."""
        products = products - self.weights @ products / self.weights.sum()
        columns, matrix = self.columns[:, own], self.matrix[np.ix_(own, own)]
        ridge = _LEAST * (np.trace(matrix) / len(own) + 1e-300) * np.eye(len(own))
        crossed = columns.T @ (products * self.weights[:, None])
        return np.asarray(products - columns @ np.linalg.solve(matrix + ridge, crossed))


def _widest(matrix: Array) -> Array:
    """Return the widest directions of a feature's columns, which are smooth curves or contrasts of frequent levels."""
    sizes, directions = np.linalg.eigh(matrix)
    kept = np.arange(len(sizes))[::-1][:_SHAPES]
    return np.asarray(directions[:, kept[sizes[kept] > 1e-6 * max(float(sizes[-1:].sum()), 1e-300)]])


def _chance(statistic: float, rank: float, n_left: float) -> float:
    from scipy.special import chdtrc, fdtrc  # scipy.stats, which has them too, takes a second to load

    return float(chdtrc(rank, statistic) if np.isinf(n_left) else fdtrc(rank, n_left, statistic / rank))
