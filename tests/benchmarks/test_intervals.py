"""The benchmark of prediction intervals measures, stores and renders."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.intervals import command
from benchmarks.intervals.measuring import LEVELS, Outcome, Times, measure_ours, measure_times
from benchmarks.intervals.page import render
from benchmarks.intervals.peer import measure_peer
from tests.benchmarks.generated import make_split


def outcome(coverage: float, width: float = 1.0) -> Outcome:
    """Return an outcome that misses every coverage by so much."""
    shares = [level + coverage for level in LEVELS]
    return Outcome(shares, [width] * 3, list(LEVELS), [], n_test=10_000, seconds=1.0)


def test_our_intervals_and_those_of_the_peer_are_measured() -> None:
    pytest.importorskip("lightgbm")
    rows = make_split("regression", n_rows=400)
    ours = measure_ours(rows, 0, 1, {"max_epochs": 5})
    peer = measure_peer(rows, 0, 1, {"n_estimators": 5})
    for found in (ours, peer):
        assert all(np.diff(found.coverage) >= 0)
        assert all(np.diff(found.width) >= 0)
    assert len(ours.measured) == 3


def test_our_sets_are_measured() -> None:
    found = measure_ours(make_split("binary", n_rows=400), 0, 1, {"max_epochs": 5})
    assert all(full >= empty for full, empty in zip(found.not_empty, found.coverage, strict=True))


def test_the_time_of_answers_is_measured() -> None:
    found = measure_times(make_split("binary", n_rows=400), 0, 1, {"n_members": 2})
    assert found.n_rows == 80
    assert found.predicting > 0


def test_the_page_says_what_is_met() -> None:
    found = {
        "concrete": {"ours": [outcome(0.01), outcome(0.0)], "cqr": [outcome(0.0, 2.0)]},
        "ames": {"ours": [outcome(0.03, 2.0)], "cqr": [outcome(0.0)]},
    }
    page = render(found, {"ames": Times(2.0, 2.5, 100)}, n_splits=2)
    assert "met in 3 of 6 cases; missed: Ames at 80 %, Ames at 90 %, Ames at 95 %." in page
    assert "no wider than CQR on 1 at 80 %, 1 at 90 %, 1 at 95 %" in page
    assert "1.25 times the time of predicting" in page
    assert "**0.830 ± 0.004**" in page


def test_a_run_that_is_stored_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def measured(_rows: object, seed: int, *_: object) -> Outcome:
        calls.append(seed)
        return outcome(0.0)

    monkeypatch.setattr(command, "load", lambda *_, **__: None)
    monkeypatch.setattr(command, "MAKERS", {"ours": measured})
    words = ["intervals", "--datasets", "concrete", "--makers", "ours", "--store", f"{tmp_path / 'runs.jsonl'}"]
    words += ["--out", f"{tmp_path / 'page.md'}"]
    main([*words, "--runs", "2"])
    main([*words, "--splits", "3"])
    assert calls == [0, 1, 2]
    assert "| Concrete | 3 |" in (tmp_path / "page.md").read_text()
