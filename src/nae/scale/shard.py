"""A worker's part of a Ray dataset with the interface of files, so that a scan can survey and cache it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from nae._typing import IntArray
from nae.errors import NAEError
from nae.scale.cluster import cause_of
from nae.scanning.delimited import Handle

__all__ = ["ShardFiles"]

_BATCH_ROWS = 1 << 16


class ShardFiles:
    """The rows that Ray Data gives to this worker, as if they were one file. Every pass reads them again."""

    format = "Ray dataset"

    def __init__(self, shard: Any, schema: pa.Schema, *, name: str) -> None:
        self.shard, self.schema = shard, schema
        self.paths = (name,)

    def __len__(self) -> int:
        return 1

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    def types(self, names: Sequence[str]) -> list[pa.DataType]:
        return [self.schema.field(name).type for name in names]

    def with_types(self, types: Mapping[str, str]) -> "ShardFiles":  # noqa: ARG002, RUF100
        """Return the same rows, because Ray Data knows their types."""
        return self

    def count_rows(self) -> int | None:
        return None

    def read(self, number: int, names: list[str], handle: Handle) -> Iterator[tuple[pa.Table, IntArray]]:  # noqa: ARG002, RUF100
        """Yield the rows with their numbers in this worker's part."""
        first = 1
        try:
            for table in self.shard.iter_batches(batch_format="pyarrow", batch_size=_BATCH_ROWS):
                yield table.select(names), np.arange(first, first + table.num_rows)
                first += table.num_rows
        except NAEError as error:  # an error from a task of Ray Data, without the lines that Ray adds
            cause = cause_of(error)
            raise type(cause)(str(cause).partition("\n")[0]) from error
