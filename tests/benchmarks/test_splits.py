"""Several splits of a table: what is averaged, ranked and counted, and how they are run."""

from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.splits import Splits, render_splits, splits_sentence
from benchmarks.store import Report
from benchmarks.suite import plan
from tests.benchmarks.generated import make_table, write_table


def reports(**scores: float) -> list[Report]:
    """Return a split's reports: concrete_nae=3.0 is an RMSE, magic_nae=0.9 an AUC."""
    found = []
    for name, score in scores.items():
        dataset, model = name.split("_")
        given = {"auc" if dataset == "magic" else "rmse": score}
        found.append(Report(dataset, model, "done", **given))  # type: ignore[arg-type]
    return found


FIRST = reports(
    concrete_nae=4.0, concrete_linear=9.0, concrete_ebm=3.5, magic_nae=0.93, magic_linear=0.84, magic_ebm=0.9
)
SECOND = reports(concrete_nae=3.0, concrete_linear=8.0, concrete_ebm=3.5, magic_nae=0.95, magic_linear=0.86)


def test_means_ranks_and_wins_are_those_of_all_splits() -> None:
    page = render_splits([FIRST, SECOND])
    assert "| Concrete, RMSE ↓ | **3.500 ± 0.5** | 8.500 ± 0.5 | **3.500 ± 0** |" in page
    assert "| Concrete | 1.5 | 3.0 | 1.5 |" in page
    assert "| Concrete | 2 of 2 | 1 of 2 |" in page
    assert "Magic" not in page  # EBM did not run there on the second split
    assert "6 runs on unknown machine, 0 threads." in page


def test_a_score_that_should_be_high_is_won_by_the_higher_one() -> None:
    splits = Splits.of([reports(magic_nae=0.93, magic_linear=0.94), reports(magic_nae=0.95, magic_linear=0.86)])
    assert splits is not None
    (dataset,) = splits.datasets
    assert splits.n_wins(dataset, "linear") == 1
    assert splits.ranks(dataset, "nae").tolist() == [2, 1]


def test_means_stand_for_small_tables_among_all() -> None:
    first = reports(concrete_nae=4.0, concrete_ebm=3.9, magic_nae=0.93, magic_ebm=0.94)
    second = reports(concrete_nae=3.0, concrete_ebm=3.5)
    splits = Splits.of([first, second])
    assert splits is not None
    assert [(each.model, each.rmse, each.auc) for each in splits.averaged().reports] == [
        ("nae", 3.5, None), ("ebm", 3.7, None), ("nae", None, 0.93), ("ebm", None, 0.94)
    ]  # fmt: skip
    sentence = splits_sentence([first, second])
    assert "means of 2 splits where they have been run (Concrete)" in sentence
    assert sentence.endswith("(2 tables): EBM 1.50, NAE 1.50.\nNAE beats EBM on 1 of 2.")


def test_one_split_alone_is_not_shown() -> None:
    assert render_splits([FIRST]) == splits_sentence([FIRST]) == ""


def test_every_split_is_a_suite_of_its_own() -> None:
    found = list(plan("concrete", "linear", threads=1, n_splits=3))
    assert [(config.suite, config.split) for config in found] == [("suite", 0), ("suite-1", 1), ("suite-2", 2)]


@pytest.mark.slow
def test_the_command_runs_other_rows_and_does_not_repeat_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NAE_DATA", str(tmp_path))
    write_table(tmp_path, "concrete", make_table("regression"))
    store = tmp_path / "runs"
    command = ["suite", "--datasets", "concrete", "--models", "linear", "--threads", "1", "--store", str(store)]
    main([*command, "--splits", "2", "--out", str(tmp_path / "suite.md")])
    assert "split 1" in capsys.readouterr().out
    scores = [
        Report.loads((store / name / "concrete/linear/report.json").read_text()).rmse for name in ("suite", "suite-1")
    ]
    assert scores[0] != scores[1]
    main([*command, "--splits", "2", "--out", str(tmp_path / "suite.md")])
    assert "split 1" not in capsys.readouterr().out
