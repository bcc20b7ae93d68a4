"""Columns: a table of any source as named one-dimensional numpy arrays.

A column is one of three kinds of array: float64 with NaN for missing (float32 if the source has float32), bool, or
object with None for missing, which holds strings or other scalars. Integers of 2**53 and more are kept as objects,
because different integers of this size become the same float. All later steps see numpy arrays only.
"""

import reprlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from nae._typing import AnyArray, Array
from nae.errors import DataError, did_you_mean, listed

__all__ = [
    "FIRST_ROUNDED",
    "LARGEST",
    "TEMPORAL",
    "Columns",
    "cannot_hold",
    "category_keys",
    "check_values",
    "is_missing",
    "is_number_type",
    "missing_column",
    "named_row",
    "numbers",
    "rounded_number",
    "shown_value",
    "unmasked",
]

FIRST_ROUNDED = 2**53  # from here on, different integers can be the same float
LARGEST = float(np.finfo(np.float64).max) / 4  # differences of such numbers do not overflow
TEMPORAL = (date, time, timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True, eq=False)
class Columns:
    """A table: its column names (None if the source has none) and one array per column, all of the same length."""

    arrays: tuple[AnyArray, ...]
    names: tuple[str, ...] | None = None
    categorical: frozenset[int] = frozenset()  # columns with a categorical type in the source
    orders: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # levels of those whose type has an order

    @property
    def n_rows(self) -> int:
        return len(self.arrays[0]) if self.arrays else 0

    def take(self, rows: AnyArray) -> "Columns":
        """Return the given rows (indices or a mask)."""
        return Columns(tuple(array[rows] for array in self.arrays), self.names, self.categorical, self.orders)

    def select(self, names: Sequence[str]) -> "Columns":
        """Return the named columns in the given order. A table without names is returned as it is."""
        if self.names is None:
            return self
        missing = [name for name in names if name not in self.names]
        if missing:
            raise missing_column(missing[0], self.names, known=names)
        order = [self.names.index(name) for name in names]
        categorical = frozenset(new for new, old in enumerate(order) if old in self.categorical)
        orders = {new: self.orders[old] for new, old in enumerate(order) if old in self.orders}
        return Columns(tuple(self.arrays[i] for i in order), tuple(names), categorical, orders)


def missing_column(name: str, given: Sequence[str], *, known: Sequence[str]) -> DataError:
    """Return the error for a table that lacks a column ``name``; it has ``given``, and the model knows ``known``."""
    near = did_you_mean(name, given, is_listed=True)
    lists = f" The model knows {listed(known)}; the table has {listed(given) or 'none'}."
    return DataError(f"The table must have the column {name!r} the model was trained on.{near or lists}")


def cannot_hold(name: str | None, what: object, *, is_temporal: bool = False, is_nested: bool = False) -> DataError:
    """Return the error for a column of an unsupported type. ``name`` is None for an array without names."""
    hint = "Turn it into one of these"
    if is_temporal:
        hint = "Turn it into numbers, such as days since a fixed day, or a year and a month"
    elif is_nested:
        hint = "Turn nested values into columns of their own"
    subject, leave_out = "A table", "leave such columns out"
    if name is not None:
        subject, leave_out = f"Column {name!r}", f"drop the column (nae fit --ignore {shlex.quote(name)})"
    return DataError(
        f"{subject} must hold numbers, booleans, text or categories; it holds {what}. {hint}, or {leave_out}."
    )


def named_row(row: int) -> str:
    """Return the default name of a row in errors."""
    return f"row {row}"


def numbers(column: AnyArray, name: str, *, where: Callable[[int], str] = named_row) -> Array:
    """Return a column as float64, with NaN for missing. Other text is an error that names the row.

    ``where`` returns the name of a row in errors.
    """
    if column.dtype != object:
        return column.astype(np.float64, copy=False)
    missing = is_missing(column)
    out = np.full(len(column), np.nan)
    try:
        out[~missing] = column[~missing].astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        row = next(i for i, value in enumerate(column) if not missing[i] and not _is_number(value))
        raise DataError(
            f"Column {name!r} must hold numbers; {where(row)} holds {shown_value(column[row])}. "
            f"Pass feature_types={{{name!r}: 'category'}} to fit it as a category."
        ) from None
    return out


def check_values(values: Array, name: str, *, is_boolean: bool, where: Callable[[int], str] = named_row) -> None:
    """Raise an error for a number that is infinite or too large, or not 0 or 1 in a column of booleans."""
    extreme = np.flatnonzero(np.abs(values) > LARGEST)
    if len(extreme):
        value = values[extreme[0]]
        rule, hint = f"numbers within ±{LARGEST:.4g}", "Divide the column by a constant."
        if np.isinf(value):
            rule, hint = "finite numbers", "Mark it missing or replace it."
        raise DataError(f"Column {name!r} must hold {rule}; {where(int(extreme[0]))} holds {value:g}. {hint}")
    others = np.flatnonzero((values != 0) & (values != 1) & ~np.isnan(values))
    if is_boolean and len(others):
        raise DataError(
            f"Column {name!r} must hold booleans, or 0 and 1; {where(int(others[0]))} holds {values[others[0]]:g}. "
            f"Pass feature_types={{{name!r}: 'number'}} to fit it as a number."
        )


def rounded_number(column: AnyArray) -> int | None:
    """Return the first integer of a column that has no exact float, or None if all of them have one."""
    if column.dtype != object:
        return None
    whole = (int(value) for value in column if isinstance(value, (int, np.integer)))
    return next((value for value in whole if abs(value) >= FIRST_ROUNDED and int(float(value)) != value), None)


def category_keys(column: AnyArray) -> AnyArray:
    """Return a column as strings, with None for missing: 1, 1.0 and True become '1', '1' and 'True'.

    A number is written with the fewest digits that identify it in its type: 0.1 becomes '0.1', also in float32.
    """
    if column.dtype == np.bool_:
        return np.where(column, "True", "False").astype(object)
    if column.dtype != object:
        reals = column if column.dtype.kind == "f" else column.astype(np.float64)
        distinct, inverse = np.unique(reals, return_inverse=True)
        keys = np.array([_key(value) for value in distinct], dtype=object)
        return keys[inverse] if len(keys) else np.empty(0, dtype=object)
    out = np.empty(len(column), dtype=object)
    out[:] = [value if type(value) is str else _key(value) for value in column]
    return out


def is_missing(column: AnyArray) -> AnyArray:
    """Return a mask of the missing values of a column: NaN, None, NaT and pandas' NA."""
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype != object:
        return np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)
    return np.array([type(value) is not str and _is_none(value) for value in column], dtype=bool)


def unmasked(values: Any) -> AnyArray:
    """Return a masked array as a plain array with missing values in place of the masked ones."""
    nothing: Any = np.nan if values.dtype.kind in "fiub" else None
    return np.where(np.ma.getmaskarray(values), nothing, np.ma.getdata(values))


def is_number_type(kind: type) -> bool:
    """Return whether values of a type are real numbers. Durations are not, although numpy makes them integers."""
    return issubclass(kind, (Real, Decimal, np.integer)) and not issubclass(kind, (bool, np.timedelta64))


def _is_none(value: object) -> bool:
    if value is None:
        return True
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    return type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, Decimal) and value.is_nan())


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def shown_value(value: object) -> str:
    """Return a short text of a value, for an error."""
    if isinstance(value, int):  # only an integer that overflows a float gets here
        return f"a whole number of {value.bit_length()} bits, beyond the largest float"
    return reprlib.repr(value)


def _key(value: object) -> str | None:
    if _is_none(value):
        return None
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (float, np.floating)):
        return str(int(value)) if float(value).is_integer() else repr(float(str(value)))
    if isinstance(value, Decimal) and value.is_finite():
        return str(int(value)) if value == int(value) else repr(float(value))
    return str(value)
