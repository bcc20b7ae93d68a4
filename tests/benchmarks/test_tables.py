import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import dataset_named
from benchmarks.models import entry_named
from benchmarks.readme import put
from benchmarks.store import Report
from benchmarks.tables import Results, markdown_table, render_suite, render_summary


def done(dataset: str, model: str, **scores: float) -> Report:
    return Report(dataset, model, "done", fit_seconds=1.5, predict_seconds=0.01, peak_memory_mb=250.0, **scores)


REPORTS = (
    done("housing", "nae", rmse=0.42, additivity=0.5, interaction_share=0.1, cancellation=0.9),
    done("housing", "lightgbm", rmse=0.43),
    done("housing", "xgboost", rmse=0.42),
    done("magic", "nae", auc=0.93, log_loss=0.31),
    done("magic", "lightgbm", auc=0.94, log_loss=0.30),
    Report("magic", "xgboost", "failed", "ended with status -9: killed"),
    done("income", "nae", auc=0.93, log_loss=0.28),
    done("income", "lightgbm", auc=0.92, log_loss=0.29),
    Report("concrete", "ebm", "unavailable", "interpret is needed"),
)
COSTS = ("Fit, seconds", "Predicting all test rows, seconds", "Peak memory of the process, MB")
ENTRIES = [entry_named(name) for name in ("nae", "lightgbm", "xgboost")]


def section(page: str, title: str) -> list[list[str]]:
    """Return the cells of the table under a heading."""
    body = page.split(f"## {title}\n")[1].split("\n## ", maxsplit=1)[0]
    lines = [line for line in body.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "---" not in line]


def test_lower_errors_rank_first_and_ties_share_their_ranks() -> None:
    assert Results(REPORTS).ranks(dataset_named("housing"), ENTRIES) == {"nae": 1.5, "xgboost": 1.5, "lightgbm": 3.0}


def test_higher_scores_rank_first_and_a_failed_run_is_last() -> None:
    assert Results(REPORTS).ranks(dataset_named("magic"), ENTRIES) == {"lightgbm": 1.0, "nae": 2.0, "xgboost": 3.0}


def test_a_data_set_that_a_model_has_not_met_yet_has_no_ranks() -> None:
    assert Results(REPORTS).ranks(dataset_named("income"), ENTRIES) is None
    assert Results(REPORTS).ranks(dataset_named("income"), ENTRIES[:2]) == {"nae": 1.0, "lightgbm": 2.0}


def test_the_page_has_mean_ranks_over_complete_data_sets_only() -> None:
    table = section(render_suite(REPORTS), "Ranks")
    assert table[0] == ["", "NAE", "LightGBM", "XGBoost"]
    assert table[-1] == ["mean of 2", "**1.75**", "2.00", "2.25"]


def test_models_that_have_run_wherever_ours_has_are_ranked_apart_from_those_that_have_not() -> None:
    title = "Ranks of the models that have run wherever NAE has"
    table = section(render_suite(REPORTS), title)
    assert table[0] == ["", "NAE", "LightGBM"]
    assert table[-1] == ["mean of 3", "**1.33**", "1.67"]
    everywhere = [report for report in REPORTS if report.model in {"nae", "lightgbm"}]
    assert title not in render_suite(everywhere)


def test_a_duel_counts_wins_ties_and_the_ratio_of_errors() -> None:
    duel = Results(REPORTS).duel("nae", "lightgbm")
    assert (duel.wins, duel.ties, duel.n) == (2, 0, 3)
    assert duel.error_ratio == pytest.approx(math.prod([0.43 / 0.42, 0.06 / 0.07, 0.08 / 0.07]) ** (1 / 3))
    tied = Results(REPORTS).duel("nae", "xgboost")
    assert (tied.wins, tied.ties, tied.n) == (0, 1, 1)


def test_the_page_says_how_often_ours_wins() -> None:
    table = section(render_suite(REPORTS), "Wins")
    assert table[1][:3] == ["against LightGBM", "2 of 3", "0 : 0"]
    assert table[2][:3] == ["against XGBoost", "0 of 1 (1 ties)", "0 : 0"]


def test_a_win_is_clear_when_it_exceeds_two_standard_errors() -> None:
    steady, swaying = np.zeros(100, dtype=np.float32), np.tile(np.float32([-1, 1]), 50)
    influences = {("housing", "nae"): steady, ("housing", "lightgbm"): 0.01 * swaying}
    influences |= {("magic", "nae"): steady, ("magic", "lightgbm"): 0.04 * swaying}
    influences |= {("income", "nae"): steady, ("income", "lightgbm"): 0.06 * swaying}
    duel = Results(REPORTS, influences).duel("nae", "lightgbm")  # each error differs by 0.01; se 0.001, 0.004, 0.006
    assert (duel.clear_wins, duel.clear_losses) == (1, 1)


def test_the_best_score_is_bold_and_others_are_not() -> None:
    table = {line[0]: line[1:] for line in section(render_suite(REPORTS), "Scores")}
    assert table["Housing, RMSE ↓"] == ["**0.4200**", "0.4300", "**0.4200**"]
    assert table["Magic, AUC ↑"] == ["0.9300", "**0.9400**", "failed"]
    assert table["Income, AUC ↑"] == ["**0.9300**", "0.9200", "–"]


def test_the_lowest_log_loss_is_bold() -> None:
    table = {line[0]: line[1:] for line in section(render_suite(REPORTS), "Log loss")}
    assert table == {
        "": ["NAE", "LightGBM", "XGBoost"],
        "Magic": ["0.3100", "**0.3000**", "–"],
        "Income": ["**0.2800**", "0.2900", "–"],
    }


def test_runs_without_a_score_say_why() -> None:
    table = section(render_suite(REPORTS), "Runs without a score")
    assert ["xgboost on magic", "failed", "ended with status -9: killed"] in table
    assert ["ebm on concrete", "unavailable", "interpret is needed"] in table


def test_variants_of_ours_are_shown_but_do_not_crowd_the_ranking() -> None:
    page = render_suite((*REPORTS, done("housing", "nae-0.9", rmse=0.41)))
    assert section(page, "Scores")[0] == ["", "NAE", "LightGBM", "XGBoost", "NAE 0.9"]
    assert section(page, "Ranks")[0] == ["", "NAE", "LightGBM", "XGBoost"]


def test_additivity_stands_with_the_two_numbers_that_keep_it_honest() -> None:
    assert ["Housing", "0.500 / 0.100 / 0.90"] in section(render_suite(REPORTS), "How additive")


def test_the_page_warns_of_seconds_measured_on_a_shared_machine() -> None:
    assert "shared the machine" not in render_suite(REPORTS)
    busy = Report("housing", "nae", "done", rmse=0.42, foreign_load=0.4)
    assert "**1 of 1 runs shared the machine**: others used up to 40% of it" in render_suite([busy])


def test_costs_are_shown_of_the_machine_of_most_runs_alone() -> None:
    here = [replace(report, machine="Linux, 2 processors") for report in REPORTS]
    elsewhere = replace(done("housing", "ebm", rmse=0.41), machine="Linux, 16 processors", foreign_load=0.5, threads=14)
    page = render_suite([*here, elsewhere])
    assert section(page, "Scores")[0][-1] == "EBM"
    rows = {title: {row[0].split(",")[0]: row[1:] for row in section(page, title)} for title in ("Scores", *COSTS)}
    assert rows["Scores"]["Housing"][-1] == "**0.4100**"
    for title in COSTS:
        assert rows[title]["Housing"][0] != "–"
        assert rows[title]["Housing"][-1] == "–"
    assert "\nRuns elsewhere: their scores count;" in page
    assert "\n- Linux, 16 processors, 14 threads: EBM on Housing.\n" in page
    assert "\n7 runs, one after another, each in its own process: Linux, 2 processors, 0 threads." in page
    assert "shared the machine" not in page
    assert "elsewhere" not in render_suite(here)


def test_seconds_of_one_thread_do_not_stand_beside_those_of_two() -> None:
    two = [replace(report, machine="Linux", threads=2) for report in REPORTS]
    page = render_suite([*two, replace(done("housing", "ebm", rmse=0.41), machine="Linux", threads=1)])
    assert "\n- Linux, 1 thread: EBM on Housing." in page
    assert section(page, "Fit, seconds")[-1][-1] == "–"


def test_the_page_names_every_version_of_ours_that_took_part() -> None:
    runs = [
        Report("housing", "nae", "done", rmse=0.42, versions={"nae": "0.1 aaa", "numpy": "2.0"}),
        Report("concrete", "nae", "done", rmse=4.2, versions={"nae": "0.1 bbb", "numpy": "2.0"}),
        Report("housing", "linear", "done", rmse=0.72, versions={"nae": "0.1 ccc", "numpy": "2.0"}),
    ]
    assert "\nnae 0.1 aaa / 0.1 bbb, numpy 2.0.\n" in render_suite(runs)


def test_the_summary_does_not_hide_boosted_trees_that_saw_all_rows() -> None:
    again = [done("housing", "lightgbm-refitted", rmse=0.01), done("income", "lightgbm-refitted", auc=0.5)]
    text = render_summary([*REPORTS, *again])
    assert text.endswith("all rows, those that say when to stop included, it beats LightGBM on 1 of 2.")
    assert "grown again" not in render_summary(REPORTS)


def test_a_page_of_no_runs_is_still_a_page() -> None:
    assert render_suite([]).startswith("# Suite")


def test_a_markdown_table_aligns_numbers_to_the_right() -> None:
    assert markdown_table(["a", "b"], [["x", "1"]]) == "| a | b |\n| --- | --: |\n| x | 1 |"


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    assert markdown_table(["a", "b"], [["E[c | x]", "1"]]).splitlines()[-1] == r"| E[c \| x] | 1 |"


def test_the_summary_has_the_known_peers_their_mean_ranks_and_who_wins() -> None:
    summary = render_summary(REPORTS)
    assert "| Housing, RMSE ↓ | **0.4200** | 0.4300 | **0.4200** |" in summary
    assert "all 3 models where all have run (2 tables): NAE 1.75, LightGBM 2.00, XGBoost 2.25." in summary
    assert "NAE beats LightGBM on 2 of 3, XGBoost on 0 of 1" in summary


def test_a_part_of_the_readme_is_replaced_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("before\n<!-- suite: start -->\nold\n<!-- suite: end -->\nafter\n")
    put("suite", "new", page)
    assert page.read_text() == "before\n<!-- suite: start -->\n\nnew\n\n<!-- suite: end -->\nafter\n"
    with pytest.raises(ValueError, match=r"README\.md must have <!-- speed: start -->"):
        put("speed", "new", page)
