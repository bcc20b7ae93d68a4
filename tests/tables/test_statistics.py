"""Aggregates of training rows, against sums written out."""

import numpy as np
import pytest

from nae.encoding import Cells
from nae.tables.statistics import QUANTILES, slot_means, slot_quantiles, slot_weights


@pytest.fixture
def cells() -> Cells:
    """Return four rows of two features: three slots, then two."""
    slot = np.array([[0, 3], [0, 4], [1, 3], [2, 3]])
    fraction = np.array([[0.0, 0.0], [0.25, 0.0], [0.5, 0.5], [0.0, 0.0]])
    return Cells(slot, fraction)


WEIGHTS = np.array([1.0, 2.0, 4.0, 8.0])
N_SLOTS = 5


def test_weight_is_shared_between_the_ends_of_a_cell(cells):
    found = slot_weights(cells, WEIGHTS, N_SLOTS)
    np.testing.assert_allclose(found, [1 + 1.5, 0.5 + 2, 2 + 8, 1 + 2 + 8, 2 + 2])
    assert found.sum() == pytest.approx(2 * WEIGHTS.sum())


def test_means_at_slots_weigh_rows_and_fractions(cells):
    values = np.arange(8.0).reshape(4, 2, 1)
    found = slot_means(cells, WEIGHTS, values, N_SLOTS)[:, 0]
    first, second = values[:, 0, 0], values[:, 1, 0]
    expected = [
        (1 * first[0] + 1.5 * first[1]) / 2.5,
        (0.5 * first[1] + 2 * first[2]) / 2.5,
        (2 * first[2] + 8 * first[3]) / 10,
        (1 * second[0] + 2 * second[2] + 8 * second[3]) / 11,
        (2 * second[1] + 2 * second[2]) / 4,
    ]
    np.testing.assert_allclose(found, expected)


def test_slots_without_rows_have_no_weight_and_mean_zero():
    cells = Cells(np.array([[0]]), np.array([[0.0]]))
    assert slot_weights(cells, np.ones(1), 3).tolist() == [1, 0, 0]
    assert slot_means(cells, np.ones(1), np.full((1, 1, 2), 7.0), 3).tolist() == [[7, 7], [0, 0], [0, 0]]


def test_quantiles_are_those_of_repeated_values():
    random = np.random.default_rng(0)
    slot = random.integers(0, 3, (200, 1))
    values = random.normal(size=(200, 1, 1))
    weights = random.integers(1, 4, 200).astype(float)
    found = slot_quantiles(Cells(slot, np.zeros((200, 1))), weights, values, 4)
    for one in range(3):
        own = slot[:, 0] == one
        repeated = np.repeat(values[own, 0, 0], weights[own].astype(int))
        expected = np.quantile(repeated, QUANTILES, method="inverted_cdf")
        np.testing.assert_allclose(found[:, one, 0], expected)
    assert not found[:, 3].any()
