"""Read and check targets: numbers of a regression, or classes, which become codes."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import AnyArray, Array, BoolArray
from nae.encoding.columns import FIRST_ROUNDED, TEMPORAL, is_missing, named_row, shown_value, unmasked
from nae.errors import DataError

__all__ = [
    "LARGEST",
    "ClassTarget",
    "NumberTarget",
    "TargetMoments",
    "as_array",
    "check_domain",
    "check_labels",
    "floats",
    "names_of",
    "read_classes",
    "read_numbers",
    "robust_scale",
    "to_array",
    "weighted_quantiles",
]

LARGEST = 1e100  # squares of targets must be finite
_LABELS = "iufbUmM"  # numpy's dtype kinds that class labels may have
_NORMAL = 2.5631031310892007  # from the 10 % to the 90 % quantile of a normal, in standard deviations


@dataclass(frozen=True, eq=False)
class NumberTarget:
    """The numbers to predict, (row, output)."""

    values: Array
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ClassTarget:
    """The classes to predict: a code per row, and the label of each code."""

    codes: AnyArray
    classes: AnyArray


@dataclass(frozen=True, eq=False)
class TargetMoments:
    """Weighted moments of the target and the offset, from which a regression starts. Two tables' moments can merge."""

    total: float  # the sum of the weights
    mean: Array  # (output,), the mean of target minus offset
    variance: Array  # (output,), the variance of target minus offset
    level: Array  # (output,), the mean of the target
    base: Array  # (output,), the mean of the offset
    size: Array  # (output,), the mean of |target| + |offset|, which bounds the rounding error of their difference
    log_exposure: Array  # (output,), the logarithm of the mean of exp(offset)

    @staticmethod
    def of(values: Array, base: Array, weight: Array) -> "TargetMoments":
        """Return the moments of targets and offsets, (row, output) each."""
        total = float(weight.sum())
        share, rest = weight / total, values - base
        mean = share @ rest
        mean += share @ (rest - mean)  # corrects the rounding error of a large mean
        mean = np.where((rest == rest[0]).all(axis=0), rest[0], mean)  # exact if all numbers are equal
        most = base.max(axis=0)
        exposure = most + np.log(share @ np.exp(base - most))  # the logarithm of the mean, without overflow
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
    """Return the median, and the distance from the 10 % to the 90 % quantile, scaled to 1 for a standard normal.

    Outliers, up to 10 % of the numbers on each side, hardly change the result. The interquartile range would tolerate
    more outliers, but it is almost zero for a target that is zero in most rows and large in the others.

    Examples
    --------
    >>> numbers = np.append(np.linspace(-1, 1, 20), 1e9)
    >>> median, spread = robust_scale(numbers, np.ones(21))
    >>> -0.1 < median < 0.1, 0 < spread < 1
    (True, True)
    """
    low, median, high = weighted_quantiles(values, weights, (0.1, 0.5, 0.9))
    return float(median), float(high - low) / _NORMAL


def weighted_quantiles(values: Array, weights: Array, levels: Sequence[float]) -> Array:
    """Return the smallest numbers with at least so large a share of the weight at or below them, (level,)."""
    distinct, inverse = np.unique(values, return_inverse=True)
    total = np.cumsum(np.bincount(inverse, weights=weights))
    return np.asarray(distinct[np.searchsorted(total, np.array(levels) * total[-1] - 1e-12 * total[-1])])


def as_array(values: Any, name: str) -> AnyArray:
    """Return a series, a list or an array as a numpy array. Masked values become missing, and text is not converted."""
    if isinstance(values, np.ma.MaskedArray):
        return unmasked(values)
    if isinstance(values, (list, tuple)) and any(isinstance(value, (str, bytes)) for value in values):
        array = np.empty(len(values), dtype=object)  # numpy would turn numbers next to text into text of one width
        array[:] = values
        return array
    try:
        array = np.asarray(values)
    except ValueError:
        raise DataError(f"{name} must hold one value per row; its rows hold lists of different lengths.") from None
    if isinstance(values, (list, tuple)) and array.dtype.kind == "f" and (np.abs(array) >= FIRST_ROUNDED).any():
        return np.array(values, dtype=object)  # keeps integers exact that do not fit into 64 bits
    return array


def to_array(y: Any) -> AnyArray:
    """Return a target as a numpy array. Objects that are all numbers, all booleans or all text are converted."""
    array = as_array(y, "y")
    if array.dtype.names is not None:
        raise DataError(
            "y must hold numbers or classes; got a structured array with the fields "
            f"{', '.join(map(repr, array.dtype.names))}. Survival targets, an event and a time, are not supported; "
            "make one column of them, such as whether the event came within a year."
        )
    if array.dtype == object and array.size:
        kinds = {type(value) for value in array.ravel()}
        for known in ((bool, np.bool_), (int, np.integer), (float, np.floating)):
            if all(issubclass(kind, known) for kind in kinds):
                plain = np.array(array.tolist())
                return array if known[0] is int and plain.dtype.kind == "f" else plain
        if kinds != {str} and all(issubclass(kind, str) for kind in kinds):  # such as members of an enumeration
            return np.array([str.__str__(value) for value in array.ravel()], dtype=object).reshape(array.shape)
    return array


def names_of(y: Any, *, features: Collection[str] | None = None) -> tuple[str, ...]:
    """Return the column names of a frame, or the name of a series; empty if the target has no name.

    The name of a series is ignored if it is one of the ``features``: such a series was computed from that feature.
    """
    columns = getattr(y, "column_names", getattr(y, "columns", None))
    if columns is not None:
        return tuple(str(name) for name in columns)
    name = getattr(y, "name", None)
    return (name,) if isinstance(name, str) and name and name not in (features or ()) else ()


def read_numbers(
    y: Any, *, domain: str = "any", is_used: BoolArray | None = None, features: Collection[str] | None = None
) -> NumberTarget:
    """Return the target of a regression. Only rows that are ``is_used`` are checked for missing and extreme values."""
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
    if np.abs(used).max(initial=0) > LARGEST:
        row = int(np.flatnonzero((np.abs(used) > LARGEST).any(axis=1))[0])
        raise DataError(f"y must lie within ±{LARGEST:g}; row {rows[row]} does not. Divide y by a constant.")
    check_domain(used.min(initial=np.inf), domain)
    n_outputs = values.shape[1]
    if len(names) != n_outputs:
        names = ("score",) if n_outputs == 1 else tuple(f"y{i}" for i in range(n_outputs))
    return NumberTarget(values, names)


def check_domain(least: float, domain: str) -> None:
    """Raise an error if the smallest target is outside the domain of the loss."""
    if domain == "non-negative" and least < 0:
        raise DataError(f"This loss needs a target of at least 0; got {least:g}.")
    if domain == "positive" and least <= 0:
        raise DataError(f"This loss needs a positive target; got {least:g}.")


def floats(
    values: AnyArray,
    name: str = "The target of a regression",
    *,
    hint: str = " Use NAEClassifier.",
    where: Callable[[int], str] = named_row,
) -> Array:
    """Return numbers of any type as float64, with NaN for missing. Errors use ``name`` and end with ``hint``."""
    if np.iscomplexobj(values):
        raise DataError(f"{name} must hold real numbers. Complex data not supported.")
    if values.dtype == object:
        missing = is_missing(values.ravel()).reshape(values.shape)
        values = np.where(missing, np.nan, values)
    if values.dtype.kind in "mM" or (values.dtype == object and any(map(_is_temporal, values.ravel()))):
        raise DataError(f"{name} must hold numbers; got dates or times. Turn them into numbers, such as days.")
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        at, value = next((i, value) for i, value in enumerate(values.ravel()) if not _is_float(value))
    row = where(at * len(values) // values.size)
    if isinstance(value, int):
        raise DataError(f"{name} must lie within ±{LARGEST:g}; {row} holds {shown_value(value)}. Divide by a constant.")
    what = "text" if isinstance(value, str) else type(value).__name__
    raise DataError(f"{name} must hold numbers; got {what} in {row}, {shown_value(value)}.{hint}")


def _is_float(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _is_temporal(value: object) -> bool:
    return isinstance(value, TEMPORAL)


def read_classes(y: Any) -> ClassTarget:
    """Return the checked target of a classification."""
    labels = to_array(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise DataError(f"y must be one column of classes; got shape {labels.shape}.")
    missing = is_missing(labels)
    if missing.any():
        raise DataError(f"Input y contains NaN in row {int(np.flatnonzero(missing)[0])}; drop such rows.")
    check_labels(labels)
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        raise DataError("Classes must be of one type; got a mixture such as text and numbers.") from None
    if classes.dtype == object and not isinstance(classes[0], str):
        raise DataError(f"Classes must be text, or numbers of 64 bits; got {shown_value(classes[-1])}.")
    if len(classes) < 2:
        raise DataError(f"A classifier needs at least 2 classes; got one class ({classes.tolist()[0]!r}).")
    return ClassTarget(codes.astype(np.int64), classes)


def check_labels(labels: AnyArray, *, where: Callable[[int], str] = named_row) -> None:
    """Raise an error for a label that a model file cannot hold. Text, numbers, booleans and numpy scalars are valid."""
    row = 0
    if labels.dtype == object:
        known = (str, bool, int, float, np.generic)
        row = next((i for i, value in enumerate(labels) if not isinstance(value, known)), len(labels))
    if row < len(labels) and labels.dtype.kind not in _LABELS:
        value = labels[row]
        raise DataError(
            f"Classes must be text, numbers or booleans; {where(row)} holds "
            f"{shown_value(value)}, a {type(value).__name__}. Turn them into text."
        )
