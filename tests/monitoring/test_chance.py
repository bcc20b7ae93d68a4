"""Tails of distributions agree with scipy's, and indices with their definition."""

import numpy as np
import pytest
from scipy.stats import chi2, norm

from nae.encoding import Category, Number
from nae.monitoring.bins import bins_of, counts_in
from nae.monitoring.checks import check_mean, check_share, check_shares, stability_index, worst
from nae.quality.chance import chi_square_critical, chi_square_tail, likelihood_ratio, normal_tails


@pytest.mark.parametrize("freedom", [1, 2, 3, 10, 19])
def test_the_tail_of_chi_square_is_that_of_scipy(freedom: int) -> None:
    for value in (0.0, 0.3, 4.0, 30.0, 400.0):
        assert chi_square_tail(value, freedom) == pytest.approx(chi2.sf(value, freedom), rel=1e-9, abs=1e-300)
    assert chi_square_tail(chi_square_critical(1e-4, freedom), freedom) == pytest.approx(1e-4)
    assert chi_square_tail(5000.0, freedom) == 0


def test_the_tails_of_the_normal_are_those_of_scipy() -> None:
    assert normal_tails(-2.5) == pytest.approx(2 * norm.sf(2.5))


def test_the_likelihood_ratio_is_zero_for_equal_shares_and_that_of_scipy_otherwise() -> None:
    from scipy.stats import chi2_contingency

    now, then = np.array([8.0, 0.0, 12.0]), np.array([30.0, 5.0, 65.0])
    expected = chi2_contingency([now, then], correction=False, lambda_="log-likelihood").statistic
    assert likelihood_ratio(now, then) == pytest.approx(expected)
    assert likelihood_ratio(now, 3 * now) == pytest.approx(0, abs=1e-12)


def test_the_index_is_symmetric_and_zero_for_equal_shares() -> None:
    now, then = np.array([500.0, 1500.0]), np.array([1000.0, 1000.0])
    expected = 0.25 * np.log(2) + 0.25 * np.log(1.5)
    assert stability_index(now, then) == pytest.approx(expected, rel=0.01)
    assert stability_index(now, then) == pytest.approx(stability_index(then, now))
    assert stability_index(then, then) == 0


def test_the_index_expected_by_chance_is_the_mean_over_samples() -> None:
    random, shares = np.random.default_rng(0), np.full(10, 0.1)
    found = [
        check_shares(random.multinomial(300, shares).astype(float), random.multinomial(2000, shares).astype(float))
        for _ in range(200)
    ]
    assert np.mean([one.size for one in found]) == pytest.approx(found[0].chance, rel=0.1)
    assert np.mean([one.p_value < 0.05 for one in found]) <= 0.05


def test_a_share_that_only_new_rows_have_is_told_from_chance() -> None:
    rare = check_share("missing", 0.001, 0.0, n_now=1000, n_then=5000)
    common = check_share("missing", 0.2, 0.0, n_now=1000, n_then=5000)
    assert rare.p_value > 0.05
    assert common.p_value < 1e-20
    assert common.verdict(0.2, 0.01) == "drifted"


def test_means_are_compared_in_units_of_the_score() -> None:
    found = check_mean("score", 3.0, 2.0, error=0.1, unit=4.0)
    assert (found.size, found.p_value) == (0.25, pytest.approx(normal_tails(10)))
    assert check_mean("score", 2.0, 2.0, error=0.0, unit=1.0).p_value == 1
    assert check_mean("score", 3.0, 2.0, error=0.0, unit=1.0).verdict(0.2, 0.01) == "drifted"
    assert worst(["moved", "within chance", "drifted"]) == "drifted"


def test_bins_hold_about_equal_weight_and_are_fewer_for_few_rows() -> None:
    feature = Number("x", np.arange(100.0))
    counts = counts_in(bins_of(feature, np.ones(100), 1000), np.ones(100), 50)
    np.testing.assert_allclose(counts, np.full(10, 5.0))
    assert bins_of(feature, np.ones(100), 40).max() == 3
    assert bins_of(feature, np.zeros(100), 40).max() == 0


def test_the_most_frequent_levels_have_a_bin_each() -> None:
    feature = Category("town", ("a", "b", "c", "d"))
    assert bins_of(feature, np.array([1.0, 9.0, 5.0, 2.0]), 30).tolist() == [2, 0, 1, 2]
