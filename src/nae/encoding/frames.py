"""Reading tables: the only file that knows pandas, polars and pyarrow (through narwhals), arrays and lists."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nae._typing import AnyArray
from nae.encoding.columns import Columns
from nae.errors import DataError

__all__ = ["read_table"]


def read_table(table: Any) -> Columns:
    """Return a table as :class:`Columns`.

    Data frames (pandas, polars, pyarrow and whatever else narwhals knows) keep their names; a mapping from names
    to columns and a list of records (mappings) do too; arrays and nested lists have none.
    """
    if isinstance(table, Columns):
        return table
    if isinstance(table, Mapping):
        return _from_mapping(table)
    if isinstance(table, Sequence) and not isinstance(table, str) and table and isinstance(table[0], Mapping):
        return _from_records(table)
    frame = _as_narwhals(table)
    if frame is not None:
        return _from_frame(frame)
    return _from_array(table)


def _as_narwhals(table: Any) -> Any:
    """Return a narwhals frame, or None for what is not a data frame (and without importing narwhals for arrays)."""
    module = type(table).__module__.partition(".")[0]
    if module in ("numpy", "builtins", "scipy", "array"):
        return None
    if "narwhals" not in sys.modules and not hasattr(table, "columns") and not hasattr(table, "column_names"):
        return None
    import narwhals.stable.v2 as nw

    frame = nw.from_native(table, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        return frame.collect()
    return frame if isinstance(frame, nw.DataFrame) else None


def _from_frame(frame: Any) -> Columns:
    import narwhals.stable.v2 as nw

    names = tuple(str(name) for name in frame.columns)
    mixed = {type(name) for name in frame.columns}
    if mixed and mixed != {str}:
        native = {kind.__name__ for kind in mixed}
        if str in mixed:
            raise DataError(f"Column names must all be text or none of them; got {sorted(native)}.")
    arrays, categorical = [], set()
    for i, name in enumerate(frame.columns):
        series = frame.get_column(name) if len(set(frame.columns)) == len(names) else None
        if series is None:
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"Column names must differ; {twice!r} stands for {names.count(twice)} columns.")
        dtype = series.dtype
        if dtype in (nw.Categorical, nw.Enum):
            categorical.add(i)
        arrays.append(_series_to_array(series, dtype, names[i]))
    keeps_names = not mixed or mixed == {str}
    return Columns(tuple(arrays), names if keeps_names else None, frozenset(categorical))


def _series_to_array(series: Any, dtype: Any, name: str) -> AnyArray:
    import narwhals.stable.v2 as nw

    if dtype == nw.Boolean and series.null_count() == 0:
        return np.asarray(series.to_numpy(), dtype=bool)
    if dtype == nw.Boolean:
        return np.array(series.to_list(), dtype=object)
    if dtype.is_integer() or dtype.is_float() or dtype.is_decimal():
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    if dtype in (nw.Categorical, nw.Enum):
        return np.array(series.to_list(), dtype=object)
    if dtype in (nw.String, nw.Object):
        column = np.empty(len(series), dtype=object)
        column[:] = series.to_list()
        return column
    if dtype == nw.Unknown and series.null_count() == len(series):
        return np.full(len(series), np.nan)
    if dtype.is_temporal():
        hint = "Turn it into numbers first, such as a year or an age in days."
    else:
        hint = "Turn nested values into columns of their own."
    raise DataError(f"Column {name!r} must hold numbers, booleans, text or categories; it holds {dtype}. {hint}")


def _from_mapping(table: Mapping[Any, Any]) -> Columns:
    arrays = []
    for given in table.values():
        values = given if isinstance(given, (list, tuple, np.ndarray)) else [given]
        column = np.empty(len(values), dtype=object)
        column[:] = list(values)
        arrays.append(_tighten(column))
    lengths = {len(array) for array in arrays}
    if len(lengths) > 1:
        raise DataError(f"Columns must have one length; got {sorted(lengths)}.")
    return Columns(tuple(arrays), tuple(str(name) for name in table))


def _from_records(records: Sequence[Mapping[Any, Any]]) -> Columns:
    names = tuple(dict.fromkeys(name for record in records for name in record))
    return _from_mapping({name: [record.get(name) for record in records] for name in names})


def _from_array(table: Any) -> Columns:
    if hasattr(table, "toarray"):
        raise DataError("Sparse input is not supported; pass a dense table, for example X.toarray().")
    values = table if isinstance(table, np.ndarray) else _stack(table)
    if values.ndim != 2:
        hint = " Reshape your data: X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one row."
        raise DataError(f"Expected 2D array: a table must have two axes (rows, columns); got {values.ndim}.{hint}")
    if np.iscomplexobj(values):
        raise DataError("Complex data not supported: a table must hold real numbers.")
    if values.dtype.kind in "fiub":
        same = values if values.dtype == np.bool_ else values.astype(np.float64, copy=False)
        return Columns(tuple(same.T))
    if values.dtype.kind in "US":
        values = values.astype(object)
    if values.dtype != object:
        raise DataError(f"A table must hold numbers, booleans or text; got an array of {values.dtype}.")
    return Columns(tuple(_tighten(column) for column in values.T))


def _stack(table: Any) -> AnyArray:
    try:
        array = np.asarray(table)
    except ValueError as error:
        raise DataError(f"A table must have rows of one length; {error}.") from None
    if array.dtype.kind in "US" and isinstance(table, Sequence):
        return np.array([list(row) for row in table], dtype=object)  # keeps the numbers among the text
    return array


def _tighten(column: AnyArray) -> AnyArray:
    """Return an object column as float64 or bool where all of it is."""
    kinds = {type(value) for value in column}
    if kinds and kinds <= {bool, np.bool_}:
        return column.astype(bool)
    if kinds and all(issubclass(kind, (int, float, np.integer, np.floating)) and kind is not bool for kind in kinds):
        try:
            return column.astype(np.float64)
        except OverflowError:
            return column
    return column
