"""Orders: isotonic curves, and experts that have one order at every value.

Shapes: K experts, O outputs, M members; n slots of one feature.
"""

import numpy as np

from nae._typing import Array, BoolArray, IntArray

__all__ = ["are_apart", "expert_order", "in_order", "is_ordered", "isotonic", "pooled"]

_MOST = 4_000_000  # numbers that are compared at once


def isotonic(values: Array, weight: Array) -> Array:
    """Return the values (n, ...) that never fall along the first axis and are nearest to the given ones.

    Distances are squared and weighted (n,). The value at t is the largest over i <= t of the smallest over j >= t of
    the means from i to j. Computed this way, values never fall in floating point, either.
    """
    n, flat = len(values), values.reshape(len(values), -1)
    mass = np.append(0.0, np.cumsum(weight))
    below = np.tri(n, k=-1, dtype=bool)  # j < i
    total = np.where(below, 1.0, mass[None, 1:] - mass[:-1, None])
    out = np.empty_like(flat)
    step = max(1, _MOST // n**2)
    for start in range(0, flat.shape[1], step):
        columns = slice(start, start + step)
        centre = flat[:, columns].mean(axis=0)
        sums = np.cumsum(weight[:, None] * (flat[:, columns] - centre), axis=0)
        sums = np.concatenate([np.zeros_like(sums[:1]), sums])
        means = (sums[None, 1:] - sums[:-1, None]) / total[..., None]  # (i, j, column)
        means[below] = np.inf
        least = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
        least[below] = -np.inf
        is_done = (np.diff(flat[:, columns], axis=0) >= 0).all(axis=0)
        out[:, columns] = np.where(is_done, flat[:, columns], least.max(axis=0) + centre)
    return out.reshape(values.shape)


def expert_order(experts: Array) -> IntArray:
    """Return the experts (n, K, O, M) from the lowest to the highest on average, (K, M), one order for all outputs."""
    spread = np.ptp(experts, axis=(0, 1), keepdims=True)
    scaled = experts / np.where(spread > 0, spread, 1.0)
    return np.asarray(scaled.mean(axis=(0, 2)).argsort(axis=0, kind="stable"))


def is_ordered(experts: Array, order: IntArray) -> bool:
    """Return whether experts (n, K, O, M) have an order (K, M) at every slot."""
    found = np.take_along_axis(experts, order[None, :, None], axis=1)
    return bool((np.diff(found, axis=1) >= 0).all())


def pooled(experts: Array, order: IntArray) -> Array:
    """Return the nearest experts to those given (n, K, O, M) that have an order (K, M) at every slot.

    Neighbours that are in the wrong order become equal to their mean.
    """
    place = np.broadcast_to(order[None, :, None], experts.shape)
    ascending = np.take_along_axis(experts, place, axis=1).swapaxes(0, 1)
    found = np.empty_like(experts)
    np.put_along_axis(found, place, isotonic(ascending, np.ones(len(ascending))).swapaxes(0, 1), axis=1)
    return found


def are_apart(experts: Array, order: IntArray) -> BoolArray:
    """Return whether neighbours in an order (K, M) of experts (n, K, O, M) differ anywhere, (K - 1, M)."""
    found = np.take_along_axis(experts, order[None, :, None], axis=1)
    return np.asarray((np.diff(found, axis=1) != 0).any(axis=(0, 2)))


def in_order(experts: Array, order: IntArray) -> Array:
    """Return experts (n, K, O, M) sorted at every slot, each into its place in an order (K, M)."""
    found = np.empty_like(experts)
    np.put_along_axis(found, np.broadcast_to(order[None, :, None], experts.shape), np.sort(experts, axis=1), axis=1)
    return found
