import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks.cost import Measured, Point, measure_rows, measure_steps, points
from benchmarks.cost_page import read_measurements, render_cost, write_page
from benchmarks.gpu_step import step_seconds
from nae.native import is_here, reason

STEP = Measured(
    Point("features", n_features=32), device="cpu", gate="low-rank", batch_size=512, most_steps=4000,
    step_seconds=0.01, epoch_seconds=2.0, memory_mb=400.0,
)  # fmt: skip
EPOCH = Measured(
    Point("rows", n_rows=10_000, n_features=8), device="cpu", gate="additive", batch_size=500, most_steps=4000,
    step_seconds=0.005, epoch_seconds=0.1, encode_seconds=1.0, predict_seconds=0.02, memory_mb=300.0,
)  # fmt: skip
SKIPPED = Measured(Point("members", n_members=16), reason="the time budget was spent")


def test_the_points_reach_a_million_rows_and_512_features() -> None:
    found = list(points())
    assert max(point.n_rows for point in found) == 1_000_000
    assert max(point.n_features for point in found) == 512
    assert {point.axis for point in found} == {"rows", "features", "experts", "members"}


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_a_step_of_either_engine_takes_time(engine: str) -> None:
    if engine == "native" and not is_here():
        pytest.skip(reason())
    sizes = {"n_experts": 2, "n_members": 1, "batch_size": 32, "n_rows": 96, "hidden_dim": 8, "n_knots": 8}
    assert step_seconds(2, **sizes, device="cpu", engine=engine, n_threads=1) > 0


def test_the_longest_fit_is_computed_from_the_step() -> None:
    assert STEP.most_fit_seconds == pytest.approx(40.0)
    assert EPOCH.most_fit_seconds == pytest.approx(21.0)
    assert SKIPPED.most_fit_seconds is None


def test_measurements_survive_their_file_and_become_a_page_and_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "cost.json"
    path.write_text(json.dumps({"machine": "a desk", "points": [asdict(each) for each in (EPOCH, STEP, SKIPPED)]}))
    machine, found = read_measurements(path.read_text())
    assert (machine, found) == ("a desk", [EPOCH, STEP, SKIPPED])
    write_page(path)
    assert "a desk" in (tmp_path / "cost.md").read_text()
    assert (tmp_path / "cost.png").stat().st_size > 5000


def test_the_page_marks_what_is_computed_and_says_what_is_missing() -> None:
    page = render_cost("a desk", [EPOCH, STEP, SKIPPED], picture="cost.png")
    assert "| 10,000 | 500 | 0.1 | 5 | 1 | 2 | 300 | 21 |" in page
    assert "| 32 | low-rank | 512 | 10 | 400 | 2 | 40 |" in page
    assert "one epoch, s (computed)" in page
    assert "| 16 (the time budget was spent) | – |" in page
    assert "too slow" not in page
    assert "Others used up to 50% of the processors" in render_cost(
        "a desk", [replace(STEP, foreign_load=0.5)], picture="cost.png"
    )


def test_steps_and_rows_are_timed_for_real() -> None:
    steps = measure_steps(Point("features", n_features=2, n_experts=2, n_members=1), "cpu")
    assert steps.step_seconds is not None
    assert steps.step_seconds > 0
    assert steps.epoch_seconds == pytest.approx(steps.step_seconds * round(100_000 / steps.batch_size))
    rows = measure_rows(Point("rows", n_rows=600, n_features=2, n_experts=2, n_members=1), "cpu")
    assert None not in (rows.epoch_seconds, rows.encode_seconds, rows.predict_seconds)
