"""Sketches: exact while there are few values, within their stated error from then on, and they merge."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nae.encoding.knots import place_knots
from nae.scanning.sketches import LevelSketch, ValueSketch

PARTS = st.lists(st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=20), min_size=1, max_size=5)


def mixed_values(n_rows: int = 60_000) -> np.ndarray:
    """Return a column of which most is zero and the rest is spread over four magnitudes."""
    random = np.random.default_rng(0)
    return np.where(random.random(n_rows) < 0.6, 0.0, np.exp(random.normal(0, 2, n_rows)))


def knots_of(sketch: ValueSketch, limit: int = 64) -> np.ndarray:
    return place_knots(*sketch.distribution(), limit)


@given(PARTS)
def test_few_values_are_counted_exactly_however_they_come(parts):
    sketch = ValueSketch()
    for part in parts:
        sketch.update(np.array(part))
    values, counts = np.unique(np.concatenate(parts), return_counts=True)
    assert sketch.is_exact
    assert sketch.rank_error == 0
    np.testing.assert_array_equal(sketch.distribution()[0], values)
    np.testing.assert_array_equal(sketch.distribution()[1], counts)


@given(PARTS, PARTS)
def test_merging_is_seeing_both(one, other):
    merged, second, whole = ValueSketch(), ValueSketch(), ValueSketch()
    for part in one:
        merged.update(np.array(part))
    for part in other:
        second.update(np.array(part))
    merged.merge(second)
    whole.update(np.concatenate([*one, *other]))
    for found, expected in zip(merged.distribution(), whole.distribution(), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n_parts", [1, 7])
def test_knots_of_many_values_lie_within_the_stated_rank_error(n_parts):
    values = mixed_values()
    whole, parts = ValueSketch(exact=1000), []
    for part in np.array_split(values, n_parts):
        sketch = ValueSketch(exact=1000)
        for piece in np.array_split(part, 5):
            sketch.update(piece)
        parts.append(sketch)
    for sketch in parts:
        whole.merge(sketch)
    assert not whole.is_exact
    found, exact = knots_of(whole), place_knots(values, np.ones(len(values)), 64)
    assert (found[0], found[-1]) == (values.min(), values.max())
    assert 0.0 in found
    assert abs(len(found) - len(exact)) <= 1
    ranks = np.searchsorted(np.sort(values), [found, exact[: len(found)]]) / len(values)
    # Both ends of a step move by the error, and capping the zeros stretches the rest by at most their share.
    assert np.abs(ranks[0] - ranks[1]).max() < 4 * whole.rank_error


def test_weights_count_as_repetition():
    random = np.random.default_rng(1)
    values = random.normal(size=20_000)
    weights = np.where(values > 0, 3.0, 1.0)
    exact, sketched = ValueSketch(), ValueSketch(exact=100)
    for sketch in (exact, sketched):
        sketch.update(values, weights)
    repeated = np.repeat(values, weights.astype(int))
    np.testing.assert_array_equal(knots_of(exact), place_knots(repeated, np.ones(len(repeated)), 64))
    middle = [np.interp(0.5, np.cumsum(w) / w.sum(), v) for v, w in (sketched.distribution(), exact.distribution())]
    assert middle[0] == pytest.approx(middle[1], abs=0.02)
    assert sketched.distribution()[1].sum() == pytest.approx(weights.sum(), rel=0.01)


def test_fractions_of_a_weight_are_copies_by_chance():
    values, weights = np.arange(50_000.0), np.full(50_000, 0.5)
    sketch = ValueSketch(exact=10)
    sketch.update(values, weights)
    assert sketch.distribution()[1].sum() == pytest.approx(25_000, rel=0.02)


def test_few_levels_are_counted_exactly():
    sketch, other = LevelSketch(), LevelSketch()
    sketch.update(np.array(["a", "b", None, "a"], dtype=object))
    other.update(np.array(["c", "a"], dtype=object), np.array([0.5, 2.0]))
    sketch.merge(other)
    assert sketch.is_exact
    assert sketch.counts() == {"a": 4.0, "b": 1.0, "c": 0.5}


def test_frequent_levels_are_found_among_many():
    random = np.random.default_rng(0)
    rare = np.array([f"id {i}" for i in random.integers(0, 10**9, 3000)], dtype=object)
    keys = np.concatenate([np.repeat(np.array(["often", "sometimes"], dtype=object), [900, 300]), rare])
    first, second = LevelSketch(exact=50), LevelSketch(exact=50)
    random.shuffle(keys)
    first.update(keys[:2000])
    second.update(keys[2000:])
    first.merge(second)
    assert not first.is_exact
    counts = first.counts()
    assert sorted(counts, key=counts.__getitem__, reverse=True)[:2] == ["often", "sometimes"]
    assert counts["often"] == pytest.approx(900, rel=0.05)
