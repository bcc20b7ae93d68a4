"""Read sample weights and offsets: arrays with one value per row that come next to a table."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nae._typing import Array
from nae.encoding.columns import named_row
from nae.encoding.target import LARGEST, as_array, floats
from nae.errors import DataError

__all__ = ["check_offset", "check_weight", "read_offset", "read_weight"]


def read_weight(sample_weight: Any, n_rows: int) -> Array:
    """Return one weight per row. Weights must not be negative, and at least one must be positive."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = _floats(sample_weight, "sample_weight")
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise DataError(f"sample_weight must have one value per row ({n_rows}); got shape {weight.shape}.")
    check_weight(weight)
    if not weight.any():
        raise DataError("At least one row must have a positive weight; all are zero.")
    return weight


def check_weight(weight: Array, *, where: Callable[[int], str] = named_row) -> None:
    """Raise an error for a weight that is negative or not finite, or whose square over- or underflows."""
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(wrong):
        value = weight[wrong[0]]
        raise DataError(f"sample_weight must be finite and not negative; {where(int(wrong[0]))} has {value:g}.")
    extreme = np.flatnonzero((weight > 0) & ((weight < 1 / LARGEST) | (weight > LARGEST)))
    if len(extreme):
        raise DataError(
            f"sample_weight must be 0, or lie in [{1 / LARGEST:g}, {LARGEST:g}]; {where(int(extreme[0]))} has "
            f"{weight[extreme[0]]:g}. Divide all weights by a constant."
        )


def check_offset(offset: Array, *, where: Callable[[int], str] = named_row) -> None:
    """Raise an error for an offset, (row, output), that is not finite or whose square overflows."""
    wrong = np.flatnonzero(~np.isfinite(offset).all(axis=1))
    if len(wrong):
        raise DataError(f"offset must be finite; {where(int(wrong[0]))} is not.")
    extreme = np.flatnonzero((np.abs(offset) > LARGEST).any(axis=1))
    if len(extreme):
        raise DataError(f"offset must lie within ±{LARGEST:g}; {where(int(extreme[0]))} does not.")


def read_offset(
    offset: Any, n_rows: int, n_outputs: int, *, is_per_class: bool = False, is_mirrored: bool = False
) -> Array | None:
    """Return the offset as (row, output).

    One number per row is used for all outputs, unless ``is_per_class`` demands one number per class. ``is_mirrored``
    flips the sign: the offset belongs to the first of two classes, but training learns the second.
    """
    if offset is None:
        return None
    given = _floats(offset, "offset")
    shape = given.shape
    given = given[:, None] if given.ndim == 1 else given
    if given.ndim != 2 or len(given) != n_rows:
        raise DataError(f"offset must have one value per row ({n_rows}); got shape {shape}.")
    if given.shape[1] not in ({n_outputs} if is_per_class else {1, n_outputs}):
        what = "class" if is_per_class else "output"
        raise DataError(f"offset must have one column per {what} ({n_outputs}); got shape {shape}.")
    check_offset(given)
    return np.broadcast_to(-given if is_mirrored else given, (n_rows, n_outputs))


def _floats(values: Any, name: str) -> Array:
    return floats(as_array(values, name), name, hint="")
