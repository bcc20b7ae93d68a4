"""Fuzzing: short slices find nothing, and a planted defect is found, in every target."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.fuzz import command
from benchmarks.fuzz.targets import TARGETS, Violation
from benchmarks.fuzz.worker import Share, try_once
from nae.cli import reading
from nae.serving import responder
from nae.tables import TableModel, archive
from tests.agreement import plain

pytestmark = pytest.mark.filterwarnings("ignore")  # as in a run: inputs are odd, and numbers overflow


def attempts(name: str, n: int, folder: Path, *, seed: int = 0) -> set[str]:
    """Make the first attempts of a target in this process and return what came of them."""
    target = TARGETS[name]
    with ExitStack() as closing:
        attempt = target.prepare(folder, closing)
        return {try_once(target, attempt, seed=seed, number=number) for number in range(n)}


def test_changed_files_are_refused_or_work(tmp_path: Path) -> None:
    found = attempts("files", 400, tmp_path)
    assert {"broken, refused", "forged, refused", "forged, a model that works"} <= found


def test_damaged_tables_are_read_or_refused(tmp_path: Path) -> None:
    assert {"read", "refused", "streamed, refused"} <= attempts("readers", 100, tmp_path)


def test_a_reader_that_lets_errors_pass_is_a_violation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_checked", lambda table, name: table)
    with pytest.raises(Violation, match="no rows, no columns"):
        attempts("readers", 400, tmp_path)


def test_files_whose_checksums_are_not_looked_at_are_a_violation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "_digest", lambda content: "0" * 64)
    with pytest.raises(Violation):
        attempts("files", 200, tmp_path)


def test_a_loader_that_stumbles_is_a_violation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "check_header", lambda header: None)
    with pytest.raises(Violation, match="Error from"):
        attempts("files", 200, tmp_path)


def test_wild_tables_are_fitted_or_refused(tmp_path: Path) -> None:
    assert {"fitted, numbers", "fitted, classes", "refused"} <= attempts("tables", 12, tmp_path)


def test_a_model_that_breaks_a_law_is_a_violation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scored = TableModel.decision_function
    monkeypatch.setattr(TableModel, "decision_function", lambda *words, **more: scored(*words, **more) + 1.0)
    with pytest.raises(Violation, match="do not make up the score"):
        attempts("tables", 12, tmp_path)


def test_evaluators_agree_on_random_models(tmp_path: Path) -> None:
    assert sum(outcome.endswith("agrees") for outcome in attempts("agreement", 8, tmp_path)) > 2


def test_an_evaluator_that_says_something_else_is_a_violation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "_predict", lambda link, score: [one + 1.0 for one in score])
    with pytest.raises(Violation, match="differs"):
        attempts("agreement", 40, tmp_path)


def test_requests_are_answered(tmp_path: Path) -> None:
    assert {"answered with 200", "answered with 422", "forged, not served"} <= attempts("server", 60, tmp_path)


def test_a_server_that_stumbles_is_a_violation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responder, "predict_rows", lambda model, cells: {}["predictions"])
    with pytest.raises(Violation, match="KeyError"):
        attempts("server", 60, tmp_path)


@pytest.mark.slow
def test_a_minute_of_fuzzing_finds_nothing(tmp_path: Path) -> None:
    words = ["fuzz", "--seconds", "60", "--seed", "0", "--keep", str(tmp_path)]
    done = subprocess.run([sys.executable, "-m", "benchmarks", *words], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count(" 0 violations") == len(TARGETS)


def test_a_process_that_dies_is_a_violation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "work", _die)
    with pytest.raises(SystemExit):
        main(["fuzz", "--targets", "files", "--count", "9", "--record", str(tmp_path / "fuzz.json")])
    run = json.loads((tmp_path / "fuzz.json").read_text())["runs"][0]
    assert (run["tries"], len(run["violations"])) == (4, 1)
    assert (
        "the process ended with 7 (python -m benchmarks fuzz --targets files --seed 0 --first 3" in run["violations"][0]
    )


def _die(share: Share, at: Any, pipe: Connection) -> None:
    at.value = share.first + 3
    os._exit(7)


def test_violations_are_repeated_kept_and_recorded(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "fuzz.json"
    words = ["fuzz", "--targets", "files", "--count", "40", "--record", str(record), "--keep", str(tmp_path / "kept")]
    main(words)
    main([*words, "--jobs", "2", "--seed", "1"])
    main(words)  # the same inputs again are counted once
    runs = json.loads(record.read_text())["runs"]
    assert [(run["seed"], run["tries"], run["violations"]) for run in runs] == [(0, 40, []), (1, 40, [])]
    assert "| files | 80 | 0 |" in record.with_suffix(".md").read_text()
    assert not (tmp_path / "kept").exists()
    assert "files: 40 tries, 0 violations" in capfd.readouterr().out


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"No target is called 'file'\. Did you mean 'files'"):
        main(["fuzz", "--targets", "file"])
