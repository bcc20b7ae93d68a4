from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.store import Report, RunConfig, Store
from nae.errors import FormatError

CONFIG = RunConfig("suite", "housing", "nae", threads=2)
REPORT = Report("housing", "nae", "done", rmse=0.42, fit_seconds=3.5, versions={"numpy": "2.0"})


def test_a_run_is_a_folder_with_what_was_asked_for_and_what_came_out(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder = store.begin(CONFIG)
    store.finish(CONFIG, REPORT, np.ones(3, dtype=np.float32))
    assert folder == tmp_path / "suite" / "housing" / "nae"
    assert sorted(path.name for path in folder.iterdir()) == ["DONE", "config.toml", "influence.npy", "report.json"]
    assert store.done(CONFIG) == REPORT
    assert list(store.reports("suite")) == [REPORT]
    np.testing.assert_array_equal(store.influences("suite")["housing", "nae"], np.ones(3))


def test_a_run_that_only_began_is_not_done(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.done(CONFIG) is None
    store.begin(CONFIG)
    assert store.done(CONFIG) is None


def test_a_failed_run_is_reported_and_not_done(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.begin(CONFIG)
    failed = Report("housing", "nae", "failed", "ended with status -9")
    store.finish(CONFIG, failed)
    assert store.done(CONFIG) is None
    assert list(store.reports("suite")) == [failed]


def test_another_configuration_is_another_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.begin(CONFIG)
    store.finish(CONFIG, REPORT)
    assert store.done(RunConfig("suite", "housing", "nae", threads=1)) is None


def test_a_run_of_another_machine_counts_whatever_its_threads(tmp_path: Path) -> None:
    store = Store(tmp_path)
    config = replace(CONFIG, threads=14, device="cuda")
    store.begin(config)
    report = replace(REPORT, machine="there")
    store.finish(config, report)
    assert store.done(CONFIG, machine="here") == report
    assert store.done(CONFIG, machine="there") is None
    assert store.done(CONFIG) is None
    assert store.done(replace(CONFIG, seed=1), machine="here") is None


def test_beginning_again_forgets_what_came_out(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.begin(CONFIG)
    store.finish(CONFIG, REPORT)
    store.begin(CONFIG)
    assert list(store.reports("suite")) == []
    assert store.done(CONFIG) is None


def test_configurations_and_reports_survive_their_texts() -> None:
    assert RunConfig.loads(CONFIG.dumps()) == CONFIG
    assert Report.loads(REPORT.dumps()) == REPORT


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(FormatError, match=r"config\.toml must hold .* only; got \['colour'\] as well"):
        RunConfig.loads(CONFIG.dumps() + 'colour = "red"\n')
    with pytest.raises(FormatError, match=r"report\.json must hold the fields of a report only"):
        Report.loads('{"colour": "red"}')


@pytest.mark.parametrize(("load", "is_loaded"), [(None, False), (0.02, False), (0.4, True)])
def test_a_run_counts_as_disturbed_when_others_used_much_of_the_machine(load: float | None, is_loaded: bool) -> None:
    assert Report("housing", "nae", "done", foreign_load=load).is_loaded is is_loaded
