"""What comes beside a table, one number per row: weights and offsets."""

from typing import Any

import numpy as np

from nae._typing import Array
from nae.errors import DataError

__all__ = ["read_offset", "read_weight"]


def read_weight(sample_weight: Any, n_rows: int) -> Array:
    """Return one weight per row, not negative and not all zero."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = _floats(sample_weight, "sample_weight")
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise DataError(f"sample_weight must have one value per row ({n_rows}); got shape {weight.shape}.")
    is_wrong = ~(np.isfinite(weight) & (weight >= 0))
    if is_wrong.any():
        row = int(np.flatnonzero(is_wrong)[0])
        raise DataError(f"sample_weight must be finite and not negative; row {row} has {weight[row]:g}.")
    if not weight.any():
        raise DataError("At least one row must have a positive weight; all are zero.")
    return weight


def read_offset(
    offset: Any, n_rows: int, n_outputs: int, *, is_per_class: bool = False, is_mirrored: bool = False
) -> Array | None:
    """Return the offset as (row, output); one number per row serves all outputs, but not all classes.

    ``is_mirrored`` says that it speaks for the first class of two, while training learns the second.
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
    if not np.isfinite(given).all():
        row = int(np.flatnonzero(~np.isfinite(given).all(axis=1))[0])
        raise DataError(f"offset must be finite; row {row} is not.")
    return np.broadcast_to(-given if is_mirrored else given, (n_rows, n_outputs))


def _floats(values: Any, name: str) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must hold numbers, one per row; got {type(values).__name__}.") from None
