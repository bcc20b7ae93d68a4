"""Forms: whatever the raw numbers are, the shaped ones keep the promise; and what forms leave alone stays."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import isotonic_regression

from nae.network import Forms
from nae.network.forms import ascending, positive
from nae.tables.isotonic import isotonic

N_SLOTS, N_EXPERTS, N_OUTPUTS, N_MEMBERS = 7, 3, 2, 2
N_ORDERED = 5
SHAPE = (N_SLOTS, N_EXPERTS, N_OUTPUTS, N_MEMBERS)
PLACES = np.array([0.0, 0.05, 0.3, 0.9, 1.0, 0.0, 0.0])
RAW = arrays(np.float64, SHAPE, elements=st.floats(-5, 5))
SIGN = st.sampled_from([-1, 1])


def forms_of(**given: Any) -> Forms:
    """Return the forms of one feature among two."""
    plain: dict[str, Any] = {
        "n_ordered": np.array([N_ORDERED, 1]),
        "places": np.stack([PLACES, np.zeros(N_SLOTS)]),
        "rises": np.zeros(2, dtype=int),
        "bends": np.zeros(2, dtype=int),
        "caps": np.full((2, N_OUTPUTS), np.inf),
        "is_single": np.zeros(2, dtype=bool),
        "is_sorted": np.zeros(2, dtype=bool),
        "sorts_outputs": False,
        "leads": np.zeros(2, dtype=bool),
        "allows": np.ones((1, 2, 2), dtype=bool),
        "n_leading": 0,
        "sharpness": 0.3,
    }
    first = {
        name: np.array([value, *plain[name][1:]])
        for name, value in given.items()
        if np.ndim(plain[name]) > np.ndim(value) == 0
    }
    return Forms(**plain | {name: first.get(name, value) for name, value in given.items()})


@settings(max_examples=50)
@given(raw=RAW, way=SIGN)
def test_what_rises_never_falls(raw: np.ndarray, way: int) -> None:
    shaped = forms_of(rises=way).shape_experts(0, raw)
    assert (way * np.diff(shaped[:N_ORDERED], axis=0) > 0).all()
    np.testing.assert_array_equal(shaped[N_ORDERED:], raw[N_ORDERED:])  # missing and unseen have no order
    np.testing.assert_allclose(shaped[N_ORDERED // 2], raw[N_ORDERED // 2])


def slopes(shaped: np.ndarray) -> np.ndarray:
    widths = np.diff(PLACES[:N_ORDERED]).reshape(-1, 1, 1, 1)
    return np.diff(shaped[:N_ORDERED], axis=0) / widths


@settings(max_examples=50)
@given(raw=RAW, bend=SIGN, rise=st.sampled_from([-1, 0, 1]))
def test_what_bends_has_slopes_of_one_direction(raw: np.ndarray, bend: int, rise: int) -> None:
    shaped = forms_of(bends=bend, rises=rise).shape_experts(0, raw)
    found = slopes(shaped)
    assert (bend * np.diff(found, axis=0) > -1e-9).all()
    assert (rise * found > -1e-9).all()
    np.testing.assert_allclose(shaped[:N_ORDERED].mean(axis=0), raw[:N_ORDERED].mean(axis=0), atol=1e-9)
    np.testing.assert_array_equal(shaped[N_ORDERED:], raw[N_ORDERED:])


@settings(max_examples=50)
@given(raw=RAW)
def test_a_curve_that_bends_already_stays(raw: np.ndarray) -> None:
    once = forms_of(bends=1).shape_experts(0, raw)
    np.testing.assert_allclose(forms_of(bends=1).shape_experts(0, once), once, atol=1e-9)


@settings(max_examples=50)
@given(steps=arrays(float, 9, elements=st.floats(-5, 5)), seed=st.integers(0, 99))
def test_ascending_slopes_are_the_nearest_ones(steps: np.ndarray, seed: int) -> None:
    widths = np.exp(np.random.default_rng(seed).normal(scale=2, size=9))  # as knots of a skewed feature lie
    found = ascending(steps, widths)
    known = isotonic_regression(steps / widths, weights=widths**2)
    np.testing.assert_allclose(found * widths, known.x * widths, atol=1e-9)


def test_knots_at_one_place_have_no_step() -> None:
    steps, widths = np.array([1.0, 3.0, -1.0, 2.0]), np.array([0.5, 0.0, 0.25, 0.25])
    np.testing.assert_allclose(ascending(steps, widths) * widths, [0.4, 0.0, 0.2, 2.0])
    np.testing.assert_array_equal(ascending(steps, np.zeros(4)), np.zeros(4))


@settings(max_examples=50)
@given(raw=RAW, cap=st.sampled_from([1e-3, 0.5, 1.0, 20.0]))
def test_no_expert_leaves_its_cap(raw: np.ndarray, cap: float) -> None:
    shaped = forms_of(caps=np.array([[cap, cap], [np.inf, np.inf]])).shape_experts(0, raw)
    assert (np.abs(shaped) < cap).all()
    assert (np.sign(shaped) == np.sign(raw)).all()


@settings(max_examples=50)
@given(raw=RAW, way=SIGN)
def test_sorting_keeps_what_rises(raw: np.ndarray, way: int) -> None:
    shaped = forms_of(rises=way, is_sorted=True, sorts_outputs=True).shape_experts(0, raw)
    assert (np.diff(shaped, axis=1) >= 0).all()
    assert (np.diff(shaped, axis=2) >= 0).all()
    assert (way * np.diff(shaped[:N_ORDERED], axis=0) > 0).all()


@settings(max_examples=50)
@given(terms=arrays(np.float64, (N_SLOTS, N_EXPERTS * 2, N_MEMBERS), elements=st.floats(-5, 5)), way=SIGN)
def test_logits_of_a_leader_rise_more_from_expert_to_expert(terms: np.ndarray, way: int) -> None:
    shaped = forms_of(rises=way, leads=True).shape_terms(0, terms, n_experts=N_EXPERTS)
    apart = np.diff(shaped.reshape(N_SLOTS, N_EXPERTS, 2, N_MEMBERS), axis=1)
    assert (way * np.diff(apart[:N_ORDERED], axis=0) > 0).all()


@settings(max_examples=50)
@given(
    terms=arrays(np.float64, (N_SLOTS, 6, N_MEMBERS), elements=st.floats(-5, 5)),
    mix=arrays(np.float64, (N_MEMBERS, 6, N_EXPERTS * 2), elements=st.floats(-5, 5)),
    way=SIGN,
    is_deep=st.booleans(),
)
def test_behind_a_matrix_logits_of_a_leader_rise_more_from_expert_to_expert(
    terms: np.ndarray, mix: np.ndarray, way: int, is_deep: bool
) -> None:
    forms = forms_of(rises=way, leads=True, n_leading=4)
    fed, matrix = forms.shape_terms(0, terms, n_experts=N_EXPERTS), forms.shape_mix(mix, n_experts=N_EXPERTS)
    assert not fed[:, 4:].any()
    summed = np.moveaxis(fed, -1, 0) + 0.5  # what other features add
    logits = (np.maximum(summed, 0) if is_deep else summed) @ matrix
    apart = np.diff(logits.reshape(N_MEMBERS, N_SLOTS, N_EXPERTS, 2), axis=2)
    assert (way * np.diff(apart[:, :N_ORDERED], axis=1) > -1e-9).all()
    np.testing.assert_array_equal(matrix[:, 4:], mix[:, 4:])


def test_single_experts_are_their_mean() -> None:
    raw = np.random.default_rng(0).normal(size=SHAPE)
    shaped = forms_of(is_single=True).shape_experts(0, raw)
    np.testing.assert_allclose(shaped, np.broadcast_to(raw.mean(axis=1, keepdims=True), SHAPE))


def test_a_feature_changes_only_those_that_it_may() -> None:
    terms = np.random.default_rng(0).normal(size=(N_SLOTS, N_EXPERTS * 2, N_MEMBERS))
    allows = np.ones((1, 2, 2), dtype=bool)
    allows[0, 0, 1] = False
    shaped = forms_of(allows=allows).shape_terms(0, terms, n_experts=N_EXPERTS)
    np.testing.assert_array_equal(shaped[:, 0::2], terms[:, 0::2])
    assert not shaped[:, 1::2].any()


@pytest.mark.parametrize("given", [{"caps": np.array([[0.5, 3.0], [np.inf, np.inf]])}, {"bends": 1}], ids=str)
def test_raw_numbers_of_a_start_come_back_as_the_start(given: dict[str, Any]) -> None:
    forms = replace(forms_of(**given), sharpness=1e-9)
    start = np.zeros((2, N_SLOTS, N_OUTPUTS, N_MEMBERS))
    start[0] = 0.4 * (PLACES**2)[:, None, None]  # convex, and below every cap
    raw = np.repeat(forms.to_raw(start)[0][:, None], N_EXPERTS, axis=1)
    np.testing.assert_allclose(forms.shape_experts(0, raw)[:, 0], start[0], atol=1e-6)


@settings(max_examples=30)
@given(start=arrays(np.float64, (N_SLOTS, N_OUTPUTS, N_MEMBERS), elements=st.floats(-5, 5)), way=SIGN)
def test_a_start_that_falls_where_it_must_rise_comes_back_as_the_nearest_one_that_never_falls(
    start: np.ndarray, way: int
) -> None:
    forms = replace(forms_of(rises=way), sharpness=1e-9)
    raw = forms.to_raw(np.stack([start, start]))
    shaped = forms.shape_experts(0, np.repeat(raw[0][:, None], N_EXPERTS, axis=1))[:, 0]
    wanted = way * isotonic(way * start[:N_ORDERED], np.ones(N_ORDERED))
    np.testing.assert_allclose(shaped[:N_ORDERED], wanted, atol=1e-6)
    np.testing.assert_array_equal(shaped[N_ORDERED:], start[N_ORDERED:])
    np.testing.assert_array_equal(raw[1], start)


def test_the_corner_is_soft_and_positive() -> None:
    values = np.array([-100.0, -1.0, 0.0, 1.0, 100.0])
    np.testing.assert_allclose(positive(values, 0.0), np.maximum(values, 0))
    assert (positive(values, 0.1) > 0).all()
    assert positive(np.zeros(1), 0.1) == pytest.approx(0.05)
