"""The benchmark of fits from files: what it generates, measures and writes."""

import sys
import time

import numpy as np
import pyarrow.parquet
import pytest

from benchmarks import streaming


def test_a_table_is_generated_once_and_the_same_every_time(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "FILE_ROWS", 40)
    place = streaming.generate(tmp_path, 100, 9)
    paths = sorted(place.iterdir())
    tables = [pyarrow.parquet.read_table(path) for path in paths]
    assert [table.num_rows for table in tables] == [40, 40, 20]
    assert tables[0].num_columns == 9 + 1
    assert not tables[0].column("y").equals(tables[1].column("y"))
    before = [path.stat().st_mtime_ns for path in paths]
    paths[1].unlink()
    streaming.generate(tmp_path, 100, 9)
    assert pyarrow.parquet.read_table(paths[1]).column("y").equals(tables[1].column("y"))
    assert paths[0].stat().st_mtime_ns == before[0]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much memory is anonymous")
def test_memory_that_is_taken_is_seen():
    before, deadline = streaming.anonymous_bytes(), time.monotonic() + 20
    with streaming.AnonymousMemory(every=0.001) as memory:
        taken = np.ones(20_000_000)
        while memory.peak - before < 0.5 * taken.nbytes and time.monotonic() < deadline:
            taken += 1
    assert memory.peak - before >= 0.5 * taken.nbytes


def test_the_page_holds_what_was_measured():
    many = {
        "rows": 10,
        "features": 30,
        "survey": 1,
        "encode": 2,
        "processor": 4,
        "seconds": 5,
        "before": 2e8,
        "peak": 1.25e9,
    }
    few = {"in memory": {"rows": 7, "rows_per_second": 100.0}, "from files": {"rows": 7, "rows_per_second": 90.0}}
    air = {"in memory": [1.0, 2.0], "from files": [1.5, 1.5]}
    page = streaming.page({"memory": many, "speed": few, "accuracy": air})
    assert "**1.25 GB**" in page
    assert "at 0.90 of the speed in memory" in page
    assert "| in memory | 1.500 ± 0.500 | 1.000, 2.000 |" in page
    assert "Speed" not in streaming.page({"memory": many})
