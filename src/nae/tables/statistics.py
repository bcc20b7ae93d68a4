"""What a model remembers of its training rows: aggregates per slot, never rows."""

from dataclasses import dataclass, fields

import numpy as np

from nae._typing import Array
from nae.encoding.cells import Cells

__all__ = ["QUANTILES", "Statistics", "slot_means", "slot_quantiles", "slot_weights"]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False)
class Statistics:
    """Aggregates of the training rows, stored with the model.

    Global explanations, densities and reference gates are read from these, so a saved model explains itself
    without its data.
    """

    weight: Array  # (slot,), how much of the training data lies at each slot
    mean: Array  # (slot, output), E[c | x]: the mean contribution at the slot, linear in between
    quantiles: Array  # (quantile, slot, output), of the contributions nearest the slot
    gate_mean: Array  # (feature, width, member), mean gate terms of each feature
    variance: Array  # (feature, output), of the contributions
    residual: Array  # (feature, output), variance of what the context changed: c - E[c | x]
    score_variance: Array  # (output,)
    additive_variance: Array  # (output,), of score - sum of E[c | x]
    influence: Array  # (feature, cause, output), root mean square of what the cause changed about the feature
    typical: Array  # (feature, cause, output), who stands behind the context that is usual for a value; sums to 1 or 0
    agreement: Array  # (feature, output), of the members' contributions: 1 the same, 0 nothing in common

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


def slot_weights(cells: Cells, weights: Array, n_slots: int) -> Array:
    """Return how much weight lies at each slot, shared between the two ends of a cell."""
    low = weights[:, None] * (1 - cells.fraction)
    high = weights[:, None] * cells.fraction
    total = np.bincount(cells.slot.ravel(), weights=low.ravel(), minlength=n_slots)
    return np.asarray(total + np.bincount(cells.upper.ravel(), weights=high.ravel(), minlength=n_slots))


def slot_means(cells: Cells, weights: Array, values: Array, n_slots: int) -> Array:
    """Return the mean of ``values`` (row, feature, output) at each slot, (slot, output); zero where no row is."""
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
    """Return quantiles of ``values`` (row, feature, output) nearest each slot, (quantile, slot, output)."""
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
