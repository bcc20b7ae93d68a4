"""What moved, in words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nae.monitoring.checks import Check

if TYPE_CHECKING:
    from nae.monitoring.results import FeatureDrift

__all__ = ["clause", "names_of"]

_MOST_NAMES = 8


def clause(feature: "FeatureDrift", check: Check) -> str:
    """Return what one check of a feature found."""
    if check.what == "values":
        psi = f"PSI {check.size:.2g}, {check.chance:.1g} by chance"
        if not feature.label:
            return f"the mean of its values went from {check.then:.4g} to {check.now:.4g} ({psi})"
        shares = f"{_percent(feature.label_then)} to {_percent(feature.label_now)}"
        return f"the share of {feature.label!r} went from {shares} ({psi})"
    if check.what == "missing":
        return f"{_percent(check.now)} of its values are missing, and {_percent(check.then)} were"
    if check.what == "unseen":
        return f"{_percent(check.now)} of its values were never seen in training"
    if check.what == "beyond":
        return f"{_percent(check.now)} of its values lie outside the range of the training rows"
    of = f" to {check.output}" if check.output else ""
    unit = "standard deviations of the score"
    return f"its mean contribution{of} went from {_pair(check.then, check.now)} ({check.size:.2g} {unit})"


def names_of(names: Sequence[str]) -> str:
    """Return names with commas; of many, the first ones and how many are left."""
    left = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {left} more" if left > 0 else "")


def _pair(then: float, now: float) -> str:
    """Return two numbers with as many decimals as the larger one needs."""
    largest = max(abs(then), abs(now))
    decimals = max(0, 2 - int(np.floor(np.log10(largest)))) if largest > 0 else 0
    return " to ".join(f"{round(value, decimals) + 0.0:.{decimals}f}" for value in (then, now))


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
