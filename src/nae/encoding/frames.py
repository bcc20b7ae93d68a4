"""Read tables of any source. No other file deals with data frames (through narwhals), mappings and nested lists."""

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from nae._typing import AnyArray
from nae.encoding.columns import FIRST_ROUNDED, Columns, cannot_hold, is_number_type, unmasked
from nae.errors import DataError

__all__ = ["read_table"]


def read_table(table: Any, *, only: Collection[str] | None = None) -> Columns:
    """Return a table as :class:`Columns`.

    Column names come from data frames (pandas, polars, pyarrow and all others that narwhals supports), from mappings of
    names to columns, and from lists of records (mappings). Arrays and nested lists have no names. If ``only`` is given,
    other columns are listed but not read: they may hold anything, and appear empty.
    """
    if isinstance(table, Columns):
        return table
    if isinstance(table, memoryview):
        table = np.asarray(table)
    only = None if only is None else frozenset(only)
    if hasattr(table, "tocsc"):  # checked before mappings, because scipy's dictionary of keys is a mapping
        return _from_sparse(table)
    if isinstance(table, Mapping):
        return _from_mapping(table, only)
    if isinstance(table, Sequence) and not isinstance(table, str) and table and isinstance(table[0], Mapping):
        return _from_records(table, only)
    frame = _as_narwhals(table)
    if frame is not None:
        return _from_frame(frame, only)
    return _from_array(table)


def _as_narwhals(table: Any) -> Any:
    """Return a narwhals frame, or None if the table is not a data frame. Arrays do not import narwhals."""
    kind = type(table)  # looks at the type, because a lazy frame would have to resolve its columns
    if kind.__module__.partition(".")[0] in ("numpy", "builtins", "scipy", "array"):
        return None
    if "narwhals" not in sys.modules and not hasattr(kind, "columns") and not hasattr(kind, "column_names"):
        return None
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError

    try:
        frame = nw.from_native(table, pass_through=True)
    except DuplicateError:
        _names_of(getattr(table, "column_names", table.columns))  # raises an error that shows the duplicate names
        raise
    if isinstance(frame, nw.LazyFrame):
        return frame.collect()
    return frame if isinstance(frame, nw.DataFrame) else None


def _from_frame(frame: Any, only: Collection[str] | None) -> Columns:
    import narwhals.stable.v2 as nw

    arrays, categorical, orders = [], set(), {}
    for i, key in enumerate(frame.columns):
        if _is_passed_over(key, only):
            arrays.append(np.full(len(frame), np.nan))
            continue
        series = frame.get_column(key)
        if series.dtype in (nw.Categorical, nw.Enum):
            categorical.add(i)
        if series.dtype == nw.Enum:
            orders[i] = tuple(map(str, series.dtype.categories))
        arrays.append(_series_to_array(series, series.dtype, str(key)))
    return Columns(tuple(arrays), _names_of(frame.columns), frozenset(categorical), orders)


def _is_passed_over(key: Any, only: Collection[str] | None) -> bool:
    return only is not None and isinstance(key, str) and key not in only


def _names_of(keys: Iterable[Any]) -> tuple[str, ...] | None:
    """Return the column names, or None if they are not text. Mixed types and duplicate names are errors."""
    keys = list(keys)
    types = {type(key) for key in keys}
    if str in types and len(types) > 1:
        raise DataError(
            "Column names must all be text or none of them; "
            f"got {sorted(kind.__name__ for kind in types)}. Rename the columns."
        )
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise DataError(f"Column names must differ; {twice!r} stands for {keys.count(twice)} columns.")
    return tuple(keys) if types <= {str} else None


def _series_to_array(series: Any, dtype: Any, name: str) -> AnyArray:
    import narwhals.stable.v2 as nw

    if dtype == nw.Boolean and series.null_count() == 0:
        return np.asarray(series.to_numpy(), dtype=bool)
    if dtype == nw.Float32:
        return np.asarray(series.to_numpy(), dtype=np.float32)
    if (dtype.is_integer() or dtype.is_decimal()) and _is_wide(series.drop_nulls()):
        return _objects([_whole(value) for value in series.to_list()])
    if dtype.is_integer() or dtype.is_float() or dtype.is_decimal():
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    if dtype in (nw.Boolean, nw.Categorical, nw.Enum, nw.String):
        return _objects(series.to_list())
    if dtype == nw.Object:
        return _tighten(_objects(series.to_list()))
    if dtype == nw.Unknown and series.null_count() == len(series):
        return np.full(len(series), np.nan)
    if dtype == nw.Unknown:
        return _unknown_to_array(series, name)
    raise cannot_hold(name, dtype, is_temporal=dtype.is_temporal(), is_nested=dtype.is_nested())


def _unknown_to_array(series: Any, name: str) -> AnyArray:
    """Return a column whose type narwhals does not know: a sparse one of pandas, or a wide decimal of Arrow."""
    native = series.to_native()
    if hasattr(native, "sparse"):
        return _tighten(_objects(native.sparse.to_dense().tolist()))
    kind = str(native.dtype if hasattr(native, "dtype") else native.type)
    if kind.startswith("decimal"):
        return _tighten(_objects(series.to_list()))
    raise cannot_hold(name, kind)


def _is_wide(present: Any) -> bool:
    """Return whether a column has integers so large that a conversion to float would merge some of them."""
    return len(present) > 0 and max(-int(present.min()), int(present.max())) >= FIRST_ROUNDED


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) and value == int(value) else value


def _from_mapping(table: Mapping[Any, Any], only: Collection[str] | None) -> Columns:
    names = _names_of(table)
    arrays = []
    for name, values in table.items():
        if _is_passed_over(name, only):
            arrays.append(np.full(len(_as_list(values)), np.nan))
            continue
        dtype = getattr(values, "dtype", None)
        if isinstance(dtype, np.dtype) and dtype.kind in "mM":
            raise cannot_hold(str(name), dtype, is_temporal=True)
        arrays.append(_tighten(_objects(_as_list(values))))
    lengths = {len(array) for array in arrays}
    if len(lengths) > 1:
        raise DataError(f"Columns must have one length; got {sorted(lengths)}.")
    return Columns(tuple(arrays), names)


def _as_list(values: Any) -> list[Any]:
    """Return a column as a list. A single value becomes a column of one row."""
    if hasattr(values, "to_list") or hasattr(values, "to_pylist"):  # a series of pandas or polars, or a pyarrow array
        return list(values.to_list() if hasattr(values, "to_list") else values.to_pylist())
    if isinstance(values, np.ma.MaskedArray):
        return list(unmasked(values))
    return list(values) if isinstance(values, (Sequence, np.ndarray)) and not isinstance(values, str) else [values]


def _from_records(records: Sequence[Any], only: Collection[str] | None) -> Columns:
    for i, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise DataError(
                f"Records must all be mappings from names to values; record {i} is a {type(record).__name__}."
            )
    names = tuple(dict.fromkeys(name for record in records for name in record))
    return _from_mapping({name: [record.get(name) for record in records] for name in names}, only)


def _from_array(table: Any) -> Columns:
    values = _stack(table)
    if values.ndim != 2:
        hint = " Reshape your data: X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one row."
        if hasattr(table, "to_frame"):
            hint = " For a Series, use X.to_frame() if it is one feature, or [X.to_dict()] if it is one row."
        raise DataError(f"Expected 2D array: a table must have two axes (rows, columns); got {values.ndim}.{hint}")
    if np.iscomplexobj(values):
        raise DataError("Complex data not supported: a table must hold real numbers.")
    if values.dtype.kind in "iu" and values.size and max(-int(values.min()), int(values.max())) >= FIRST_ROUNDED:
        values = values.astype(object)
    if values.dtype.kind in "fiub":
        same = values if values.dtype in (np.bool_, np.float32) else values.astype(np.float64, copy=False)
        return Columns(tuple(same.T))
    if values.dtype.kind in "US":
        values = values.astype(object)
    if values.dtype != object:
        raise cannot_hold(None, f"an array of {values.dtype}", is_temporal=values.dtype.kind in "mM")
    return Columns(tuple(_tighten(column) for column in values.T))


def _from_sparse(table: Any) -> Columns:
    """Return a sparse array or matrix of scipy as dense columns; what it does not store is 0, or False."""
    if table.ndim != 2:
        return _from_array(table.toarray())
    by_column = table.tocsc()
    by_column.sum_duplicates()
    dense = np.zeros(by_column.shape, dtype=by_column.dtype, order="F")
    column = np.repeat(np.arange(dense.shape[1]), np.diff(by_column.indptr))
    dense[by_column.indices, column] = by_column.data
    return _from_array(dense)


def _stack(table: Any) -> AnyArray:
    if isinstance(table, np.ma.MaskedArray):
        return unmasked(table)
    if isinstance(table, np.ndarray):
        return np.asarray(table)  # turns a matrix into an array
    if isinstance(table, str):
        raise DataError("A table must be a data frame, an array or a list of rows; got text. Read the file first.")
    if table is None:
        raise DataError("A table must be a data frame, an array or a list of rows; got None.")
    if isinstance(table, Sequence) and _holds_text(table):  # numpy would turn all values into text of one width
        return _stack_objects(table)
    try:
        array = np.asarray(table)
    except ValueError as error:
        raise DataError(f"A table must have rows of one length; {error}.") from None
    if array.dtype.kind == "f" and array.ndim == 2 and isinstance(table, Sequence) and _has_rounded(array):
        return _stack_objects(table)  # keeps the integers exact
    return array


def _holds_text(rows: Sequence[Any]) -> bool:
    """Return whether any row, or any value in a row, is text."""
    return any(isinstance(value, (str, bytes)) for row in rows for value in _possible_text(row))


def _possible_text(row: Any) -> Iterable[Any]:
    if isinstance(row, np.ndarray):
        return row.ravel().tolist() if row.dtype.kind in "OUS" else ()
    return row if _is_row(row) else (row,)


def _is_row(row: Any) -> bool:
    return isinstance(row, (Sequence, np.ndarray)) and not isinstance(row, (str, bytes))


def _stack_objects(rows: Sequence[Any]) -> AnyArray:
    """Return nested lists as an array of objects, without converting the values."""
    if not all(map(_is_row, rows)):
        return _objects(rows)
    lengths = {len(row) for row in rows}
    if len(lengths) > 1:
        raise DataError(f"A table must have rows of one length; got {sorted(lengths)}.")
    return np.array([list(row) for row in rows], dtype=object)


def _objects(values: Sequence[Any]) -> AnyArray:
    """Return values as a one-dimensional array of objects; numpy would give nested values a second axis."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _has_rounded(values: AnyArray) -> bool:
    """Return whether some floats are so large that different integers become the same float."""
    return bool((np.abs(values) >= FIRST_ROUNDED).any())


def _tighten(column: AnyArray) -> AnyArray:
    """Return an object column as numbers or bool if all its values are. Integers too large for floats stay objects."""
    kinds = {type(value) for value in column}
    if any(issubclass(kind, Decimal) for kind in kinds):  # comparing a signalling NaN would raise an error
        column = _objects([np.nan if isinstance(one, Decimal) and one.is_nan() else one for one in column])
    if kinds and kinds <= {bool, np.bool_}:
        return column.astype(bool)
    if kinds == {np.float32}:
        return column.astype(np.float32)
    if kinds and all(is_number_type(kind) for kind in kinds):
        try:
            values = column.astype(np.float64)
        except OverflowError:
            return column
        is_float = all(issubclass(kind, (float, np.floating)) for kind in kinds)
        return values if is_float or not _has_rounded(values) else column
    return column
