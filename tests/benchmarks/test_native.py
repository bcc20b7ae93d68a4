from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.native import mean_ranks, render_native
from benchmarks.recorded import read_section
from benchmarks.store import Report
from nae.errors import FormatError

PAGE = """# Suite

## Scores

|  | NAE | XGBoost | linear |
| --- | --: | --: | --: |
| Concrete, RMSE ↓ | 3.831 | **3.830** | – |
| Ames, RMSE ↓ | 30,109 | 26,479 | 34,396 |

## Fit, processor seconds

|  | NAE | XGBoost |
| --- | --: | --: |
| Concrete | 20.0 | 1.5 |

## Several splits

Means.

|  | NAE | XGBoost |
| --- | --: | --: |
| Concrete, RMSE ↓ | **3.806 ± 0.23** | 4.381 ± 0.14 |
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "suite.md"
    path.write_text(PAGE)
    return path


def report(model: str, seconds: float, **changes: float) -> Report:
    return Report(
        "concrete", model, "done", fit_seconds=seconds, fit_processor_seconds=2 * seconds, peak_memory_mb=300.0,
        memory_before_mb=200.0, **{"rmse": 3.0, **changes},
    )  # fmt: skip


def test_a_recorded_table_is_read_with_means_thousands_and_gaps(page: Path) -> None:
    scores = read_section(page, "Scores")
    assert scores["Ames"] == {"NAE": 30109, "XGBoost": 26479, "linear": 34396}
    assert scores["Concrete"] == {"NAE": 3.831, "XGBoost": 3.83}
    assert read_section(page, "Several splits")["Concrete"]["NAE"] == 3.806
    with pytest.raises(FormatError, match="must have a section 'Wins'"):
        read_section(page, "Wins")


def test_ranks_take_our_scores_in_place_of_the_recorded_ones() -> None:
    known = {"Concrete": {"NAE": 9.0, "XGBoost": 4.4, "EBM": 4.0}, "Magic": {"NAE": 0.5, "XGBoost": 0.9, "EBM": 0.95}}
    found = mean_ranks(known, {"Concrete": 3.8, "Magic": 0.92})
    assert found == {"NAE": 1.5, "XGBoost": 3.0, "EBM": 1.5}


def test_the_page_says_how_many_times_faster_and_beside_xgboost(page: Path) -> None:
    found = render_native(
        [(0, report("nae", 2.0)), (1, report("nae", 9.0, rmse=4.0)), (0, report("xgboost", 1.0))], page
    )
    assert "| Concrete, RMSE ↓ | 3.806 | 3.500 (2) | 20.0 | 4.0 | 5.0 | 2.0 | 1.0 | 2.0 | 100 |" in found
    assert "median over the tables: 2.00" in found
    assert "NAE 1.00, XGBoost 2.00" in found


def test_totals_are_those_of_tables_that_both_have_fitted(page: Path) -> None:
    failed = Report("ames", "nae", "failed", "no memory")
    new = report("nae", 5.0, accuracy=0.9)
    found = render_native(
        [(0, report("nae", 2.0)), (0, replace(new, dataset="ames")), (0, report("xgboost", 1.0))], page
    )
    assert (
        "tables that both have fitted: 4; by torch 20, which is\n5.0 times as many; the median table 5.0 times" in found
    )
    assert "0.0 times as many" in render_native([(0, failed)], page)  # the page is written after each fit
