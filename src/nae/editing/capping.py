"""A cap: a feature alone never moves the score by more. It gates no other feature, and its experts fit into the cap."""

from typing import Any

import numpy as np

from nae._typing import Array
from nae.editing.arguments import finite_number
from nae.editing.isolating import isolated
from nae.editing.part import Part

__all__ = ["capped"]

_HALVINGS = 80


def capped(part: Part, *, limit: Any) -> Part:
    """Return the feature in a model in which it alone moves the score by at most ``limit``.

    Experts within an interval of that length stay as they are, and those beyond are cut. The interval is the one that
    changes the training rows least. With more than two classes, the log-odds of any two move by at most the limit.
    """
    limit = finite_number(limit, "A cap must be a number of at least 0, in units of the score")
    found = isolated(part)
    width = limit / 2 if len(part.model.classes) > 2 else limit  # every class moves the log-odds of a pair
    experts, dtype = found.experts(found.slots), found.model.experts.dtype
    low = _start(experts, found.weight[found.slots], width).astype(dtype)  # (O, M)
    high = (low.astype(np.float64) + width).astype(dtype)
    high = np.where(high.astype(np.float64) - low > width, np.nextafter(high, low, dtype=dtype), high)
    found = found.with_experts(found.slots, np.clip(experts, low, high))
    ends = low.astype(np.float64).mean(axis=-1), high.astype(np.float64).mean(axis=-1)
    return found.with_clamps(found.slots, lambda own: np.clip(own, *ends))


def _start(experts: Array, weight: Array, width: float) -> Array:
    """Return where an interval begins that leaves the experts (n, K, O, M) most as they are, (O, M).

    The weighted square of what is cut is convex in the start. Its slope is zero where as much is cut on both sides.
    """
    low, high = experts.min(axis=(0, 1)), np.maximum(experts.max(axis=(0, 1)) - width, experts.min(axis=(0, 1)))
    if (high <= low).all():  # nothing is cut
        return np.asarray((experts.min(axis=(0, 1)) + experts.max(axis=(0, 1)) - width) / 2)
    share = (weight / weight.sum())[:, None, None, None]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below, above = np.maximum(middle - experts, 0.0), np.maximum(experts - middle - width, 0.0)
        is_high = (share * (below - above)).sum(axis=(0, 1)) > 0
        low, high = np.where(is_high, low, middle), np.where(is_high, middle, high)
    return np.asarray((low + high) / 2)
