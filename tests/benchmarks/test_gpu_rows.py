import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from benchmarks import gpu_rows
from benchmarks.gpu_rows import OFFICIAL, Run, make_problem, measure, write_page


def test_the_official_line_goes_through_what_was_measured() -> None:
    assert OFFICIAL.rows_per_second(32) == pytest.approx(512 / 14.9e-3)
    assert OFFICIAL.rows_per_second(512) == pytest.approx(512 / 0.2)
    assert OFFICIAL.kilobytes_per_row(512) == pytest.approx(37.6e6 / 512)


def test_a_training_has_a_speed_and_a_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_rows, "N_TEST", 64)
    problem = make_problem(256, "cpu")
    found = measure(Run("float32", 2, 1, 128), problem, n_epochs=2)
    assert found.rows_per_second is not None
    assert found.rows_per_second > 0
    assert found.rmse is not None
    assert 0 < found.rmse < 10


def test_too_little_memory_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 7 GiB.")

    monkeypatch.setattr(gpu_rows, "N_TEST", 8)
    monkeypatch.setattr(gpu_rows, "train", fail)
    found = measure(Run("float32", 2, 1, 128), make_problem(32, "cpu"), n_epochs=2)
    assert found.rows_per_second is None
    assert found.reason.startswith("CUDA out of memory")


def test_the_page_sets_precisions_beside_each_other(tmp_path: Path) -> None:
    run = Run("float32", 8, 8, 1024, rows_per_second=1e6, rmse=0.8, memory_gb=2.0)
    runs = [run, replace(run, seed=1, rmse=0.9), replace(run, precision="tf32"), Run("float32", 4, 1, 512, reason="no")]
    part = {
        "name": "a GPU", "torch": "2", "rows": 1000, "epochs": 4, "encode_seconds": 1.0, "foreign_load": 0.5,
        "runs": [asdict(one) for one in runs],
    }  # fmt: skip
    path = tmp_path / "gpu_rows.json"
    path.write_text(json.dumps({"cuda": part}))
    write_page(path)
    page = path.with_suffix(".md").read_text()
    assert "| float32 | 8 | 8 | 32 | 1,024 | 1,000,000 | 0.8500 ± 0.0707 | 2.0 |" in page
    assert "| tf32 | 8 | 8 | 32 | 1,024 | 1,000,000 | 0.8000 | 2.0 |" in page
    assert "| float32 | 4 | 1 | 32 | 512 | no | – | – |" in page
    assert "Others used 50% of the processors" in page
