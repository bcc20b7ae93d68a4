"""What several workers need, without Ray: sketches that travel and merge, shares of batches, complaints."""

import copy
import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet
import pytest

import nae
from nae.errors import ConfigError, DataError, TrainingError
from nae.scale.checkpoints import open_storage, read_model
from nae.scale.cluster import _check_reachable, connect
from nae.scale.fit import _estimator, _predicts_classes, _scaling
from nae.scale.shard import ShardFiles
from nae.scanning.chunks import Roles
from nae.scanning.scan import Scan
from nae.scanning.sketches import LevelSketch, ValueSketch
from nae.scanning.survey import Findings, survey_rows
from nae.training.shares import SharedRows
from tests.training.problems import Problem

ROLES = Roles(("a", "b"), ("y",))


class FakeWorkers:
    """The first of several workers; the others are said to have so many rows."""

    def __init__(self, *others: int) -> None:
        self.others, self.count, self.rank = others, 1 + len(others), 0

    def gather(self, value: Any) -> list[Any]:
        return [value, *self.others]


def make_table(n_rows: int = 400, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    b = np.array(["x", "y", "z"])[random.integers(0, 3, n_rows)]
    return pa.table({"a": random.standard_normal(n_rows).round(2), "b": b, "y": random.standard_normal(n_rows)})


def survey(table: pa.Table, folder: Path) -> Any:
    path = folder / f"{table.num_rows}.parquet"
    pa.parquet.write_table(table, path)
    return survey_rows(nae.scan(path), ROLES, is_classes=False, feature_types=None)


def test_findings_of_two_workers_merge_to_those_of_all_rows(tmp_path: Path) -> None:
    table = make_table()
    whole = survey(table, tmp_path).survey(is_classes=False)
    first, second = survey(table.slice(0, 150), tmp_path), survey(table.slice(150), tmp_path)
    first.merge(copy.deepcopy(second))  # as it arrives from another process
    merged = first.survey(is_classes=False)
    assert (merged.n_rows, merged.weight, merged.least) == (whole.n_rows, whole.weight, whole.least)
    np.testing.assert_allclose(merged.target.mean, whole.target.mean)
    np.testing.assert_allclose(merged.target.variance, whole.target.variance)
    expected = whole.schema(n_knots=32, n_levels=8)
    np.testing.assert_array_equal(merged.schema(n_knots=32, n_levels=8).knots, expected.knots)
    assert merged.schema(n_knots=32, n_levels=8).to_dict() == expected.to_dict()


def test_a_share_without_rows_adds_nothing(tmp_path: Path) -> None:
    found = survey(make_table().slice(0, 0), tmp_path)
    found.merge(survey(make_table(), tmp_path))
    assert found.survey(is_classes=False).n_rows == 400


def test_sketches_travel_as_bytes() -> None:
    values, levels = ValueSketch(exact=10), LevelSketch(exact=10)
    random = np.random.default_rng(0)
    values.update(random.standard_normal(5000))
    levels.update(random.integers(0, 50, 5000).astype(str).astype(object))
    assert not values.is_exact
    assert not levels.is_exact
    again = copy.deepcopy(values)
    np.testing.assert_array_equal(again.distribution()[0], values.distribution()[0])
    assert copy.deepcopy(levels).counts() == levels.counts()


def test_workers_share_every_batch_equally() -> None:
    own = Problem().rows()
    rows = SharedRows(own, FakeWorkers(70, 60))
    assert len(rows) == 64 + 70 + 60
    parts = list(rows.batches(4, 48, np.random.default_rng(0)))
    assert [len(part) for part in parts] == [15] * 4  # as many as the smallest share has for each
    assert [len(part) for part in rows.batches(1, 194, np.random.default_rng(0))] == [60]


def test_a_worker_without_rows_is_an_error() -> None:
    with pytest.raises(DataError, match=r"Every worker must have rows; they have \[64, 0\]. Use fewer workers"):
        SharedRows(Problem().rows(), FakeWorkers(0))
    with pytest.raises(DataError, match="the smallest share has 3 rows"):
        list(SharedRows(Problem().rows(), FakeWorkers(3)).batches(4, 16, np.random.default_rng(0)))


class EmptyHanded:
    """Two workers of which the other has nothing, or as much as this one."""

    count, rank = 2, 0

    def __init__(self, *, is_other_empty: bool) -> None:
        self.is_other_empty = is_other_empty

    def gather(self, value: Any) -> list[Any]:
        empty = Findings() if isinstance(value, Findings) else 0
        return [value, empty if self.is_other_empty else copy.deepcopy(value)]


@pytest.mark.parametrize(
    ("workers", "batch_size", "match"),
    [
        (EmptyHanded(is_other_empty=True), 64, r"Every worker must have rows; they have \[400, 0\]. Use fewer workers"),
        (EmptyHanded(is_other_empty=False), 1, "a row in each of 800 batches; the smallest share has 400 rows. Raise"),
    ],
)
def test_a_share_too_small_is_an_error_before_anything_is_written(
    tmp_path: Path, workers: Any, batch_size: int, match: str
) -> None:
    pa.parquet.write_table(make_table(), tmp_path / "rows.parquet")
    scan = nae.scan(tmp_path / "rows.parquet", cache_folder=tmp_path)
    with pytest.raises(DataError, match=match):
        nae.NAERegressor(batch_size=batch_size).fit_share(scan, "y", workers=workers)


def test_a_shard_is_read_like_a_file() -> None:
    table = make_table()

    class Shard:
        def iter_batches(self, *, batch_format: str, batch_size: int) -> Any:
            assert batch_format == "pyarrow"
            assert batch_size > 0
            yield from (table.slice(0, 150), table.slice(150))

    files = ShardFiles(Shard(), table.schema, name="the part of worker 1 of 2")
    found = survey_rows(Scan(files, files.column_names), ROLES, is_classes=False, feature_types=None)
    assert found.n_rows == 400
    batches = list(Scan(files, files.column_names).batches(["a"]))
    assert [batch.rows[0] for batch in batches] == [1, 151]


def make_result(folder: Path) -> Any:
    @contextmanager
    def as_directory() -> Any:
        yield str(folder)

    return SimpleNamespace(checkpoint=SimpleNamespace(as_directory=as_directory), error=None, path="runs/1")


def test_what_a_run_complains_about_is_raised(tmp_path: Path) -> None:
    (tmp_path / "error.json").write_text(json.dumps({"kind": "DataError", "message": "Column 'a' must hold numbers."}))
    with pytest.raises(DataError, match="Column 'a' must hold numbers"):
        read_model(make_result(tmp_path))
    with pytest.raises(TrainingError, match=r"The run left no model \(None\); its files are at runs/1"):
        read_model(SimpleNamespace(checkpoint=None, error=None, path="runs/1"))


def test_checkpoints_go_to_folders_and_to_what_arrow_or_fsspec_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_storage(None) == (None, None)
    assert open_storage("runs") == (str(tmp_path / "runs"), None)
    assert open_storage(f"file://{tmp_path}/runs") == (f"file://{tmp_path}/runs", None)
    path, system = open_storage("memory://runs")  # fsspec's
    system.create_dir(f"{path}/first")
    assert [info.path for info in system.get_file_info(pa.fs.FileSelector(path))] == ["/runs/first"]
    with pytest.raises(ConfigError, match=r"a URI that Arrow or fsspec knows; Protocol not known: nowhere"):
        open_storage("nowhere://runs")


def test_the_task_is_seen_from_the_type_of_the_target() -> None:
    assert not _predicts_classes(pa.float64(), "auto", "y")
    assert _predicts_classes(pa.string(), "auto", "y")
    assert _predicts_classes(pa.int64(), "classification", "y")
    with pytest.raises(DataError, match="The target 'y' must hold numbers for a regression; it holds string"):
        _predicts_classes(pa.string(), "regression", "y")


def test_a_parameter_the_estimator_does_not_have_is_an_error() -> None:
    assert _estimator({"n_members": 3}, is_classes=True).n_members == 3
    with pytest.raises(ConfigError, match="NAEClassifier has no parameter 'loss'"):
        _estimator({"loss": "poisson"}, is_classes=True)


@pytest.mark.parametrize(
    ("resources", "given", "expected"),
    [
        ({"CPU": 8.0}, None, (4, False)),
        ({"CPU": 8.0}, 7, (7, False)),
        ({"CPU": 2.0, "GPU": 4.0}, None, (4, True)),
        ({"CPU": 8.0, "GPU": 1.0}, 2, (2, False)),
    ],
)
def test_some_processors_are_left_to_read(
    resources: dict[str, float], given: int | None, expected: tuple[int, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def config(*, num_workers: int, use_gpu: bool) -> tuple[int, bool]:
        return num_workers, use_gpu

    monkeypatch.setattr("nae.scale.fit.require", lambda *_, **__: SimpleNamespace(ScalingConfig=config))
    ray = SimpleNamespace(cluster_resources=lambda: resources)
    assert _scaling(ray, given) == expected
    with pytest.raises(
        ConfigError, match=r"8 workers need 9 processors, one of them to read the rows; the cluster has"
    ):
        _scaling(ray, 8)


@pytest.mark.parametrize("port", ["1", "99999"])
def test_a_cluster_that_does_not_answer_is_an_error_at_once(port: str) -> None:
    with pytest.raises(ConfigError, match=rf"A Ray must answer at the address; none answers at 127\.0\.0\.1:{port}: "):
        _check_reachable(f"127.0.0.1:{port}")


def test_addresses_of_other_forms_are_left_to_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**_: Any) -> None:
        raise ConnectionError("Could not find any running Ray instance.\nPlease start one.")

    ray = SimpleNamespace(is_initialized=lambda: False, init=init)
    monkeypatch.setattr("nae.scale.cluster.require", lambda *_, **__: ray)
    for address in ("auto", "ray://host:10001"):
        with (
            pytest.raises(
                ConfigError, match=rf"none answers at {address}: Could not find any running Ray instance\. 'ray"
            ),
            connect(address),
        ):
            pass


def test_importing_the_package_does_not_load_ray() -> None:
    code = "import nae.scale, sys; print('ray' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
