"""The rows of a fit on a cluster as a Ray dataset, which is given or read from files that every machine can reach."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from nae._optional import require
from nae._typing import IntArray
from nae.errors import ConfigError, DataError, did_you_mean
from nae.scanning.bad_rows import BadRow
from nae.scanning.files import Files, find_paths, format_of, open_files

__all__ = ["open_rows"]


def open_rows(dataset: Any, *, needed: Sequence[str], ignored: Sequence[str]) -> tuple[Any, pa.Schema]:
    """Return a Ray dataset without the ignored columns, and the schema of its columns."""
    data = require("ray.data", extra="scale")
    if isinstance(dataset, data.Dataset):
        rows, schema = dataset, _arrow_schema(dataset)
    elif not isinstance(dataset, (str, Path, list, tuple)):
        raise ConfigError(f"dataset must be a ray.data.Dataset or a path; got {type(dataset).__name__}.")
    elif isinstance(dataset, str) and "://" in dataset:
        rows = data.read_csv(dataset) if Path(dataset).suffix == ".csv" else data.read_parquet(dataset)
        schema = _arrow_schema(rows)
    else:
        paths = [str(Path(path).absolute()) for path in find_paths(dataset)]  # jobs may run in another folder
        if format_of(paths[0]) != "parquet":
            return _read_ourselves(data, open_files(paths, column_types={}), needed=needed, ignored=ignored)
        _check_parquet(paths, ignored)
        rows = data.read_parquet(paths)
        schema = _arrow_schema(rows)
    kept = _keep(schema, needed=needed, ignored=ignored)
    return rows.drop_columns(list(ignored)) if ignored else rows, kept


def _arrow_schema(rows: Any) -> pa.Schema:
    schema = rows.schema().base_schema
    return schema if isinstance(schema, pa.Schema) else rows.take_batch(1, batch_format="pyarrow").schema


def _keep(schema: pa.Schema, *, needed: Sequence[str], ignored: Sequence[str]) -> pa.Schema:
    """Return the columns to read, after checking that all named columns exist."""
    for name in (*needed, *ignored):
        if name not in schema.names:
            raise DataError(f"The dataset has no column {name!r}.{did_you_mean(name, schema.names)}")
    return pa.schema([field for field in schema if field.name not in ignored])


def _check_parquet(paths: Sequence[str], ignored: Sequence[str]) -> None:
    """Raise an error if a file cannot be read or lacks a column of the first one; Ray would read missing values."""
    names: list[str] = []
    for path in paths:
        try:
            own = pa.parquet.read_schema(path).names
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path} cannot be read: {str(error).splitlines()[0].rstrip('.')}.") from error
        names = names or [name for name in own if name not in ignored]
        absent = next((name for name in names if name not in own), None)
        if absent is not None:
            raise DataError(f"Every file must have the column {absent!r}; {path} has none.")


def _read_ourselves(data: Any, files: Files, *, needed: Sequence[str], ignored: Sequence[str]) -> tuple[Any, pa.Schema]:
    """Return the rows of files with our own reader, which knows more delimiters and compressions and names bad rows."""
    names = list(files.column_names)
    schema = _keep(pa.schema(list(zip(names, files.types(names), strict=True))), needed=needed, ignored=ignored)
    numbers = data.range(len(files), override_num_blocks=len(files))
    return numbers.map_batches(_Reader(files, tuple(schema.names)), batch_size=1, batch_format="numpy"), schema


@dataclass(frozen=True, eq=False)
class _Reader:
    """Read files by their numbers, in the tasks of Ray Data."""

    files: Files
    names: tuple[str, ...]

    def __call__(self, batch: dict[str, IntArray]) -> Iterator[pa.Table]:
        for number in batch["id"].tolist():
            for table, _ in self.files.read(number, list(self.names), _complain):
                yield table


def _complain(bad: BadRow) -> None:
    raise DataError(
        f"Every row must be parsed; {bad}. Correct the file, or fit without a cluster and with on_bad_rows='skip'."
    )
