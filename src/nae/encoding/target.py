"""Targets: numbers standardised, classes counted, each with an error that says what is wrong."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import AnyArray, Array
from nae.encoding.columns import is_missing
from nae.errors import DataError

__all__ = ["ClassTarget", "NumberTarget", "read_classes", "read_numbers"]


@dataclass(frozen=True, eq=False)
class NumberTarget:
    """Numbers to predict, (row, output)."""

    values: Array
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ClassTarget:
    """Classes to predict: a number per row, and the labels they stand for."""

    codes: AnyArray
    classes: AnyArray


def to_array(y: Any) -> AnyArray:
    """Return a series, a one-column frame, a list or an array as a numpy array."""
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    array = np.asarray(y)
    return array.astype(object) if array.dtype.kind in "US" and array.ndim == 1 and isinstance(y, list) else array


def read_numbers(y: Any, *, domain: str = "any") -> NumberTarget:
    """Return the target of a regression, checked."""
    names = tuple(str(name) for name in getattr(y, "columns", ()))
    values = to_array(y)
    try:
        values = values.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError("The target of a regression must hold numbers; got text. Use NAEClassifier.") from None
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.shape[1] == 0:
        raise DataError(f"y must be one column, or one per output; got shape {values.shape}.")
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
        what = "NaN" if np.isnan(values[row]).any() else "infinity"
        raise DataError(f"Input y contains {what} in row {row}; drop the rows without a target.")
    if domain == "non-negative" and values.min(initial=0) < 0:
        raise DataError(f"This loss needs a target of at least 0; got {values.min():g}.")
    if domain == "positive" and values.min(initial=1) <= 0:
        raise DataError(f"This loss needs a positive target; got {values.min():g}.")
    n_outputs = values.shape[1]
    if len(names) != n_outputs:
        names = ("score",) if n_outputs == 1 else tuple(f"y{i}" for i in range(n_outputs))
    return NumberTarget(values, names)


def read_classes(y: Any) -> ClassTarget:
    """Return the target of a classification, checked."""
    labels = to_array(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise DataError(f"y must be one column of classes; got shape {labels.shape}.")
    missing = is_missing(labels)
    if missing.any():
        raise DataError(f"Input y contains NaN in row {int(np.flatnonzero(missing)[0])}; drop such rows.")
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        raise DataError("Classes must be of one type; got a mixture such as text and numbers.") from None
    if len(classes) < 2:
        raise DataError(f"A classifier needs at least 2 classes; got one class ({classes[0]!r}).")
    return ClassTarget(codes.astype(np.int64), classes)
