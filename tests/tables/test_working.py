"""Chunks of rows are worked on by threads, and come back in order."""

import threading
import time

import numpy as np
import pytest

import nae
from nae.tables.working import in_turn, working_threads


@pytest.mark.parametrize("n", [1, 2, 5])
def test_results_come_in_the_order_of_the_parts(n: int) -> None:
    def work(part: int) -> int:
        time.sleep(0.001 * (part % 3))  # later parts may be done before earlier ones
        return part**2

    with working_threads(n):
        assert list(in_turn(work, range(40))) == [part**2 for part in range(40)]


def test_the_caller_works_alone_outside_of_a_block() -> None:
    with working_threads(3):
        pass
    assert set(in_turn(lambda _: threading.get_ident(), range(5))) == {threading.get_ident()}
    with working_threads(3):
        assert threading.get_ident() not in set(in_turn(lambda _: threading.get_ident(), range(5)))


def test_only_a_few_parts_are_worked_on_ahead() -> None:
    done: list[int] = []
    with working_threads(2):
        next(in_turn(done.append, range(1000)))
        assert len(done) <= 6


def test_an_error_in_a_thread_reaches_the_caller() -> None:
    def work(part: int) -> None:
        raise ValueError(f"part {part}")

    with working_threads(2), pytest.raises(ValueError, match="part 0"):
        list(in_turn(work, range(3)))


def test_any_number_of_threads_makes_the_same_model() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 4))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    models = [nae.NAERegressor(n_jobs=n, max_epochs=2, n_members=2, random_state=0).fit(X, y).model_ for n in (1, 3)]
    for name in ("experts", "intercept"):
        np.testing.assert_array_equal(*(getattr(model, name) for model in models))
    for name in ("quantiles", "influence", "agreement", "variance"):
        np.testing.assert_array_equal(*(getattr(model.statistics, name) for model in models))
