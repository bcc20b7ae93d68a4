"""Fuzzing: short slices find nothing, and a planted defect is found, in every target."""

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.fuzz.targets import TARGETS, Violation
from benchmarks.fuzz.worker import try_once
from nae.cli import reading
from nae.tables import archive

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers at the edge of floats overflow


def attempts(name: str, n: int, folder: Path, *, seed: int = 0) -> set[str]:
    """Make the first attempts of a target in this process and return what came of them."""
    target = TARGETS[name]
    attempt = target.prepare(folder)
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
