import time
from dataclasses import replace

from benchmarks.busy import busy
from benchmarks.speed import render_busy, render_speed, render_threads
from benchmarks.store import Report

OURS = Report(
    "housing", "nae", "done", rmse=0.42, fit_seconds=4.0, predict_seconds=0.02, peak_memory_mb=500.0, n_train=16_000,
    n_test=4000, threads=2, versions={"torch": "2.13"}, fit_processor_seconds=7.5, memory_before_mb=410.0,
)  # fmt: skip
EBM = Report("housing", "ebm", "done", rmse=0.45, fit_seconds=30.0, predict_seconds=0.01, n_test=4000, threads=2)
ABSENT = Report("housing", "xgboost", "unavailable", "xgboost is needed", threads=2)


def test_the_page_gives_ratios_to_ours() -> None:
    page = render_speed([OURS, EBM, ABSENT])
    assert "| NAE | 0.4200 | 4.0 | 1.00 | 7.5 | 5.00 | 1.00 | 500 | 90 |" in page
    assert "| EBM | 0.4500 | 30.0 | 7.50 | – | 2.50 | 0.50 | 0 | – |" in page
    assert "| XGBoost: xgboost is needed | – |" in page
    assert "torch 2.13" in page
    assert "16,000 rows to fit and 4,000 to predict" in page


def test_without_ours_there_are_no_ratios() -> None:
    assert "| EBM | 0.4500 | 30.0 | – | – | 2.50 | – | 0 | – |" in render_speed([EBM])


def test_the_page_asks_for_another_measurement_where_the_machine_was_shared() -> None:
    busy = Report("housing", "ebm", "done", rmse=0.45, fit_seconds=30.0, predict_seconds=0.01, foreign_load=0.5)
    assert "measure again" in render_speed([busy])
    assert "measure again" not in render_speed([EBM])


def test_a_fit_in_company_is_compared_with_the_same_fit_alone() -> None:
    slow = replace(OURS, fit_seconds=9.0)
    late = Report("housing", "ebm", "failed", "took more than 840 s", threads=2)
    page = render_busy([(OURS, slow), (EBM, late)])
    assert "| NAE | 4.0 | 9.0 | 2.25 |" in page
    assert "| EBM | 30.0 | took more than 840 s | – |" in page
    assert render_busy([]) == ""


def test_threads_are_compared_with_one() -> None:
    one = replace(OURS, threads=1, fit_seconds=7.0)
    assert "| 2 | 4.0 | 1.75 | 0.42 |" in render_threads([one, OURS])
    assert render_threads([one]) == ""


def test_busy_processes_end_with_their_block_or_by_themselves() -> None:
    started = time.monotonic()
    with busy(2, seconds=60):
        pass
    with busy(1, seconds=0.1):
        time.sleep(0.2)
    assert time.monotonic() - started < 30
