"""What the paper's pictures show, as numbers with limits; and the clock of its table of cost."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.paper import timing
from benchmarks.paper.claims import Claim, claims_table, judge_claim, largest
from benchmarks.paper.costs import timed_runs
from benchmarks.paper.experiment import Experiment, Results, Section
from benchmarks.paper.pages import Places, write_pages
from benchmarks.paper.readings import coast_over_inland, rooms
from benchmarks.paper.runs import PAPER
from benchmarks.paper.store import RunStore
from benchmarks.paper.timing import Clock, time_training
from nae.explanation import Axis, InteractionExplanation


def _map(contributions: np.ndarray, *numbers: np.ndarray, support: np.ndarray | None = None) -> InteractionExplanation:
    names = ("Longitude", "Latitude", "AveRooms")
    axes = tuple(
        Axis(name, "number", tuple(map(str, each)), each, np.full(len(each), 1 / len(each)))
        for name, each in zip(names, numbers, strict=False)
    )
    return InteractionExplanation(axes, ("y",), (), "identity", "mean", True, "", contributions, support)


@pytest.mark.parametrize(
    ("value", "verdict"), [(0.09, "not"), (0.1, "reproduced"), (0.3, "reproduced"), (0.31, "not"), (None, "not run")]
)
def test_a_claim_is_true_within_its_limits(value: float | None, verdict: str) -> None:
    assert judge_claim(Claim("", None, least=0.1, most=0.3), value) == verdict


def test_claims_are_shown_with_limits_verdicts_and_reasons() -> None:
    claims = [
        Claim("RMSE", 0.104, 0.128, most=0.11, why="too few"),
        Claim("rise", -0.397, least=0.0),
        Claim("error", 3e-16, most=1e-12),
    ]
    text = claims_table(claims)
    assert "| RMSE | at most 0.110 | 0.104 | reproduced | 0.128 | **not** | too few |" in text
    assert "| rise | at least 0.000 | −0.397 | **not** | – | – |  |" in text
    assert "| error | at most 1e−12 | 3e−16 | reproduced |" in text


def test_the_largest_of_numbers_that_are_not_all_there_is_unknown() -> None:
    assert largest([0.1, 0.3]) == 0.3
    assert largest([0.1, None]) is None
    assert largest([]) is None


def test_claims_count_on_the_page(tmp_path: Path) -> None:
    claims = [Claim("a", 1.0, 0.0, least=0.5), Claim("b", 0.0, least=0.5)]
    experiment = Experiment("x", "X", "Figure", tuple, lambda _: Section(["text"], claims=claims))
    write_pages([experiment], Results({}), Places(tmp_path, tmp_path / "page.md"))
    content = json.loads((tmp_path / "x.json").read_text())
    assert content["verdicts"] == {"paper mode": {"reproduced": 1, "not": 1}, "default": {"not": 1}}
    assert content["claims"][1]["verdict of default"] == "not run"


def test_a_coast_is_compared_with_a_place_inland() -> None:
    longitude, latitude = np.array([-121.0, -119.75]), np.array([34.42, 36.75])
    contributions = np.zeros((2, 2, 2, 1))
    contributions[0, 1, 0] = 1.5  # Santa Barbara
    assert coast_over_inland(_map(contributions, longitude, latitude)) == pytest.approx(1.5)
    assert coast_over_inland(None) is None


def test_a_change_that_is_a_sum_over_the_axes_needs_no_three() -> None:
    x, y = np.linspace(-119, -117.4, 6), np.linspace(33.5, 34.5, 5)
    support = np.ones((6, 5, 2))
    change = {"sum": x[:, None] + y[None, :], "product": (x[:, None] + 118.2) * (y[None, :] - 34.0)}
    shares = {}
    for name, values in change.items():
        contributions = np.zeros((3, 6, 5, 2, 1))
        contributions[2, :, :, 1, 0] = values
        found = rooms(_map(contributions, x, y, np.array([4.0, 6.0]), support=support))
        assert found is not None
        shares[name] = found[1]
    assert shares["sum"] == pytest.approx(0.0, abs=1e-9)
    assert shares["product"] > 0.9


def test_a_clock_stands_in_for_epochs_that_are_not_run() -> None:
    clock = Clock(100, limit=10.0)
    for epoch in range(1, 100):
        if clock(seconds=5.0 + 2.0 * epoch):  # five seconds before the first, then two each
            break
    assert len(clock.marks) == 6
    assert clock.seconds == pytest.approx(5.0 + 200.0)


def test_a_clock_that_saw_every_epoch_adds_nothing() -> None:
    clock = Clock(2)
    assert [clock(seconds=1.0), clock(seconds=3.0)] == [False, True]
    assert clock.seconds == 3.0


def test_networks_of_peers_are_timed_like_ours() -> None:
    [run] = [run for run in timed_runs() if run.model == "na2m" and dict(run.options)["n_features"] == 32]
    report = time_training(run.smoke(), device="cpu")
    assert report.n_epochs == 2
    assert report.fit_seconds is not None
    assert report.fit_seconds > 0
    assert (report.n_parameters or 0) > 10 * 64 * 64  # four features and six pairs


def test_what_has_been_timed_is_not_timed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = [run for run in timed_runs() if run.model == PAPER][:1]
    monkeypatch.setattr("benchmarks.paper.costs.timed_runs", lambda: first)
    timing.main([str(tmp_path), "--smoke"])
    assert "2 epochs run" in capsys.readouterr().out
    assert RunStore(tmp_path).is_done(first[0].smoke())
    timing.main([str(tmp_path), "--smoke"])
    assert capsys.readouterr().out == ""
