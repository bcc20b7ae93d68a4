"""Hash the training data: the fingerprint shows whether two models saw the same rows, and reveals nothing else."""

import hashlib
import sys

import numpy as np

from nae._typing import AnyArray, Array
from nae.encoding.columns import FIRST_ROUNDED, Columns, category_keys, is_missing, is_number_type, numbers

__all__ = ["Fingerprint", "fingerprint", "row_digests"]

_LARGEST = sys.float_info.max


def fingerprint(columns: Columns, *others: AnyArray) -> str:
    """Return the SHA-256 of a table and of further arrays, such as targets and weights.

    Numbers are hashed as float64 and text as text, so the library that holds the table makes no difference. The order
    of rows and columns does.

    Examples
    --------
    >>> from nae.encoding import read_table
    >>> same = fingerprint(read_table({"x": [1, 2]})) == fingerprint(read_table({"x": [1.0, 2.0]}))
    >>> same, fingerprint(read_table({"x": [2, 1]})) == fingerprint(read_table({"x": [1, 2]}))
    (True, False)
    """
    found = Fingerprint()
    found.update(columns, *others)
    return found.hexdigest()


class Fingerprint:
    """The fingerprint of a table that is read in blocks of rows."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] | None = None
        self._n_rows = 0
        self._columns: list[_ColumnHash] = []

    def update(self, columns: Columns, *others: AnyArray) -> None:
        """Add rows."""
        arrays = (*columns.arrays, *others)
        self._names = columns.names
        self._n_rows += columns.n_rows
        self._columns = self._columns or [_ColumnHash() for _ in arrays]
        for column, array in zip(self._columns, arrays, strict=True):
            column.update(np.asarray(array))

    def hexdigest(self) -> str:
        """Return the SHA-256 of the hashes of the columns, their names and the number of rows."""
        digest = hashlib.sha256(repr((self._names, self._n_rows)).encode("utf-8", "surrogatepass"))
        for column in self._columns:
            digest.update(column.digest())
        return digest.hexdigest()


class _ColumnHash:
    """The hash of a column, updated block by block. Booleans count as text once a missing value is seen among them."""

    def __init__(self) -> None:
        self._numbers, self._keys, self._digits = hashlib.sha256(), hashlib.sha256(), hashlib.sha256()
        self._has_text = self._has_digits = False
        self._n_rows = 0

    def update(self, array: AnyArray) -> None:
        if array.dtype == object and _is_wide(array.ravel()):  # other blocks of the column may be floats
            array = self._rounded(array.ravel())
        is_number = array.dtype.kind in "fiub"
        self._n_rows += len(array)
        if is_number:
            self._numbers.update(_number_bytes(array))
        if not is_number or array.dtype == np.bool_:
            self._keys.update(_key_bytes(array))
        self._has_text = self._has_text or not is_number

    def _rounded(self, array: AnyArray) -> Array:
        """Return large integers as floats, and record the rounding errors."""
        values = numbers(array, "")
        for row, value in enumerate(array):
            if isinstance(value, (int, np.integer)) and value != int(values[row]):
                self._digits.update(f"{self._n_rows + row}:{value};".encode())
                self._has_digits = True
        return values

    def digest(self) -> bytes:
        found = (self._keys if self._has_text else self._numbers).digest()
        return found + self._digits.digest() if self._has_digits else found


def _is_wide(array: AnyArray) -> bool:
    """Return whether a column of objects holds integers that are objects only because they are large."""
    present = array[~is_missing(array)]
    if not all(is_number_type(kind) for kind in {type(value) for value in present}):
        return False
    sizes = [abs(int(value)) for value in present if isinstance(value, (int, np.integer))]
    return FIRST_ROUNDED <= max(sizes, default=0) <= _LARGEST


def _number_bytes(array: AnyArray) -> bytes:
    values = array.astype("<f8")
    values[np.isnan(values)] = np.nan  # gives every NaN the same bits
    return np.ascontiguousarray(values + 0.0).tobytes()  # turns -0.0 into 0.0


def _key_bytes(array: AnyArray) -> bytes:
    keys = category_keys(array.ravel() if array.dtype == np.bool_ else array.astype(object).ravel())
    written = {key: "-" if key is None else f"{len(key)}:{key}" for key in set(keys.tolist())}
    return "".join([written[key] for key in keys]).encode("utf-8", "surrogatepass")


def row_digests(*columns: AnyArray, key: bytes) -> AnyArray:
    """Return a hash per row. Equal rows have equal hashes; another ``key`` gives independent hashes."""
    written = [_bytes_by_row(column) for column in columns]
    found = [hashlib.blake2b(b"".join(row), digest_size=8, key=key).digest() for row in zip(*written, strict=True)]
    return np.frombuffer(b"".join(found), dtype="<u8")


def _bytes_by_row(column: AnyArray) -> list[bytes]:
    if column.dtype.kind in "fiub":
        return [number.tobytes() for number in np.frombuffer(_number_bytes(column), dtype="<f8")]
    return [
        b"-" if key is None else f"{len(key)}:{key}".encode("utf-8", "surrogatepass") for key in category_keys(column)
    ]
