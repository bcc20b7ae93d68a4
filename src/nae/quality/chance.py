"""What chance alone does: tails of distributions, and the log-likelihood ratio of two samples."""

import math

import numpy as np

from nae._typing import Array

__all__ = ["chi_square_critical", "chi_square_tail", "likelihood_ratio", "normal_tails"]


def chi_square_tail(value: float, freedom: int) -> float:
    """Return the probability that a chi-square variable with ``freedom`` >= 1 degrees of freedom exceeds a value."""
    half = max(value, 0.0) / 2
    if half > 700:
        return 0.0
    # Q(a + 1, x) = Q(a, x) + x**a exp(-x) / gamma(a + 1), from Q(1, x) = exp(-x) or Q(1/2, x) = erfc(sqrt(x)).
    a = 1.0 if freedom % 2 == 0 else 0.5
    tail = math.exp(-half) if freedom % 2 == 0 else math.erfc(math.sqrt(half))
    while a < freedom / 2 and half > 0:
        tail += math.exp(a * math.log(half) - half - math.lgamma(a + 1))
        a += 1
    return min(tail, 1.0)


def chi_square_critical(level: float, freedom: int) -> float:
    """Return the value that a chi-square variable exceeds with the probability ``level``."""
    low, high = 0.0, 1400.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chi_square_tail(middle, freedom) > level else (low, middle)
    return high


def normal_tails(z: float) -> float:
    """Return the probability that a standard normal variable is farther from zero than ``z``."""
    return math.erfc(abs(z) / math.sqrt(2))


def likelihood_ratio(now: Array, then: Array) -> float:
    """Return G of two samples: twice the log-likelihood ratio of two distributions and of a common one.

    ``now`` and ``then`` are numbers of rows per bin, which need not be whole.
    """
    pooled = (now + then) / (now.sum() + then.sum())
    return 2 * float(_divergence(now, pooled) + _divergence(then, pooled))


def _divergence(counts: Array, shares: Array) -> float:
    kept = counts > 0
    return float(counts[kept] @ np.log(counts[kept] / (counts.sum() * shares[kept])))
