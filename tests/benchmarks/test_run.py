from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import run
from benchmarks.datasets import Split
from benchmarks.machine import ForeignLoad, describe, peak_memory_mb
from benchmarks.models import Budget, Entry, Fitted
from benchmarks.run import execute, measure
from benchmarks.store import RunConfig, Store
from benchmarks.suite import plan
from nae import NAERegressor
from nae.errors import ConfigError
from tests.benchmarks.generated import make_split, make_table, write_table


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with one table of the suite, and let the environment name it."""
    folder = tmp_path / "data"
    folder.mkdir()
    write_table(folder, "concrete", make_table("regression"))
    monkeypatch.setenv("NAE_DATA", str(folder))
    return folder


def test_a_run_reports_scores_seconds_memory_and_versions() -> None:
    found, influences = measure(RunConfig("suite", "generated", "linear", threads=1), make_split("binary"))
    assert influences is not None
    assert influences.shape == (80,)
    assert found.outcome == "done"
    assert found.auc is not None
    assert 0.5 < found.auc <= 1
    assert found.rmse is None
    assert found.log_loss is not None
    assert found.fit_seconds is not None
    assert found.fit_seconds > 0
    assert found.fit_processor_seconds is not None
    assert found.fit_processor_seconds > 0
    assert found.peak_memory_mb is not None
    assert found.peak_memory_mb > 20
    assert (found.n_train, found.n_test, found.n_features) == (320, 80, 4)
    assert {"nae", "numpy", "scikit-learn"} <= set(found.versions)
    assert found.additivity is None


def test_ours_reports_how_additive_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Small:
        modules = ("torch",)

        def fit(self, split: Split, budget: Budget) -> Fitted:
            model = NAERegressor(n_members=1, n_experts=2, max_epochs=2, random_state=budget.seed, n_jobs=1)
            return Fitted(model.fit(split.train.X, split.train.y), split.dataset.task, lambda X: X)

    monkeypatch.setattr(run, "entry_named", lambda name: Entry(name, name, Small()))
    found, _ = measure(RunConfig("suite", "generated", "small", threads=1), make_split("regression"))
    assert found.additivity is not None
    assert 0 <= found.additivity <= 1
    assert found.interaction_share is not None
    assert found.cancellation is not None


def test_a_model_that_is_not_installed_is_reported_with_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Absent:
        modules = ("no_such_package",)

        def fit(self, split: Split, budget: Budget) -> Fitted:
            raise AssertionError

    monkeypatch.setattr(run, "entry_named", lambda name: Entry(name, name, Absent()))
    found, influences = measure(RunConfig("suite", "generated", "absent"), make_split("binary"))
    assert found.outcome == "unavailable"
    assert influences is None
    assert "pip install 'neural-additive-experts[bench]'" in found.reason


def test_the_suite_runs_what_is_not_done_and_writes_the_page(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "suite.md"
    arguments = ["suite", "--datasets", "concrete", "--models", "linear", "--threads", "1"]
    arguments += ["--store", str(tmp_path / "runs"), "--out", str(out)]
    command.main(arguments)
    report = tmp_path / "runs" / "suite" / "concrete" / "linear" / "report.json"
    assert (report.parent / "DONE").exists()
    assert "| Concrete, RMSE ↓ |" in out.read_text()
    written = report.stat().st_mtime_ns
    capsys.readouterr()
    command.main(arguments)
    assert report.stat().st_mtime_ns == written
    assert "linear" not in capsys.readouterr().out


def test_a_run_that_crashes_or_takes_too_long_is_recorded(data: Path, tmp_path: Path) -> None:
    store, config = Store(tmp_path / "runs"), RunConfig("suite", "housing", "linear", threads=1)
    found = execute(config, store)
    assert found.outcome == "failed"
    assert "a folder that holds housing.parquet" in found.reason
    slow = execute(replace(config, dataset="concrete"), store, limit_seconds=0.05)
    assert slow.reason == "took more than 0 s"
    assert store.done(config) is None


def test_nothing_begins_after_the_time_budget(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["suite", "--datasets", "concrete", "--models", "linear", "--time-budget", "0s"]
    command.main([*arguments, "--store", str(tmp_path), "--out", str(tmp_path / "suite.md")])
    assert "time budget of 0s spent before linear on concrete" in capsys.readouterr().out


def test_cheap_data_sets_come_first_and_slow_models_last() -> None:
    found = [(config.dataset, config.model) for config in plan("housing,concrete", "ebm,nae", threads=2)]
    assert found == [("concrete", "nae"), ("concrete", "ebm"), ("housing", "nae"), ("housing", "ebm")]


def test_a_wrong_name_ends_the_command_with_a_sentence() -> None:
    with pytest.raises(SystemExit, match="Did you mean 'housing'"):
        command.main(["suite", "--datasets", "houses"])


def test_durations_are_read_and_nonsense_is_refused() -> None:
    from benchmarks.durations import read_duration

    assert [read_duration(text) for text in ("90s", "1.5m", "2h")] == [90, 90, 7200]
    with pytest.raises(ConfigError, match="such as 60m; got 'soon'"):
        read_duration("soon")


def test_the_machine_is_described_and_watched() -> None:
    assert "processors" in describe()
    assert peak_memory_mb() > 20
    share = ForeignLoad().since(1.0)
    assert share is None or share >= 0


@pytest.mark.parametrize("name", ["suite", "speed"])
def test_without_tables_no_page_is_touched(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAE_DATA", raising=False)
    page = tmp_path / "page.md"
    page.write_text("figures of another day")
    with pytest.raises(SystemExit, match="NAE_DATA must name the folder"):
        command.main([name, "--out", str(page), "--store", str(tmp_path / "runs")])
    assert page.read_text() == "figures of another day"
    assert not (tmp_path / "runs").exists()
