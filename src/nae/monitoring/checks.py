"""One check: a size then and now, how far it moved, how far chance alone moves it, and the verdict."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nae._typing import Array
from nae.quality.chance import chi_square_tail, likelihood_ratio, normal_tails

__all__ = [
    "DRIFTED",
    "MOVED",
    "STEADY",
    "Check",
    "check_mean",
    "check_share",
    "check_shares",
    "stability_index",
    "worst",
]

DRIFTED, MOVED, STEADY = "drifted", "moved", "within chance"
_HALF = 0.5  # rows that are added to every bin, so that an empty one has a logarithm


@dataclass(frozen=True)
class Check:
    """How far one thing moved between the training rows and the new rows.

    Attributes
    ----------
    what
        'values', 'missing', 'unseen', 'beyond', 'contribution' or 'score'.
    then, now
        A share of the rows, or a mean, in the training rows and in the new ones; NaN for the values of a category.
    size
        The population stability index (PSI); for means, their distance in standard deviations of the training score.
    chance
        The size that is expected if nothing changed.
    p_value
        The probability that chance alone makes the difference at least as clear.
    output
        The output whose contribution or score is meant; empty if there is one.
    """

    what: str
    then: float
    now: float
    size: float
    chance: float
    p_value: float
    output: str = ""

    def verdict(self, limit: float, level: float) -> str:
        """Return 'drifted' beyond the limit, 'moved' below it, or 'within chance' if the p-value exceeds the level."""
        if self.p_value > level:
            return STEADY
        return DRIFTED if self.size >= limit else MOVED


def worst(verdicts: Sequence[str]) -> str:
    """Return the worst of some verdicts."""
    return min(verdicts, key=(DRIFTED, MOVED, STEADY).index)


def stability_index(now: Array, then: Array) -> float:
    """Return the population stability index of numbers of rows per bin."""
    share_now, share_then = (_smoothed(counts) for counts in (now, then))
    return float((share_now - share_then) @ np.log(share_now / share_then))


def check_shares(now: Array, then: Array, *, what: str = "values", means: tuple[float, float] | None = None) -> Check:
    """Return the check of two distributions, given as numbers of rows per bin; ``means`` are those then and now."""
    n_bins, n_now, n_then = len(now), float(now.sum()), float(then.sum())
    before, after = means or (np.nan, np.nan)
    if n_bins < 2 or not (n_now > 0 and n_then > 0):
        return Check(what, before, after, 0.0, 0.0, 1.0)
    chance = (n_bins - 1) * (1 / n_now + 1 / n_then)
    # G has n_bins - 1 degrees of freedom. One more allows for rare bins, whose counts have heavier tails.
    p_value = chi_square_tail(likelihood_ratio(now, then), n_bins)
    return Check(what, before, after, stability_index(now, then), chance, p_value)


def check_share(what: str, now: float, then: float, *, n_now: float, n_then: float) -> Check:
    """Return the check of the shares of the rows that have a property."""
    counts = (np.array([share * n, (1 - share) * n]) for share, n in ((now, n_now), (then, n_then)))
    return check_shares(*counts, what=what, means=(then, now))


def check_mean(what: str, now: float, then: float, *, error: float, unit: float, output: str = "") -> Check:
    """Return the check of two means whose difference has a standard error; ``unit`` is what sizes are measured in."""
    moved = now - then
    if not error > 1e-9 * unit:  # nothing varies, so there is no chance
        same = abs(moved) <= 1e-9 * max(unit, abs(then))
        return Check(what, then, now, 0.0 if same else _over(moved, unit), 0.0, float(same), output)
    chance = error * np.sqrt(2 / np.pi)
    return Check(what, then, now, _over(moved, unit), _over(chance, unit), normal_tails(moved / error), output)


def _over(moved: float, unit: float) -> float:
    return float(abs(moved) / unit) if unit > 0 else float("inf")


def _smoothed(counts: Array) -> Array:
    return np.asarray((counts + _HALF) / (counts.sum() + _HALF * len(counts)))
