"""Which rows a cluster reads and what is wrong with them; tasks of Ray Data run here, by a stand-in for it."""

import gzip
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from nae.errors import ConfigError, DataError
from nae.scale.rows import open_rows
from nae.scale.shard import ShardFiles


@dataclass
class FakeDataset:
    """A dataset that is read when it is asked for its table."""

    tables: list[pa.Table]

    def schema(self) -> Any:
        return SimpleNamespace(base_schema=self.tables[0].schema)

    def drop_columns(self, names: list[str]) -> "FakeDataset":
        return FakeDataset([table.drop_columns(names) for table in self.tables])

    def map_batches(self, read: Any, *, batch_size: int, batch_format: str) -> "FakeDataset":
        assert (batch_size, batch_format) == (1, "numpy")
        batches = [{"id": np.array([number])} for number in self.tables[0]["id"].to_pylist()]
        return FakeDataset([table for batch in batches for table in read(batch)])

    def table(self) -> pa.Table:
        return pa.concat_tables(self.tables)


@pytest.fixture(autouse=True)
def data(monkeypatch: pytest.MonkeyPatch) -> None:
    found = SimpleNamespace(
        Dataset=FakeDataset,
        read_parquet=lambda paths: FakeDataset([pa.parquet.read_table(path) for path in paths]),
        range=lambda n, override_num_blocks: FakeDataset([pa.table({"id": list(range(override_num_blocks))})][:n]),
    )
    monkeypatch.setattr("nae.scale.rows.require", lambda *_, **__: found)


PARTS = [pa.table({"a": [1.5, 2.5], "b": ["x", "y"], "y": [1.0, 2.0]}), pa.table({"a": [3.5], "b": ["z"], "y": [3.0]})]
WHOLE = pa.concat_tables(PARTS)


def write(folder: Path, form: str) -> Path:
    for number, table in enumerate(PARTS):
        path = folder / f"{number}.{form}"
        if form == "parquet":
            pa.parquet.write_table(table, path)
        elif form == "arrow":
            pa.feather.write_feather(table, path)
        else:
            lines = [";".join(table.column_names), *(";".join(map(str, row.values())) for row in table.to_pylist())]
            text = "\n".join(lines).encode()
            path.write_bytes(gzip.compress(text) if form.endswith("gz") else text)
    return folder


@pytest.mark.parametrize("form", ["parquet", "arrow", "csv", "csv.gz"])
def test_a_cluster_reads_what_one_machine_reads(tmp_path: Path, form: str) -> None:
    rows, schema = open_rows(write(tmp_path, form), needed=["y"], ignored=[])
    assert rows.table().equals(WHOLE)
    assert schema.names == ["a", "b", "y"]
    rows, schema = open_rows(tmp_path / f"*.{form}", needed=["y"], ignored=["b"])
    assert rows.table().equals(WHOLE.drop_columns(["b"]))
    assert schema.names == ["a", "y"]


def test_a_dataset_is_taken_as_it_is() -> None:
    rows, schema = open_rows(FakeDataset(PARTS), needed=["y"], ignored=["a"])
    assert rows.table().column_names == schema.names == ["b", "y"]


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("given", [{"needed": ["yy"], "ignored": []}, {"needed": ["y"], "ignored": ["yy"]}])
def test_a_column_that_is_not_there_is_an_error(tmp_path: Path, form: str, given: dict[str, list[str]]) -> None:
    with pytest.raises(DataError, match=r"The dataset has no column 'yy'. Did you mean 'y'"):
        open_rows(write(tmp_path, form), **given)


def test_something_else_is_no_dataset() -> None:
    with pytest.raises(ConfigError, match=r"dataset must be a ray.data.Dataset or a path; got int"):
        open_rows(3, needed=[], ignored=[])


def test_a_parquet_file_that_lacks_a_column_or_is_broken_is_named(tmp_path: Path) -> None:
    write(tmp_path, "parquet")
    pa.parquet.write_table(PARTS[1].drop_columns(["b"]), tmp_path / "1.parquet")
    with pytest.raises(DataError, match=r"Every file must have the column 'b'; .*1\.parquet has none"):
        open_rows(tmp_path, needed=["y"], ignored=[])
    assert open_rows(tmp_path / "0.parquet", needed=["y"], ignored=["b"])[1].names == ["a", "y"]
    (tmp_path / "1.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(DataError, match=r"1\.parquet cannot be read: "):
        open_rows(tmp_path, needed=["y"], ignored=["b"])


def test_a_row_that_cannot_be_parsed_is_named_by_file_and_row(tmp_path: Path) -> None:
    write(tmp_path, "csv")
    with (tmp_path / "1.csv").open("a") as file:
        file.write("\n4.5;w;4.0;1")
    with pytest.raises(DataError, match=r"row 2 of .*1\.csv has 4 fields instead of 3\. Correct the file"):
        open_rows(tmp_path, needed=["y"], ignored=[])


def test_a_worker_passes_on_what_a_task_complained_about() -> None:
    class TaskError(DataError):
        cause = DataError("row 2 of 1.csv has 4 fields instead of 3.\nFailed to apply UDF transform.")

    def fail(**_: Any) -> Any:
        raise TaskError("a page of traceback")

    files = ShardFiles(SimpleNamespace(iter_batches=fail), WHOLE.schema, name="the part of worker 1 of 2")
    with pytest.raises(DataError, match=r"^row 2 of 1\.csv has 4 fields instead of 3\.$") as caught:
        list(files.read(0, ["a"], lambda _: None))
    assert type(caught.value) is DataError  # which travels to the other workers
