"""Scan: a table on disk that is read in pieces, as often as needed, and is never in memory as a whole."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nae._optional import require
from nae._typing import BoolArray, IntArray
from nae._words import counted
from nae.errors import ConfigError, DataError, did_you_mean
from nae.scanning.bad_rows import BadRow, BadRows

if TYPE_CHECKING:
    import pyarrow as pa

    from nae.scanning.files import Files

__all__ = ["BLOCK_ROWS", "Progress", "RowBatch", "Scan", "scan"]

BLOCK_ROWS = 1 << 17  # number of rows in memory at a time

Progress = Callable[[str, int, int | None], None]  # pass, rows so far, all rows or None


@dataclass(frozen=True, eq=False)
class RowBatch:
    """Some rows of one file."""

    table: "pa.Table"
    file: str
    rows: IntArray  # row numbers in the file, counted from 1


@dataclass(frozen=True)
class _Part:
    """One side of a random split."""

    share: float
    seed: int
    is_test: bool

    def holds(self, file: int, rows: IntArray) -> BoolArray:
        """Return which rows are on this side. Every pass over the same files gives the same rows."""
        # One generator per batch, seeded by its first row, so that every pass draws the same numbers.
        draws = np.random.default_rng([self.seed, file, int(rows[0])]).random(len(rows))
        return np.asarray((draws < self.share) == self.is_test)


@dataclass(frozen=True, eq=False)
class Scan:
    """A table in files that is read lazily. :func:`nae.scan` returns one.

    Attributes
    ----------
    files
        The files of the table.
    columns
        The columns to read.
    on_bad_rows
        For rows that cannot be parsed: 'error', or 'skip' to leave them out and count them.
    cache_folder
        The folder for the cache during a fit. If None, the system's folder for temporary files.
    block_rows
        Rows in memory at a time.
    progress
        A function that is called with the name of the pass, the rows so far, and the number of all rows (or None).
    """

    files: "Files"
    columns: tuple[str, ...]
    on_bad_rows: str = "error"
    cache_folder: str | None = None
    block_rows: int = BLOCK_ROWS
    progress: Progress | None = None
    part: _Part | None = field(default=None, repr=False)
    known: str | None = None  # rows without a value in this column are left out

    def __repr__(self) -> str:
        sizes = counted(len(self.files), "file"), counted(len(self.columns), "column")
        return f"Scan({sizes[0]}, {self.files.format}, {sizes[1]})"

    def select(self, columns: Sequence[str]) -> "Scan":
        """Return a scan of the given columns."""
        for name in columns:
            self.find(name)
        return replace(self, columns=tuple(columns))

    def without(self, *columns: str) -> "Scan":
        """Return a scan of the other columns."""
        dropped = {self.find(name) for name in columns}
        return replace(self, columns=tuple(name for name in self.columns if name not in dropped))

    def where_known(self, column: str) -> "Scan":
        """Return a scan of the rows where the column is not missing."""
        return replace(self, known=self.find(column))

    def with_numbers(self, columns: Sequence[str]) -> "Scan":
        """Return a scan that reads columns of delimited text as numbers, whatever their first rows contain."""
        return replace(self, files=self.files.with_types(dict.fromkeys(columns, "number")))

    def with_progress(self, progress: Progress | None) -> "Scan":
        """Return the same scan with a function that reports progress."""
        return replace(self, progress=progress)

    def split(self, test_size: float, *, seed: int = 0) -> "tuple[Scan, Scan]":
        """Return two scans: a random part of the rows to train on, and the rest to test on."""
        if not 0 < test_size < 1:
            raise ConfigError(f"test_size must be in (0, 1); got {test_size}.")
        if self.part is not None:
            raise ConfigError("A scan can be split only once; this one is already a part.")
        sides = (replace(self, part=_Part(test_size, seed, is_test)) for is_test in (False, True))
        return next(sides), next(sides)

    def find(self, name: str) -> str:
        """Return the name of the column. If there is none, the error suggests the nearest name."""
        if name not in self.columns:
            raise DataError(f"The scan has no column {name!r}.{did_you_mean(name, self.columns)}")
        return name

    def count_rows(self) -> int | None:
        """Return the number of rows if the files know it without being read, as Parquet and Arrow do, else None."""
        return self.files.count_rows() if self.part is None and self.known is None else None

    def batches(self, columns: Sequence[str], bad_rows: BadRows | None = None) -> Iterator[RowBatch]:
        """Yield the rows, file after file. Rows that cannot be parsed are an error, or are counted in ``bad_rows``."""
        log = BadRows() if bad_rows is None else bad_rows
        names = list(columns) if self.known is None else list(dict.fromkeys([*columns, self.known]))

        def handle(bad: BadRow) -> None:
            if self.on_bad_rows != "skip":
                raise DataError(
                    f"Every row must be parsed; {bad}. Pass on_bad_rows='skip' (--on-bad-rows skip) to leave such rows "
                    "out, or column_types={…: 'text'} to read a column as text."
                )
            log.add(bad)

        for number, file in enumerate(self.files.paths):
            for table, rows in self.files.read(number, names, handle):
                batch = self._filter(RowBatch(table, file, rows), number, log)
                if len(batch.rows):
                    yield replace(batch, table=batch.table.select(list(columns)))

    def _filter(self, batch: RowBatch, file: int, log: BadRows) -> RowBatch:
        import pyarrow as pa

        is_kept = np.ones(len(batch.rows), dtype=bool)
        if self.part is not None and len(batch.rows):
            is_kept &= self.part.holds(file, batch.rows)
        if self.known is not None:
            is_known = np.asarray(batch.table.column(self.known).is_null(nan_is_null=True)) == 0
            log.n_unknown += int((is_kept & ~is_known).sum())
            is_kept &= is_known
        if is_kept.all():
            return batch
        return RowBatch(batch.table.filter(pa.array(is_kept)), batch.file, batch.rows[is_kept])


def scan(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    on_bad_rows: str = "error",
    column_types: Mapping[str, str] | None = None,
    delimiter: str | None = None,
    cache_folder: str | os.PathLike[str] | None = None,
    block_rows: int = BLOCK_ROWS,
) -> Scan:
    """Return a table that may be larger than memory, to be passed to ``fit``.

    Parameters
    ----------
    source
        A file, a pattern such as ``"folder/*.parquet"``, a folder, a list of these, or any ``pyarrow.dataset``.
        Parquet, Arrow (Feather) and delimited text, which may be compressed.
    columns
        The columns to read, including the target. If None, all columns.
    on_bad_rows : {'error', 'skip'}
        Whether a row of delimited text that cannot be parsed is an error, or is left out and counted in a warning.
    column_types
        'number' or 'text' by name, for columns of delimited text whose first rows look like something else.
    delimiter
        The delimiter of delimited text. If None, it is inferred from the first file.
    cache_folder
        The folder for the cache during a fit. If None, the system's folder for temporary files.
    block_rows
        Rows in memory at a time.

    Examples
    --------
    >>> import nae, pyarrow, tempfile
    >>> from pyarrow import feather
    >>> folder = tempfile.TemporaryDirectory()
    >>> feather.write_feather(pyarrow.table({"x": [1, 2], "y": [3, 4]}), f"{folder.name}/a.arrow")
    >>> nae.scan(f"{folder.name}/*.arrow")
    Scan(1 file, arrow, 2 columns)
    >>> folder.cleanup()
    """
    require("pyarrow.dataset", extra="scale")
    from nae.scanning.files import open_files

    if on_bad_rows not in ("error", "skip"):
        raise ConfigError(f"on_bad_rows must be 'error' or 'skip'; got {on_bad_rows!r}.")
    if block_rows < 1:
        raise ConfigError(f"block_rows must be a whole number from 1 up; got {block_rows!r}.")
    files = open_files(source, column_types=column_types or {}, delimiter=delimiter)
    made = Scan(
        files,
        files.column_names,
        on_bad_rows,
        None if cache_folder is None else os.fspath(cache_folder),
        block_rows,
    )
    return made if columns is None else made.select(columns)
