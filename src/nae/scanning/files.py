"""The files of one table: find them by pattern, folder or list, and read them in pieces by format."""

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from nae._typing import IntArray
from nae.errors import ConfigError, DataError, did_you_mean
from nae.scanning.delimited import DelimitedFile, Handle, first_text, infer_types
from nae.scanning.dialect import guess_delimiter

__all__ = ["FORMATS", "Files", "find_paths", "format_of", "open_files"]

_BATCH_ROWS = 1 << 16
_COMPRESSIONS = (".gz", ".bz2", ".zst", ".lz4")
FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
}


class Files(Protocol):
    """The files of one table."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the files."""

    @property
    def format(self) -> str:
        """Their format: parquet, arrow, csv or dataset."""

    def __len__(self) -> int:
        """Return the number of files."""

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns of all files."""

    def types(self, names: Sequence[str]) -> list[pa.DataType]:
        """Return the types of the columns."""

    def with_types(self, types: Mapping[str, str]) -> "Files":
        """Return the same files, where some columns of delimited text are read as 'number' or 'text'."""

    def count_rows(self) -> int | None:
        """Return the number of rows if it is known without reading them, else None."""

    def read(self, number: int, names: list[str], handle: Handle) -> Iterator[tuple[pa.Table, IntArray]]:
        """Yield the rows of one file with their numbers. ``handle`` is called with rows that cannot be parsed."""


def open_files(source: Any, *, column_types: Mapping[str, str], delimiter: str | None = None) -> Files:
    """Return the files of a table."""
    if isinstance(source, ds.Dataset):
        return DatasetFiles(source, _fragment_paths(source), "dataset")
    if isinstance(source, str) and "://" in source:
        return _from_uri(source)
    paths = find_paths(source)
    kind = format_of(paths[0])
    other = next((path for path in paths if format_of(path) != kind), None)
    if other is not None:
        raise DataError(f"All files must be of one format; {paths[0]} is {kind} and {other} is {format_of(other)}.")
    if kind == "csv":
        delimiter = delimiter or ("\t" if ".tsv" in paths[0] else guess_delimiter(first_text(paths[0])))
        return DelimitedFiles(tuple(paths), delimiter, infer_types(paths[0], delimiter)).with_types(column_types)
    try:
        dataset = ds.dataset(paths, format="feather" if kind == "arrow" else kind)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"The files cannot be read: {str(error).splitlines()[0].rstrip('.')}.") from error
    return DatasetFiles(dataset, tuple(paths), kind)


def find_paths(source: Any) -> list[str]:
    """Return the files of a path, a pattern, a folder or a list of these; the files of each are sorted."""
    if isinstance(source, (list, tuple)):
        return [path for one in source for path in find_paths(one)]
    if not isinstance(source, (str, os.PathLike)):
        raise ConfigError(
            "A scan needs a file, a pattern, a folder, a list of these, or a pyarrow dataset; "
            f"got {type(source).__name__}."
        )
    text = os.fspath(source)
    if os.path.isdir(text):  # noqa: PTH112 — the same call for texts and paths
        found = sorted(str(path) for path in Path(text).rglob("*") if _is_table(path, Path(text)))
        if not found:
            raise DataError(f"The folder {text} must hold tables ({', '.join(FORMATS)}); it holds none.")
        return found
    if Path(text).exists():
        return [text]
    found = sorted(path for path in glob.glob(text, recursive=True) if Path(path).is_file())  # noqa: PTH207
    if not found:
        what = "No file matches" if glob.has_magic(text) else "No file is at"
        near = [path.name for path in Path(text).parent.iterdir()] if Path(text).parent.is_dir() else []
        hint = did_you_mean(Path(text).name, near) if near and not glob.has_magic(text) else ""
        raise DataError(f"{what} {text}.{hint if 'mean' in hint else ''}")
    return found


def format_of(path: str) -> str:
    """Return the format that the ending of a file implies."""
    endings = [ending.lower() for ending in Path(path).suffixes]
    if endings and endings[-1] in _COMPRESSIONS:
        endings.pop()
    kind = FORMATS.get(endings[-1] if endings else "")
    if kind is None:
        raise DataError(f"The ending of {path} must say the format, one of {', '.join(FORMATS)}.")
    return kind


def _is_table(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    endings = [ending.lower() for ending in path.suffixes if ending.lower() not in _COMPRESSIONS]
    return path.is_file() and not hidden and bool(endings) and endings[-1] in FORMATS


def _fragment_paths(dataset: ds.Dataset) -> tuple[str, ...]:
    return tuple(getattr(one, "path", f"part {i}") for i, one in enumerate(dataset.get_fragments()))


def _from_uri(source: str) -> "DatasetFiles":
    ending = Path(source.rstrip("/")).suffix.lower()
    try:
        kind = FORMATS.get(ending, "parquet")
        dataset = ds.dataset(source, format="feather" if kind == "arrow" else kind)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{source} cannot be read: {str(error).splitlines()[0].rstrip('.')}.") from error
    return DatasetFiles(dataset, _fragment_paths(dataset), kind)


@dataclass(frozen=True, eq=False)
class DatasetFiles:
    """Files that Arrow reads: Parquet, Arrow, and all formats of its datasets."""

    dataset: ds.Dataset
    paths: tuple[str, ...]
    format: str

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(self.dataset.schema.names)

    def types(self, names: Sequence[str]) -> list[pa.DataType]:
        return [self.dataset.schema.field(name).type for name in names]

    def with_types(self, types: Mapping[str, str]) -> "DatasetFiles":
        return self

    def count_rows(self) -> int | None:
        return int(self.dataset.count_rows()) if self.format in ("parquet", "arrow") else None

    def read(self, number: int, names: list[str], handle: Handle) -> Iterator[tuple[pa.Table, IntArray]]:
        # Fragments are created for each pass, because they cache the metadata of their files.
        fragment = next(islice(self.dataset.get_fragments(), number, None))
        options: dict[str, Any] = {}
        if self.format == "parquet":  # a row group may be large, so it is read as a stream
            options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(use_buffered_stream=True, pre_buffer=False)
        n_read = 0
        try:
            self._check_columns(fragment, number, names)
            batches = fragment.to_batches(
                schema=self.dataset.schema,
                columns=names,
                batch_size=_BATCH_ROWS,
                batch_readahead=1,
                fragment_readahead=1,
                use_threads=False,
                **options,
            )
            for batch in batches:
                batch.validate(full=True)  # Arrow trusts the offsets and texts in the file
                yield pa.table(batch), np.arange(n_read + 1, n_read + batch.num_rows + 1)
                n_read += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            where = f"{self.paths[number]} cannot be read" + (f" beyond row {n_read}" if n_read else "")
            raise DataError(f"{where}: {str(error).splitlines()[0].rstrip('.')}.") from error

    def _check_columns(self, fragment: ds.Fragment, number: int, names: list[str]) -> None:
        """Raise an error for a file that lacks a column; Arrow would read missing values."""
        own = set(fragment.physical_schema.names) | set(ds.get_partition_keys(fragment.partition_expression))
        absent = next((name for name in names if name not in own), None)
        if absent is not None:
            raise DataError(f"Every file must have the column {absent!r}; {self.paths[number]} has none.")


@dataclass(frozen=True, eq=False)
class DelimitedFiles:
    """Files of delimited text."""

    paths: tuple[str, ...]
    delimiter: str
    column_types: dict[str, pa.DataType]
    format: str = "csv"

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(self.column_types)

    def types(self, names: Sequence[str]) -> list[pa.DataType]:
        return [self.column_types[name] for name in names]

    def with_types(self, types: Mapping[str, str]) -> "DelimitedFiles":
        known = {"number": pa.float64(), "text": pa.string()}
        for name, word in types.items():
            if name not in self.column_types:
                raise DataError(f"The files have no column {name!r}.{did_you_mean(name, self.column_types)}")
            if word not in known:
                raise ConfigError(f"column_types must be 'number' or 'text'; got {word!r} for {name!r}.")
        return replace(self, column_types=self.column_types | {name: known[word] for name, word in types.items()})

    def count_rows(self) -> int | None:
        return None  # unknown before the files were read

    def read(self, number: int, names: list[str], handle: Handle) -> Iterator[tuple[pa.Table, IntArray]]:
        types = {name: self.column_types[name] for name in names}
        return DelimitedFile(self.paths[number], self.delimiter, types).batches(handle)
