"""Can a feature be told from noise? Tests of its curve, and of its products with other features."""

import numpy as np

from nae._typing import Array
from nae.uncertainty.effects.basis import Basis
from nae.uncertainty.effects.smoothing import Fit, Sample

__all__ = ["chance_of_curves", "chance_of_products"]

_MOST_ROWS = 20_000  # on which products are tested
_MOST_PARTNERS = 30
_SHAPES = 3  # of a feature, in its products
_LEAST = 1e-9  # of a direction, beside the largest


def chance_of_curves(sample: Sample, basis: Basis, fit: Fit, *, is_exact: bool) -> Array:
    """Return, for every feature, the chance of a curve as large as its own if there were none (a Wald test).

    ``is_exact`` says whether the noise is known; otherwise it is estimated, too.
    """
    found = np.ones(len(basis.curves))
    for i, part in enumerate(basis.parts):
        columns = sample.columns[:, part] * np.sqrt(fit.weights)[:, None]
        if not np.any(columns):
            continue
        turn = np.asarray(np.linalg.qr(columns, mode="r"))
        sizes, directions = np.linalg.eigh(turn @ fit.covariance[part, part] @ turn.T)
        sizes, directions = sizes[::-1], directions[:, ::-1]
        rank = min(max(1, round(float(fit.freedom[part].sum()))), int((sizes > _LEAST * sizes[0]).sum()))
        along = directions[:, :rank].T @ (turn @ fit.coefficients[part])
        found[i] = _chance(float(np.sum(along**2 / sizes[:rank])), rank, np.inf if is_exact else fit.n_left)
    return found


def chance_of_products(sample: Sample, basis: Basis, fit: Fit) -> Array:
    """Return, for every feature, the chance of residuals that follow its products as closely, if none counted.

    The smallest chance over its partners, times their number. Partners are the features whose effects are largest.
    """
    n_features = len(basis.curves)
    if n_features < 2:
        return np.ones(n_features)
    rows = slice(None, None, -(-len(sample.weight) // _MOST_ROWS))
    some, weights, pull = sample.take(rows), fit.weights[rows], fit.pulls[rows]
    shapes = [_shapes(some.columns[:, part], weights) for part in basis.parts]
    partners = np.argsort(-sample.shown.std(axis=0), kind="stable")[: _MOST_PARTNERS + 1]
    found = np.ones((n_features, n_features))
    for i in range(n_features):
        for j in partners:
            if i != j and (j > i or i not in partners):
                own = np.concatenate([some.columns[:, basis.parts[i]], some.columns[:, basis.parts[j]]], axis=1)
                products = (shapes[i][:, :, None] * shapes[int(j)][:, None, :]).reshape(len(own), -1)
                found[i, j] = found[j, i] = _product(products, own, some.weight, weights, pull)
    counted = np.zeros((n_features, n_features), dtype=bool)
    counted[:, partners] = counted[partners, :] = True
    np.fill_diagonal(counted, val=False)
    return np.asarray(np.minimum(1.0, np.where(counted, found, 1.0).min(axis=1) * counted.sum(axis=1)))


def _product(products: Array, own: Array, rows: Array, weights: Array, pull: Array) -> float:
    """Return the chance that residuals follow products so closely, beside the features' ``own`` columns."""
    if not products.shape[1]:
        return 1.0
    root = np.sqrt(weights)[:, None]
    beside = np.concatenate([np.ones((len(own), 1)), own], axis=1)
    products = products - beside @ np.linalg.lstsq(root * beside, root * products, rcond=1e-9)[0]
    total, noise = products.T @ (rows * pull), (products * (rows * pull**2)[:, None]).T @ products
    sizes, directions = np.linalg.eigh(noise)
    is_there = sizes > _LEAST * max(float(sizes[-1]), 1e-300)
    rank = int(is_there.sum())
    if not rank:
        return 1.0
    along = directions[:, is_there].T @ total
    n_rows = float(rows.sum())
    n_left = max(n_rows - own.shape[1] - rank, 1.0)
    return _chance(float(np.sum(along**2 / sizes[is_there])) * n_left / n_rows, rank, n_left)


def _shapes(columns: Array, weights: Array) -> Array:
    """Return the widest directions of a feature's columns, which are smooth curves or contrasts of frequent levels."""
    root = np.sqrt(weights)[:, None]
    centred = columns - (weights @ columns) / weights.sum()
    _, sizes, turn = np.linalg.svd(root * centred, full_matrices=False)
    kept = turn[:_SHAPES][sizes[:_SHAPES] > 1e-6 * max(float(sizes[:1].sum()), 1e-300)]
    return np.asarray(centred @ kept.T)


def _chance(statistic: float, rank: int, n_left: float) -> float:
    from scipy.stats import chi2, f

    return float(chi2.sf(statistic, rank) if np.isinf(n_left) else f.sf(statistic / rank, rank, n_left))
