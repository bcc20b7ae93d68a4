"""The own effect of a contribution: what its own value explains, E[c | x]."""

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding.cells import Cells
from nae.encoding.schema import Number
from nae.tables.lookup import interpolate
from nae.tables.model import TableModel

__all__ = ["bins_of", "own_effects"]

_BINS = 64


def own_effects(model: TableModel, cells: Cells, values: Array, weights: Array) -> Array:
    """Return E[c_i | x_i], the part of every contribution that its own value explains, (row, feature, output).

    The curve with every feature's mean routing is exact for an additive model. What it leaves is averaged within bins
    of the feature's value and shrunk by its expected noise: few rows per bin must not pass chance off as effect.
    """
    share = weights / weights.sum()
    curve = _mean_routing_curve(model, cells, share)
    own = np.asarray(interpolate(curve, cells), dtype=np.float64)
    rest = values - own
    for i in range(values.shape[1]):
        bins = bins_of(model, cells, share, i)
        own[:, i] += _shrunken_means(bins, rest[:, i], share)[bins]
    return own


def _mean_routing_curve(model: TableModel, cells: Cells, share: Array) -> Array:
    """Return each feature's effect with its mean routing, at every slot: (slot, output)."""
    if model.n_experts == 1:
        return np.asarray(model.experts[:, 0].mean(axis=-1), dtype=np.float64)
    mean = np.zeros((model.n_experts, model.n_features, model.n_members))
    for rows, part in model.iterate(cells):
        weights = model.routing.weights(model.gate.logits(part))
        mean += np.tensordot(share[rows], weights, axes=1)
    per_slot = np.repeat(mean, np.diff(model.schema.offsets), axis=1)  # (K, T, M)
    return np.asarray(np.einsum("tkom,ktm->to", model.experts, per_slot) / model.n_members)


def _shrunken_means(bins: IntArray, rest: Array, share: Array) -> Array:
    """Return the mean of ``rest`` (row, output) in every bin, scaled down by the part that is noise."""
    weight = np.maximum(np.bincount(bins, share), 1e-300)
    out = np.empty((len(weight), rest.shape[1]))
    rows = 1.0 / np.maximum(np.bincount(bins, share**2) / weight**2, 1e-300)  # effective rows of a bin
    counted = weight @ (1 - 1 / np.maximum(rows, 1.0))  # degrees of freedom within the bins; none if every row is one
    for output in range(rest.shape[1]):
        mean = np.bincount(bins, share * rest[:, output]) / weight
        inside = share @ (rest[:, output] - mean[bins]) ** 2
        between = weight @ (mean - weight @ mean) ** 2
        noise = inside / counted * (weight @ (1 / rows)) if counted > 1e-9 else np.inf
        keep = max(0.0, 1.0 - noise / between) if between > 0 else 0.0
        out[:, output] = weight @ mean + keep * (mean - weight @ mean)
    return out


def bins_of(model: TableModel, cells: Cells, share: Array, feature: int) -> IntArray:
    """Return the bin of every row: one per level, one for missing, at most 64 quantiles of a number.

    A bin of a number holds four rows or more on average: single rows would explain themselves.
    """
    start = int(model.schema.offsets[feature])
    within = cells.slot[:, feature] - start
    spec = model.schema.features[feature]
    if not isinstance(spec, Number):
        return np.unique(within, return_inverse=True)[1]
    position = within + cells.fraction[:, feature]
    distinct, inverse = np.unique(position, return_inverse=True)
    n_bins = min(_BINS, max(1, int(1 / (share @ share)) // 4))
    if len(distinct) <= n_bins:
        return np.asarray(inverse)
    mass = np.cumsum(np.bincount(inverse, share))
    bins = np.minimum((mass - np.diff(mass, prepend=0) / 2) * n_bins, n_bins - 1).astype(np.int64)
    bins[distinct >= spec.n_values] = n_bins  # missing is a bin of its own
    return np.unique(bins[inverse], return_inverse=True)[1]
