"""Rows as a source of batches."""

import numpy as np
import pytest

from nae.encoding import Cells
from nae.training import TrainingRows
from nae.training.data import own_folds
from tests.training.problems import N_ROWS, Problem


def batches(rows: TrainingRows, n_batches: int, seed: int = 0) -> list[np.ndarray]:
    return list(rows.batches(n_batches, len(rows) // n_batches, np.random.default_rng(seed)))


@pytest.mark.parametrize("n_batches", [1, 4, 6])
def test_batches_are_of_one_size_and_hold_no_row_twice(n_batches: int) -> None:
    parts = batches(Problem().rows(), n_batches)
    assert len(parts) == n_batches
    assert len({len(part) for part in parts}) == 1
    rows = np.concatenate(parts).tolist()
    assert len(rows) == len(set(rows)) > N_ROWS - n_batches


def test_epochs_shuffle_differently_and_repeat_with_the_seed() -> None:
    rows, random = Problem().rows(), np.random.default_rng(0)
    first, second = (np.concatenate(list(rows.batches(4, 16, random))) for _ in range(2))
    again = np.concatenate(batches(rows, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)


def test_a_single_batch_has_all_rows_as_they_stand() -> None:
    (part,) = batches(Problem().rows(), 1)
    assert part.tolist() == list(range(N_ROWS))


def test_some_rows_keep_all_that_belongs_to_them() -> None:
    base = np.arange(N_ROWS, dtype=float)[:, None]
    rows = TrainingRows(Problem().rows().cells, 10 * base, 1 + base[:, 0], 100 * base, fold=np.arange(N_ROWS) % 4)
    some = np.array([5, 2, 2])
    found = rows.take(some)
    assert len(found) == 3
    assert found.target[:, 0].tolist() == [50, 20, 20]
    assert found.weight.tolist() == [6, 3, 3]
    assert found.base is not None
    assert found.base[:, 0].tolist() == [500, 200, 200]
    assert found.fold is not None
    assert found.fold.tolist() == [1, 2, 2]
    assert np.array_equal(found.cells.slot, rows.cells.slot[some])


def test_the_weight_of_a_row_lies_at_both_ends_of_its_cells() -> None:
    cells = Cells(np.array([[0, 4], [1, 4]]), np.array([[0.25, 0.0], [0.0, 0.5]]))
    rows = TrainingRows(cells, np.zeros((2, 1)), np.array([1.0, 3.0]), None)
    assert rows.slot_weight(7).tolist() == [0.75, 3.25, 0, 0, 2.5, 1.5, 0]


def test_rows_that_no_member_holds_out_validate_nothing() -> None:
    rows = Problem().folded(np.arange(N_ROWS) % 4)
    held_out = rows.held_out(2)
    assert held_out is not None
    assert held_out.fold is not None
    assert set(held_out.fold.tolist()) == {0, 1}
    assert len(held_out) == N_ROWS // 2
    assert Problem().rows().held_out(2) is None


def test_members_hold_out_the_folds_in_turn() -> None:
    assert own_folds(3, 2).tolist() == [0, 1, 0]
    assert own_folds(3, None).tolist() == [0, 1, 2]


def test_rows_in_memory_are_whole_and_their_own_window() -> None:
    rows = Problem().rows()
    assert rows.whole() is rows
    assert rows.window is rows
    assert rows.n_moves == 0
