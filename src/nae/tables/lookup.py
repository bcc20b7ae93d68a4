"""Interpolation: the row of a table that belongs to a cell."""

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding.cells import Cells

__all__ = ["interpolate", "interpolate_sum"]


def interpolate(table: Array, cells: Cells) -> Array:
    """Return the table's values at every cell: (slot, ...) -> (row, feature, ...)."""
    return _blend(table, cells.slot, cells.upper, cells.fraction)


def interpolate_sum(table: Array, cells: Cells) -> Array:
    """Return the sum over the features of the table's values: (slot, ...) -> (row, ...)."""
    total = np.zeros((len(cells), *table.shape[1:]), dtype=table.dtype)
    for slot, upper, fraction in zip(cells.slot.T, cells.upper.T, cells.fraction.T, strict=True):
        total += _blend(table, slot, upper, fraction)
    return total


def _blend(table: Array, slot: IntArray, upper: IntArray, fraction: Array) -> Array:
    low = table[slot]
    if fraction.any():
        part = fraction.reshape(fraction.shape + (1,) * (table.ndim - 1)).astype(table.dtype, copy=False)
        high = table[upper]
        high -= low
        high *= part
        low += high
    return low
