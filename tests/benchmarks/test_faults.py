"""What is killed half-way loses nothing, and a trial notices when something does."""

import sys
from pathlib import Path

import pytest

from benchmarks.faults.command import render, share_out
from benchmarks.faults.moments import AfterCall, AtByte
from benchmarks.faults.subjects import SUBJECTS, Careless
from benchmarks.faults.trial import Found, attack, make_reference, try_moment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are killed the Linux way")


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_nothing_is_lost(name: str) -> None:
    found = attack(SUBJECTS[name](), n_kills=4, seed=1)
    assert (found.n_kills, found.losses) == (4, ())


class Untidy(Careless):
    """Leaves another temporary file behind whenever it is killed."""

    def work(self, place: Path) -> None:
        draft = place / f"draft-{len(list(place.iterdir()))}"
        draft.write_bytes(b"new")
        draft.replace(place / "out")


@pytest.mark.slow
def test_a_careless_writer_is_caught() -> None:
    subject = Careless()
    reference = make_reference(subject)
    for moment in (AfterCall(1), AtByte(1000)):
        outcome = try_moment(subject, reference, moment)
        assert outcome is not None
        assert "out is neither the older file nor the whole new one" in outcome[0][0]


@pytest.mark.slow
def test_files_that_are_left_behind_are_losses() -> None:
    subject = Untidy()
    outcome = try_moment(subject, make_reference(subject), AfterCall(1))
    assert outcome is not None
    assert any("draft-1 is left in the end" in loss for loss in outcome[0])


@pytest.mark.slow
def test_a_moment_after_the_end_is_no_kill() -> None:
    subject = Careless()
    assert try_moment(subject, make_reference(subject), AfterCall(1000)) is None


def test_kills_are_shared_out_and_none_is_forgotten() -> None:
    assert share_out(200, ["save", "checkpoints", "streaming", "predict", "ray"])["ray"] == 4
    assert sum(share_out(37, ["save", "predict"]).values()) == 37
    with pytest.raises(SystemExit, match="Subjects must be some of"):
        share_out(10, ["saev"])


def test_the_page_counts_kills_and_names_losses() -> None:
    page = render([Found("save", 9, 2, ("a is gone",), 0.1)], Found("careless", 20, 0, ("x",) * 19, 0.1))
    assert "**9 kills, 1 losses.**" in page
    assert "- save: a is gone" in page
    assert "in 19 of\n20 kills" in page
