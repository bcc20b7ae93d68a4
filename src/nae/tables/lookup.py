"""Interpolation: from a cell to a row of a table."""

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding.cells import Cells

__all__ = ["interpolate", "interpolate_sum"]

_IN_CACHE = 2**17  # numbers that are looked up before they are summed; this many fit into the cache


def interpolate(table: Array, cells: Cells) -> Array:
    """Return the table's values at every cell: (slot, ...) -> (row, feature, ...)."""
    return _blend(table, cells.slot, cells.upper, cells.fraction)


def interpolate_sum(table: Array, cells: Cells) -> Array:
    """Return the sum over the features of the table's values: (slot, ...) -> (row, ...)."""
    flat = table.reshape(len(table), -1)
    ends = np.concatenate([cells.slot, cells.upper], axis=1)  # (B, 2 F)
    shares = np.concatenate([1 - cells.fraction, cells.fraction], axis=1, dtype=table.dtype)[:, None]
    total = np.empty((len(cells), 1, flat.shape[1]), dtype=table.dtype)
    step = max(1, _IN_CACHE // (ends.shape[1] * flat.shape[1]))
    room = np.empty((min(step, len(cells)), ends.shape[1], flat.shape[1]), dtype=table.dtype)
    for start in range(0, len(cells), step):
        rows = slice(start, start + step)
        found = room[: len(ends[rows])]
        np.take(flat, ends[rows], axis=0, out=found, mode="clip")  # with mode="raise", numpy would buffer the output
        np.matmul(shares[rows], found, out=total[rows])
    return total.reshape(len(cells), *table.shape[1:])


def _blend(table: Array, slot: IntArray, upper: IntArray, fraction: Array) -> Array:
    low = table[slot]
    if fraction.any():
        part = fraction.reshape(fraction.shape + (1,) * (table.ndim - 1)).astype(table.dtype, copy=False)
        high = table[upper]
        high -= low
        high *= part
        low += high
    return low
