"""Targets: numbers standardised, classes counted, each with an error that says what is wrong."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import AnyArray, Array, BoolArray
from nae.encoding.columns import TEMPORAL, is_missing
from nae.errors import DataError

__all__ = [
    "ClassTarget",
    "NumberTarget",
    "TargetMoments",
    "check_domain",
    "floats",
    "names_of",
    "read_classes",
    "read_numbers",
    "robust_scale",
    "to_array",
]

_LARGEST = 1e100  # squares of targets must be finite
_NORMAL = 2.5631031310892007  # from the first to the last tenth of a normal, in standard deviations


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


@dataclass(frozen=True, eq=False)
class TargetMoments:
    """Sums over the rows that say where the score of a regression starts; those of two tables merge."""

    total: float  # weight
    mean: Array  # (output,), of target minus offset
    variance: Array  # (output,), of the same
    level: Array  # (output,), mean of the target
    base: Array  # (output,), mean of the offset
    size: Array  # (output,), mean size of target and offset together, which their difference is rounded by
    log_exposure: Array  # (output,), logarithm of the mean of exp(offset)

    @staticmethod
    def of(values: Array, base: Array, weight: Array) -> "TargetMoments":
        """Return the moments of targets and offsets, (row, output) each."""
        total = float(weight.sum())
        share, rest = weight / total, values - base
        mean = share @ rest
        mean += share @ (rest - mean)  # what rounding a large mean left out
        mean = np.where((rest == rest[0]).all(axis=0), rest[0], mean)  # of equal numbers exactly that
        most = base.max(axis=0)
        exposure = most + np.log(share @ np.exp(base - most))  # its logarithm, without overflow
        size = share @ (np.abs(values) + np.abs(base))
        return TargetMoments(total, mean, share @ (rest - mean) ** 2, share @ values, share @ base, size, exposure)

    def merge(self, other: "TargetMoments") -> "TargetMoments":
        """Return the moments of both tables."""
        total = self.total + other.total
        one, two = self.total / total, other.total / total
        shift = other.mean - self.mean
        return TargetMoments(
            total,
            self.mean + two * shift,
            one * self.variance + two * other.variance + one * two * shift**2,
            one * self.level + two * other.level,
            one * self.base + two * other.base,
            one * self.size + two * other.size,
            np.logaddexp(np.log(one) + self.log_exposure, np.log(two) + other.log_exposure),
        )


def robust_scale(values: Array, weights: Array) -> tuple[float, float]:
    """Return the median of numbers, and the range without their lowest and highest tenths: 1 for a standard normal.

    Nearly a tenth of the numbers may lie anywhere beyond the others without moving either by much. The quartiles would
    bear more, but are next to nothing for a target that is zero in most rows and large in the rest.

    Examples
    --------
    >>> numbers = np.append(np.linspace(-1, 1, 20), 1e9)
    >>> median, spread = robust_scale(numbers, np.ones(21))
    >>> -0.1 < median < 0.1, 0 < spread < 1
    (True, True)
    """
    distinct, inverse = np.unique(values, return_inverse=True)
    total = np.cumsum(np.bincount(inverse, weights=weights))
    levels = np.array([0.1, 0.5, 0.9]) * total[-1]
    low, median, high = distinct[np.searchsorted(total, levels - 1e-12 * total[-1])]
    return float(median), float(high - low) / _NORMAL


def to_array(y: Any) -> AnyArray:
    """Return a series, a frame, a list or an array as a numpy array; numbers and booleans among objects as such."""
    given = y.to_numpy() if hasattr(y, "to_numpy") else y
    array = np.asarray(given)
    if array.dtype.names is not None:
        raise DataError(
            "y must hold numbers or classes; got a structured array with the fields "
            f"{', '.join(map(repr, array.dtype.names))}. Survival targets, an event and a time, are not supported; "
            "make one column of them, such as whether the event came within a year."
        )
    if array.dtype.kind in "US" and isinstance(given, (list, tuple)):
        array = np.array(given, dtype=object)  # numpy would make text of the numbers among it
    if array.dtype == object and array.size:
        kinds = {type(value) for value in array.ravel()}
        if kinds <= {bool, np.bool_} or all(issubclass(kind, (int, np.integer)) for kind in kinds):
            return np.array(array.tolist())
    return array


def names_of(y: Any, *, features: Collection[str] | None = None) -> tuple[str, ...]:
    """Return the names of the columns of a frame, or that of a series; nothing where a target has none.

    A series that is called like one of the ``features`` was computed from that one and still has its name.
    """
    columns = getattr(y, "column_names", getattr(y, "columns", None))
    if columns is not None:
        return tuple(str(name) for name in columns)
    name = getattr(y, "name", None)
    return (name,) if isinstance(name, str) and name and name not in (features or ()) else ()


def read_numbers(
    y: Any, *, domain: str = "any", is_used: BoolArray | None = None, features: Collection[str] | None = None
) -> NumberTarget:
    """Return the target of a regression, checked where ``is_used``; the other rows need not hold numbers."""
    names = names_of(y, features=features)
    values = floats(to_array(y))
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.shape[1] == 0:
        raise DataError(f"y must be one column, or one per output; got shape {values.shape}.")
    rows = np.arange(len(values)) if is_used is None else np.flatnonzero(is_used)
    used = values[rows]
    if not np.isfinite(used).all():
        row = int(np.flatnonzero(~np.isfinite(used).all(axis=1))[0])
        what = "NaN" if np.isnan(used[row]).any() else "infinity"
        raise DataError(f"Input y contains {what} in row {rows[row]}; drop the rows without a target.")
    if np.abs(used).max(initial=0) > _LARGEST:
        row = int(np.flatnonzero((np.abs(used) > _LARGEST).any(axis=1))[0])
        raise DataError(f"y must lie within ±{_LARGEST:g}; row {rows[row]} does not. Divide y by a constant.")
    check_domain(used.min(initial=np.inf), domain)
    n_outputs = values.shape[1]
    if len(names) != n_outputs:
        names = ("score",) if n_outputs == 1 else tuple(f"y{i}" for i in range(n_outputs))
    return NumberTarget(values, names)


def check_domain(least: float, domain: str) -> None:
    """Complain about a smallest target that a loss cannot take."""
    if domain == "non-negative" and least < 0:
        raise DataError(f"This loss needs a target of at least 0; got {least:g}.")
    if domain == "positive" and least <= 0:
        raise DataError(f"This loss needs a positive target; got {least:g}.")


def floats(values: AnyArray) -> Array:
    """Return numbers of any type as float64, NaN for missing."""
    if np.iscomplexobj(values):
        raise DataError("Complex data not supported: the target must hold real numbers.")
    if values.dtype == object:
        missing = is_missing(values.ravel()).reshape(values.shape)
        values = np.where(missing, np.nan, values)
    if values.dtype.kind in "mM" or (values.dtype == object and any(map(_is_temporal, values.ravel()))):
        raise DataError(
            "The target of a regression must hold numbers; got dates or times. Turn them into numbers, such as days."
        )
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError("The target of a regression must hold numbers; got text. Use NAEClassifier.") from None


def _is_temporal(value: object) -> bool:
    return isinstance(value, TEMPORAL)


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
        raise DataError(f"A classifier needs at least 2 classes; got one class ({classes.tolist()[0]!r}).")
    return ClassTarget(codes.astype(np.int64), classes)
