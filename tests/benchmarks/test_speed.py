from benchmarks.speed import render_speed
from benchmarks.store import Report

OURS = Report(
    "housing", "nae", "done", rmse=0.42, fit_seconds=4.0, predict_seconds=0.02, peak_memory_mb=500.0, n_train=16_000,
    n_test=4000, threads=2, versions={"torch": "2.13"},
)  # fmt: skip
EBM = Report("housing", "ebm", "done", rmse=0.45, fit_seconds=30.0, predict_seconds=0.01, n_test=4000, threads=2)
ABSENT = Report("housing", "xgboost", "unavailable", "xgboost is needed", threads=2)


def test_the_page_gives_ratios_to_ours() -> None:
    page = render_speed([OURS, EBM, ABSENT])
    assert "| NAE | 0.4200 | 4.0 | 1.00 | 5.00 | 1.00 | 500 |" in page
    assert "| EBM | 0.4500 | 30.0 | 7.50 | 2.50 | 0.50 | 0 |" in page
    assert "| XGBoost: xgboost is needed | – |" in page
    assert "torch 2.13" in page
    assert "16,000 rows to fit and 4,000 to predict" in page


def test_without_ours_there_are_no_ratios() -> None:
    assert "| EBM | 0.4500 | 30.0 | – | 2.50 | – | 0 |" in render_speed([EBM])


def test_the_page_asks_for_another_measurement_where_the_machine_was_shared() -> None:
    busy = Report("housing", "ebm", "done", rmse=0.45, fit_seconds=30.0, predict_seconds=0.01, foreign_load=0.5)
    assert "measure again" in render_speed([busy])
    assert "measure again" not in render_speed([EBM])
