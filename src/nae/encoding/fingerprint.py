"""A fingerprint of the training data: tells whether two models saw the same rows, and nothing about the rows."""

import hashlib

import numpy as np

from nae._typing import AnyArray
from nae.encoding.columns import Columns, category_keys

__all__ = ["fingerprint"]


def fingerprint(columns: Columns, *others: AnyArray) -> str:
    """Return the SHA-256 of a table and of arrays beside it, such as targets and weights.

    Numbers count as float64 and text as text, whichever library the table came from; the order of rows and columns
    counts.

    Examples
    --------
    >>> from nae.encoding import read_table
    >>> same = fingerprint(read_table({"x": [1, 2]})) == fingerprint(read_table({"x": [1.0, 2.0]}))
    >>> same, fingerprint(read_table({"x": [2, 1]})) == fingerprint(read_table({"x": [1, 2]}))
    (True, False)
    """
    digest = hashlib.sha256(repr((columns.names, columns.n_rows)).encode("utf-8", "surrogatepass"))
    for array in (*columns.arrays, *others):
        digest.update(_bytes(np.asarray(array)))
    return digest.hexdigest()


def _bytes(array: AnyArray) -> bytes:
    if array.dtype.kind in "fiub":
        values = array.astype("<f8")
        values[np.isnan(values)] = np.nan  # one NaN of the many
        return np.ascontiguousarray(values + 0.0).tobytes()  # -0.0 is 0.0
    keys = category_keys(array.astype(object).ravel())
    return "".join("-" if key is None else f"{len(key)}:{key}" for key in keys).encode("utf-8", "surrogatepass")
