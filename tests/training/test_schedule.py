"""Schedules: how the step size runs, when it falls, and when a training ends."""

import numpy as np
import pytest

from nae.training.history import Epoch
from nae.training.schedule import SCHEDULES, Cosine, Plateau, Progress
from tests.configs import training_config


def progress(number: int, *, best: int, n_steps: int = 0, seconds: float = 1.0, is_judged: bool = True) -> Progress:
    return Progress(Epoch(number, 1.0, 1.0 if is_judged else None, None, seconds), best, n_steps)


def fallen(**config: object) -> Plateau:
    """Return a plateau whose step size began to fall after 100 steps."""
    one = Plateau(training_config(**{"patience": 5, "warmup_steps": 1, "least_steps": 0, **config}), n_batches=1)
    assert one.turns_back(progress(85, best=80, n_steps=100))
    return one


def test_the_step_size_rises_then_falls_to_zero_along_a_cosine() -> None:
    one = Cosine(training_config(max_epochs=25, warmup_steps=10), n_batches=4)
    rates = [one.rate(step) for step in range(101)]
    assert rates[0] == pytest.approx(0.1, rel=0.01)
    assert int(np.argmax(rates)) == 9
    assert np.all(np.diff(rates[10:]) < 0)
    assert rates[-1] == pytest.approx(0, abs=1e-12)


def test_a_cosine_ends_once_patience_does() -> None:
    one = Cosine(training_config(patience=7), n_batches=1)
    assert one.reason_to_stop(progress(16, best=10)) == ""
    assert one.reason_to_stop(progress(17, best=10)) == "no better validation loss for 7 epochs"
    assert one.reason_to_stop(progress(17, best=10, is_judged=False)) == ""
    assert Cosine(training_config(patience=None), n_batches=1).reason_to_stop(progress(99, best=1)) == ""


def test_a_plateau_keeps_the_step_size_until_it_falls_along_a_line() -> None:
    one = Plateau(training_config(patience=5, max_epochs=1000, warmup_steps=4, least_steps=0), n_batches=1)
    assert [one.rate(step) for step in (0, 3, 500)] == [0.25, 1, 1]
    assert not one.turns_back(progress(84, best=80, n_steps=100))
    assert not one.is_falling
    assert one.turns_back(progress(85, best=80, n_steps=100))
    assert one.is_falling
    assert not one.turns_back(progress(86, best=80, n_steps=101))  # once is enough
    assert [one.rate(step) for step in (100, 120, 140, 150)] == [1, 0.5, 0, 0]


def test_a_plateau_ends_where_the_step_size_is_zero() -> None:
    one = fallen(max_epochs=1000)
    assert one.reason_to_stop(progress(100, best=80, n_steps=139)) == ""
    expected = "validation stopped improving, and the step size fell to zero"
    assert one.reason_to_stop(progress(101, best=80, n_steps=140)) == expected


def test_a_plateau_waits_for_its_least_steps() -> None:
    one = Plateau(training_config(patience=5, max_epochs=1000, least_steps=500), n_batches=1)
    assert not one.turns_back(progress(85, best=80, n_steps=499))
    assert one.turns_back(progress(85, best=80, n_steps=500))


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"max_epochs": 120}, "the epochs came to an end"),
        ({"max_epochs": 9999, "time_limit": 12.0}, "time came to an end"),
    ],
    ids=["epochs", "time"],
)
def test_a_plateau_leaves_room_for_the_fall(config: dict[str, object], reason: str) -> None:
    one = Plateau(training_config(patience=None, **config), n_batches=1)
    assert not one.turns_back(progress(79, best=79, n_steps=79, seconds=7.9))
    assert one.turns_back(progress(80, best=80, n_steps=80, seconds=8.0))
    assert one.reason_to_stop(progress(121, best=80, n_steps=120)) == f"{reason}, and the step size fell to zero"


def test_the_fall_takes_no_more_steps_than_there_is_time_for() -> None:
    one = Plateau(training_config(patience=5, max_epochs=9999, time_limit=10.0, cooldown=2.0), n_batches=10)
    assert one.turns_back(progress(85, best=80, n_steps=850, seconds=8.5))
    assert one.rate(850 + 75) == pytest.approx(0.5)  # 150 steps are left, where 1,600 were wanted


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_a_schedule_goes_on_from_its_state(name: str) -> None:
    config = training_config(patience=5, max_epochs=1000, least_steps=0)
    one, other = SCHEDULES[name](config, 1), SCHEDULES[name](config, 1)
    one.turns_back(progress(85, best=80, n_steps=100))
    other.load(one.values())
    assert [other.rate(step) for step in (0, 110, 500)] == [one.rate(step) for step in (0, 110, 500)]
    later = progress(400, best=80, n_steps=400)
    assert other.reason_to_stop(later) == one.reason_to_stop(later) != ""


def test_a_state_that_does_not_say_why_the_step_size_fell_is_read() -> None:
    values = {name: value for name, value in fallen(max_epochs=1000).values().items() if name != "cooling_reason"}
    one = Plateau(training_config(), 1)
    one.load(values)
    assert one.rate(120) == 0.5
