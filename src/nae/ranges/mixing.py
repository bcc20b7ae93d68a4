"""What a routing can make of a feature's experts if each logit is only known to lie in an interval.

A routing has two functions. The first turns intervals of logits into intervals of weights, before they are divided by
their sum. The second returns the largest mean of experts that such weights can give: a small linear program, solved
exactly by giving more weight to the highest experts first.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nae._typing import Array, BoolArray
from nae.tables.routing import EqualRouting, Routing, SoftmaxRouting

__all__ = ["MIXINGS", "Mixing", "anchor", "largest", "limits"]

_LEAST = -690.0  # the logarithm of a weight that a float still holds in full precision
_TINY = 2 * float(np.exp(_LEAST))
_ROUNDING = 64 * float(np.finfo(np.float64).eps)


class Mixing(NamedTuple):
    """What one type of routing makes of intervals."""

    limits: Callable[[Array, Array, int], tuple[Array, Array]]
    largest: Callable[[Array, Array, Array, int], Array]


def limits(routing: Routing, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the least and the most of every weight under logits from ``low`` to ``high``, (expert, ...) each."""
    return MIXINGS[type(routing)].limits(low, high, routing.n_active)


def largest(routing: Routing, least: Array, most: Array, experts: Array) -> Array:
    """Return the largest mean of experts, which descend along the first axis."""
    return MIXINGS[type(routing)].largest(least, most, experts, routing.n_active)


def anchor(least: Array, most: Array) -> tuple[Array, Array]:
    """Return shares (expert, ...) that sum to one, and how much of the whole any weights give to others, at most.

    The mean of some numbers under any weights is that under the shares, up to this part of the numbers' range.
    """
    share = least + most
    share /= share.sum(axis=0)
    up, down = _share(most, least, 1), _share(least, most, -1)
    moved = np.maximum(up - share, share - down).sum(axis=0) / 2
    return share, np.minimum(moved, 1.0)


def _share(own: Array, others: Array, sign: int) -> Array:
    """Return the share of every weight if all others are as given; ``sign`` is the direction of what rounding adds."""
    total = others.sum(axis=0)
    rest = np.maximum(total - others - sign * _ROUNDING * total, 0.0)
    rest += own
    return np.asarray(np.divide(own, rest, out=rest, where=rest > 0))


def _softmax_limits(low: Array, high: Array, n_active: int) -> tuple[Array, Array]:
    top = high.max(axis=0)
    least, most = (np.exp(np.maximum(logits - top, _LEAST)) for logits in (low, high))
    least = np.maximum(least - _TINY, 0.0)  # a weight too small for a float may be zero
    if n_active < len(low):
        surely, possibly = _active(low, high, n_active)
        return least * surely, most * possibly
    return least, most


def _equal_limits(low: Array, high: Array, n_active: int) -> tuple[Array, Array]:
    surely, possibly = _active(low, high, n_active)
    return surely.astype(low.dtype), possibly.astype(low.dtype)


def _active(low: Array, high: Array, n_active: int) -> tuple[BoolArray, BoolArray]:
    """Return which experts are surely, and which are possibly active. Of equal logits the first wins."""
    surely_before, possibly_before = (np.zeros(low.shape, dtype=np.int64) for _ in range(2))
    for other in range(len(low)):
        is_first = np.arange(len(low)).reshape(-1, *[1] * (low.ndim - 1)) > other
        surely_before += (low[other] > high) | ((low[other] == high) & is_first)
        before = (high[other] > low) | ((high[other] == low) & is_first)
        before[other] = False
        possibly_before += before
    return possibly_before < n_active, surely_before < n_active


def _largest_ratio(least: Array, most: Array, experts: Array, _: int) -> Array:
    """Return the largest mean: some of the highest experts have their most weight, all others their least."""
    gain = most - least
    total, weighted = least.sum(axis=0), (least * experts).sum(axis=0)
    best = np.full(total.shape, -np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):  # all weights so far may be zero
        for more, expert in zip(gain, experts, strict=True):
            total += more
            weighted += more * expert
            np.fmax(best, weighted / total, out=best)
    return best


def _largest_share(least: Array, most: Array, experts: Array, n_active: int) -> Array:
    """Return the largest mean of ``n_active`` experts: those that surely count, then the highest possible ones."""
    weighted, left = (least * experts).sum(axis=0), n_active - least.sum(axis=0)
    for more, expert in zip(most - least, experts, strict=True):
        taken = np.minimum(more, left)
        weighted += taken * expert
        left -= taken
    return np.asarray(weighted / n_active)


MIXINGS: dict[type[Routing], Mixing] = {
    SoftmaxRouting: Mixing(_softmax_limits, _largest_ratio),
    EqualRouting: Mixing(_equal_limits, _largest_share),
}
"""What to do for every type of routing."""
