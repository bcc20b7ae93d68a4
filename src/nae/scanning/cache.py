"""The cache: rows as small integers in one temporary file without a name, which the system removes in any case."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from nae._typing import AnyArray, IntArray
from nae.errors import DataError

__all__ = ["Field", "RowCache", "open_cache", "plan_blocks"]

_SPARE = 1 << 26  # bytes that the cache must leave free on the disk


@dataclass(frozen=True)
class Field:
    """One array of the cache: its numbers for every row."""

    name: str
    dtype: Any
    width: int | None = None  # count of numbers per row; None is a single number without an axis

    @property
    def row_bytes(self) -> int:
        return int(np.dtype(self.dtype).itemsize) * (self.width or 1)


@dataclass(frozen=True, eq=False)
class RowCache:
    """Rows on disk, in blocks that are random samples of all rows."""

    arrays: dict[str, AnyArray]  # by name of the field, (row, ...), memory-mapped
    starts: IntArray  # (block + 1,), the first row of each block, and the end
    filled: IntArray  # (block,), number of rows written so far

    @property
    def n_blocks(self) -> int:
        return len(self.filled)

    @property
    def n_rows(self) -> int:
        return int(self.starts[-1])

    @property
    def largest_block(self) -> int:
        return int(np.diff(self.starts).max())

    def write(self, rows: dict[str, AnyArray], random: np.random.Generator) -> None:
        """Distribute rows randomly over the blocks, in proportion to their room. A single block keeps their order."""
        n_rows = len(next(iter(rows.values())))
        counts = _deal(np.diff(self.starts) - self.filled, n_rows)
        order = random.permutation(n_rows) if self.n_blocks > 1 else np.arange(n_rows)
        ends = np.cumsum(counts)
        for name, values in rows.items():
            shuffled = values[order] if self.n_blocks > 1 else values
            for block in np.flatnonzero(counts):
                at = int(self.starts[block] + self.filled[block])
                part = shuffled[ends[block] - counts[block] : ends[block]]
                self.arrays[name][at : at + len(part)] = part
        self.filled[:] += counts

    def block(self, number: int) -> dict[str, AnyArray]:
        """Return the arrays of one block, which are memory-mapped."""
        rows = slice(int(self.starts[number]), int(self.starts[number + 1]))
        return {name: array[rows] for name, array in self.arrays.items()}


def _deal(room: IntArray, n_rows: int) -> IntArray:
    """Return the number of rows that each block gets, in proportion to its room."""
    exact = room * (n_rows / max(int(room.sum()), 1))
    counts: IntArray = np.minimum(np.floor(exact).astype(np.int64), room)
    while (left := n_rows - int(counts.sum())) > 0:
        order = np.argsort(-np.where(room > counts, exact - counts, -np.inf), kind="stable")[:left]
        order = order[room[order] > counts[order]]
        if len(order) == 0:
            raise DataError("The files changed while they were read: the second pass found more rows than the first.")
        counts[order] += 1
    return counts


def plan_blocks(n_rows: int, n_batches: int, block_rows: int) -> IntArray:
    """Return the first row of each block, and the end. A block has whole batches and about ``block_rows`` rows."""
    if not 1 <= n_batches <= n_rows:
        raise DataError(f"Every batch must have a row; got {n_rows} rows for {n_batches} batches.")
    per_block = max(1, block_rows // (n_rows // n_batches))
    n_blocks = 1 if n_rows <= block_rows else max(1, round(n_batches / per_block))
    batches = np.full(n_blocks, n_batches // n_blocks)
    batches[: n_batches % n_blocks] += 1
    ends = np.array([n_rows * int(done) // n_batches for done in np.cumsum(batches)])
    return np.concatenate([[0], ends])


@contextmanager
def open_cache(fields: list[Field], starts: IntArray, *, folder: str | None) -> Iterator[RowCache]:
    """Yield an empty cache. Its file has no name, so the system frees it even after a crash."""
    n_rows = int(starts[-1])
    n_bytes = n_rows * sum(field.row_bytes for field in fields) + 64 * len(fields)
    check_space(n_bytes, folder)
    with tempfile.TemporaryFile(dir=folder, prefix="nae-cache-") as file:
        _reserve(file, n_bytes, folder)
        arrays: dict[str, AnyArray] = {}
        at = 0
        for field in fields:
            shape = (n_rows,) if field.width is None else (n_rows, field.width)
            arrays[field.name] = np.memmap(file, dtype=field.dtype, mode="r+", offset=at, shape=shape)
            at += -(-n_rows * field.row_bytes // 64) * 64
        yield RowCache(arrays, starts, np.zeros(len(starts) - 1, dtype=np.int64))


def check_space(n_bytes: int, folder: str | None) -> None:
    """Raise an error if the disk has too little room."""
    where = folder or tempfile.gettempdir()
    if not os.path.isdir(where):  # noqa: PTH112 — a plain question about a plain name
        raise DataError(f"cache_folder must be a folder that exists; {where} is not.")
    free = shutil.disk_usage(where).free
    if n_bytes + _SPARE > free:
        raise DataError(
            f"The cache needs {n_bytes / 1e9:.2f} GB on disk; {where} has {free / 1e9:.2f} GB left. "
            "Name a folder with more room: nae.scan(…, cache_folder=…)."
        )


def _reserve(file: IO[bytes], n_bytes: int, folder: str | None) -> None:
    """Allocate the space now. If the disk became full later, the process would be killed without a message."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, max(n_bytes, 1))
        else:
            file.truncate(max(n_bytes, 1))
    except OSError as error:
        raise DataError(
            f"The cache needs {n_bytes / 1e9:.2f} GB in {folder or tempfile.gettempdir()}: {error}."
        ) from error
