"""Knots: every distinct value when few, equal parts of capped counts otherwise."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays

from nae.encoding.knots import place_knots

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.integers(1, 200).flatmap(lambda n: arrays(np.float64, n, elements=FINITE)), st.integers(2, 20), st.data())
def test_knots_ascend_are_among_the_values_and_reach_both_ends(values, limit, data):
    weights = data.draw(arrays(np.float64, len(values), elements=st.sampled_from([1.0, 2.0, 1e-9, 1e12, 0.3])))
    knots = place_knots(values, weights, limit)
    assert len(knots) <= limit
    assert np.all(knots[1:] > knots[:-1])
    assert np.isin(knots, values).all()
    assert (knots[0], knots[-1]) == (values.min(), values.max())


def test_few_values_are_all_knots():
    np.testing.assert_array_equal(place_knots(np.array([3.0, 1.0, 1.0, 2.0]), np.ones(4), 3), [1, 2, 3])


def test_many_even_values_are_cut_into_equal_parts():
    knots = place_knots(np.arange(1001.0), np.ones(1001), 11)
    np.testing.assert_allclose(knots, np.linspace(0, 1000, 11), atol=2)


@pytest.mark.parametrize("where", [0.0, 400.0, 900.0])
def test_a_value_that_fills_the_column_leaves_the_knots_to_the_others(where):
    others = np.setdiff1d(np.arange(801.0), [where])
    values = np.concatenate([np.full(9200, where), others])
    knots = place_knots(values, np.ones(len(values)), 64)
    assert len(knots) >= 32  # plain quantiles would leave six
    assert where in knots


def test_heavy_rows_draw_knots_towards_them():
    values = np.arange(1000.0)
    heavy = np.where(values < 500, 9.0, 1.0)
    assert (place_knots(values, heavy, 20) < 500).sum() > (place_knots(values, np.ones(1000), 20) < 500).sum()


@pytest.mark.parametrize("where", [0, 500, 999])
def test_a_row_that_outweighs_all_others_does_not_take_all_knots(where):
    weights = np.ones(1000)
    weights[where] = 1e300
    knots = place_knots(np.arange(1000.0), weights, 8)
    assert len(knots) >= 2
    assert np.isfinite(knots).all()
