"""Groups of rows: the levels of columns, quantile bins of numbers, and combinations of several."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nae._typing import AnyArray, IntArray
from nae.encoding.columns import category_keys, is_missing
from nae.encoding.frames import read_table
from nae.errors import ConfigError, DataError, did_you_mean

__all__ = ["MISSING", "group_rows", "read_by"]

MISSING = "missing"
_FEW = 10  # a number with so many distinct values is a group for each


def read_by(by: Any, X: Any, n_rows: int) -> dict[str, AnyArray]:
    """Return the columns that divide the rows, by name: names of columns of X, arrays, or a mapping of either."""
    if isinstance(by, str):
        by = [by]
    if isinstance(by, Mapping):
        given = dict(by)
    elif isinstance(by, Sequence) and len(by) > 0 and all(isinstance(name, str) for name in by) and len(by) != n_rows:
        given = {name: name for name in by}
    else:
        given = {str(getattr(by, "name", None) or "group"): by}
    return {name: _column(value, name, X, n_rows) for name, value in given.items()}


def group_rows(columns: Mapping[str, AnyArray], *, n_bins: int) -> list[tuple[str, IntArray]]:
    """Return the groups, each with its rows. Several columns make a group of every combination that occurs."""
    if n_bins < 2:
        raise ConfigError(f"n_bins must be at least 2; got {n_bins}.")
    each = [_codes(array, n_bins) for array in columns.values()]
    labels = [names for names, _ in each]
    together = np.stack([codes for _, codes in each], axis=1)
    kinds, place = np.unique(together, axis=0, return_inverse=True)
    place = place.ravel()
    return [
        (" / ".join(names[code] for names, code in zip(labels, kind, strict=True)), np.flatnonzero(place == at))
        for at, kind in enumerate(kinds)
    ]


def _column(value: Any, name: str, X: Any, n_rows: int) -> AnyArray:
    array = _named(value, X) if isinstance(value, str) else read_table({name: value}).arrays[0]
    if len(array) != n_rows:
        raise DataError(f"by must have one value per row ({n_rows}); {name!r} has {len(array)}.")
    return array


def _named(name: str, X: Any) -> AnyArray:
    columns = read_table(X, only={name})
    if columns.names is None or name not in columns.names:
        near = did_you_mean(name, columns.names or (), is_listed=True)
        raise DataError(f"by must be a column of X, or an array beside it; X has no column {name!r}.{near}")
    return columns.arrays[columns.names.index(name)]


def _codes(array: AnyArray, n_bins: int) -> tuple[list[str], IntArray]:
    """Return the labels in order, *missing* last, and the position of every row's label."""
    missing = is_missing(array)
    known = array[~missing]
    is_cut = array.dtype.kind == "f" and len(np.unique(known)) > _FEW
    labels, found = _bins(known, n_bins) if is_cut else _levels(known)
    codes = np.full(len(array), len(labels), dtype=np.int64)
    codes[~missing] = found
    return [*labels, MISSING], codes


def _levels(known: AnyArray) -> tuple[list[str], IntArray]:
    keys = category_keys(known)
    is_number = known.dtype.kind == "f"
    labels = sorted(set(keys), key=lambda key: (float(key) if is_number else 0.0, key))
    place = {label: at for at, label in enumerate(labels)}
    return labels, np.array([place[key] for key in keys], dtype=np.int64)


def _bins(known: AnyArray, n_bins: int) -> tuple[list[str], IntArray]:
    """Return bins of about equal numbers of rows, labelled by the smallest and the largest value in each."""
    edges = np.unique(np.quantile(known, np.linspace(0, 1, n_bins + 1), method="inverted_cdf"))
    codes = np.unique(np.searchsorted(edges[1:-1], known, side="left"), return_inverse=True)[1].ravel()
    parts = [known[codes == at] for at in range(int(codes.max()) + 1)]
    return [f"{part.min():.6g} to {part.max():.6g}" for part in parts], codes.astype(np.int64)
