"""Statistics of the training rows that a model stores: aggregates per slot, never rows."""

from dataclasses import dataclass, fields

import numpy as np

from nae._typing import Array
from nae.encoding.cells import Cells

__all__ = ["QUANTILES", "Statistics", "slot_means", "slot_quantiles", "slot_weights"]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False)
class Statistics:
    """Aggregates of the training rows, stored with the model.

    Global explanations, densities and reference gates are computed from them, so a saved model can be explained
    without its data.
    """

    weight: Array  # (slot,), weight of the training rows at the slot
    mean: Array  # (slot, output), E[c | x]: mean contribution at the slot, linear between slots
    quantiles: Array  # (quantile, slot, output), of the contributions nearest the slot
    gate_mean: Array  # (feature, width, member), mean gate terms of each feature
    variance: Array  # (feature, output), of the contributions
    residual: Array  # (feature, output), variance of the context shift c - E[c | x]
    score_variance: Array  # (output,)
    additive_variance: Array  # (output,), of score - sum of E[c | x]
    influence: Array  # (feature, cause, output), root mean square of the change that the cause made
    typical: Array  # (feature, cause, output), share of the cause in the typical context; sums to 1 or 0
    agreement: Array  # (feature, output), agreement of the members: 1 if they are equal, 0 if unrelated

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


def slot_weights(cells: Cells, weights: Array, n_slots: int) -> Array:
    """Return the weight at each slot. The weight of a row is shared between the two slots of its cell."""
    low = weights[:, None] * (1 - cells.fraction)
    high = weights[:, None] * cells.fraction
    total = np.bincount(cells.slot.ravel(), weights=low.ravel(), minlength=n_slots)
    return np.asarray(total + np.bincount(cells.upper.ravel(), weights=high.ravel(), minlength=n_slots))


def slot_means(cells: Cells, weights: Array, values: Array, n_slots: int) -> Array:
    """Return the mean of ``values`` (row, feature, output) at each slot, (slot, output); 0 at slots without rows."""
    total = slot_weights(cells, weights, n_slots)
    low = weights[:, None] * (1 - cells.fraction)
    high = weights[:, None] * cells.fraction
    sums = np.empty((n_slots, values.shape[2]))
    for output in range(values.shape[2]):
        value = values[:, :, output]
        sums[:, output] = np.bincount(cells.slot.ravel(), (low * value).ravel(), minlength=n_slots)
        sums[:, output] += np.bincount(cells.upper.ravel(), (high * value).ravel(), minlength=n_slots)
    return np.divide(sums, total[:, None], out=np.zeros_like(sums), where=total[:, None] > 0)


def slot_quantiles(cells: Cells, weights: Array, values: Array, n_slots: int) -> Array:
    """Return quantiles of the ``values`` (row, feature, output) nearest each slot, (quantile, slot, output)."""
    n_features, n_outputs = values.shape[1:]
    out = np.zeros((len(QUANTILES), n_slots, n_outputs))
    nearest = cells.nearest
    for i in range(n_features):
        for output in range(n_outputs):
            slot, value = nearest[:, i], values[:, i, output]
            order = np.lexsort((value, slot))
            slot, value, weight = slot[order], value[order], weights[order]
            firsts = np.flatnonzero(np.diff(slot, prepend=-1))
            for first, last in zip(firsts, [*firsts[1:], len(slot)], strict=True):
                mass = np.cumsum(weight[first:last])
                at = np.searchsorted(mass, np.array(QUANTILES) * mass[-1])
                out[:, slot[first], output] = value[first:last][at.clip(0, last - first - 1)]
    return out
