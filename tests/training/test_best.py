"""The best epoch: the least validation loss among those that are additive enough."""

import math

import numpy as np

from nae.training.best import Best
from nae.training.history import Epoch


def kept(best: Best, *offers: tuple[float | None, float | None]) -> tuple[list[int], int | None]:
    """Return the epochs that were the best when they came, and the one whose weights are kept."""
    found = []
    for number, (validation, additivity) in enumerate(offers, start=1):
        epoch = Epoch(number, 1.0, validation, additivity, 0.0)
        if best.offer(epoch, lambda number=number: {"epoch": np.array(number)}):
            found.append(number)
    return found, None if best.snapshot is None else int(best.snapshot["epoch"])


def test_the_least_validation_loss_is_kept() -> None:
    losses = [(3.0, None), (2.0, None), (None, None), (2.5, None), (1.0, None), (math.nan, None)]
    assert kept(Best(target=None, is_judged=True), *losses) == ([1, 2, 5], 5)


def test_so_small_a_gain_as_is_no_progress_does_not_count() -> None:
    losses = [(3.0, None), (2.95, None), (2.85, None)]
    assert kept(Best(target=None, is_judged=True, least_gain=0.1), *losses) == ([1, 3], 3)


def test_what_nobody_judges_is_best_at_the_end_and_not_kept() -> None:
    assert kept(Best(target=None, is_judged=False), (None, None), (None, None)) == ([1, 2], None)


def test_epochs_short_of_the_additivity_asked_for_do_not_count_once_there_are_others() -> None:
    epochs = [(1.0, 0.5), (2.0, 0.6), (5.0, 0.89), (1.0, 0.5), (4.0, 0.95), (6.0, 0.99)]
    assert kept(Best(target=0.9, is_judged=True), *epochs) == ([1, 2, 3, 5], 5)
