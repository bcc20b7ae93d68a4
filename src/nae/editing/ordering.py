"""Orders: experts that have one order at every value.

Shapes: K experts, O outputs, M members; n slots of one feature.
"""

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.tables.isotonic import isotonic

__all__ = ["are_apart", "expert_order", "in_order", "is_ordered", "pooled"]


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
