"""Rests: up to r more changes, of any features behind a place in an order. They stand for very many sets at once.

Of the terms that r features add to a logit, the r smallest are the least; so the logits of a rest lie between sums of
the r smallest and the r largest terms. What r features gain, beyond what they contribute unchanged, is at most the sum
of the r largest gains.

Shapes: D features that may change, F features, K experts, M members, n boxes, R rates.
"""

import numpy as np

from nae._typing import Array, IntArray
from nae.decisions.recourse.forest import Forest
from nae.decisions.recourse.scores import Part
from nae.ranges.mixing import largest
from nae.ranges.problem import Mixed
from nae.tables.routing import Routing

__all__ = ["Rests"]

_PLACES = 2**24  # numbers that are kept


class Rests:
    """What up to ``k`` changes of features can do, by the place in the order where these begin."""

    def __init__(self, forest: Forest, order: IntArray, k: int) -> None:
        self.order = order  # the roots of the features, (D,)
        self._forest = forest
        size = k * forest.low[0].size
        self._stride = max(1, -(-2 * size * len(order) // _PLACES))  # behind a place stand all behind an earlier one
        self._low = -_sums(-forest.low[order], k, self._stride)
        self._high = _sums(forest.high[order], k, self._stride)

    def widen(self, low: Array, high: Array, rest: IntArray, start: IntArray) -> None:
        """Widen units (group, n, ...) by what the rests of boxes may add."""
        some = np.flatnonzero(rest > 0)
        at = (start[some] // self._stride, rest[some] - 1)
        low[:, some] += self._low[at].swapaxes(0, 1)
        high[:, some] += self._high[at].swapaxes(0, 1)

    def gained(
        self, part: Part, routing: Routing, weights: tuple[Array, Array], rates: Array, unchanged: Array
    ) -> Array:
        """Return what every feature gains at most if it changes, minus rate times cost, (R, n, D).

        ``unchanged`` are the largest contributions of all features that do not, (n, F).
        """
        found = []
        for rate in rates:
            experts, lower, upper = self._tilted(part, float(rate))
            members = np.arange(experts.shape[2])
            columns = (self._forest.feature[self.order][:, None] * len(members) + members).reshape(-1)
            mixed = Mixed.of(experts.reshape(1, len(experts), -1), columns)
            mixed = mixed.take(np.zeros(weights[0].shape[1], dtype=np.int64))
            mean = largest(routing, mixed.read(weights[0]), mixed.read(weights[1]), mixed.experts)
            mean = mean.reshape(len(mean), len(self.order), -1).mean(axis=-1)
            found.append(np.minimum(np.maximum(mean, lower), upper))
        return np.stack(found) - unchanged[:, self._forest.feature[self.order]]

    def largest(self, gain: Array, rest: IntArray, start: IntArray) -> Array:
        """Return the sums of the largest gains, (R, n), given those of all features (R, n, D)."""
        is_behind = np.arange(len(self.order)) >= start[:, None]
        gain = np.where(is_behind & (rest > 0)[:, None], np.maximum(gain, 0.0), 0.0)
        most = int(rest.max(initial=0))
        top = -np.sort(-gain, axis=-1)[..., :most]
        return np.asarray((top * (np.arange(most) < rest[:, None])).sum(axis=-1))

    def _tilted(self, part: Part, rate: float) -> tuple[Array, Array, Array]:
        """Return the largest experts (K, D, M) and clamps (D,) of every feature, minus rate times cost."""
        forest, own = self._forest, part.own
        first, last = forest.first[self.order], forest.last[self.order]
        n_members = own.most.experts.shape[2]
        curve = own.curve.reshape(-1, n_members, own.curve.shape[1]) * n_members
        found = [
            (
                (curve[..., a : b + 1] - rate * forest.cost[a : b + 1]).max(axis=-1),
                (own.clamp.lower[a : b + 1] - rate * forest.cost[a : b + 1]).max(),
                (own.clamp.upper[a : b + 1] - rate * forest.cost[a : b + 1]).max(),
            )
            for a, b in zip(first, last, strict=True)
        ]
        experts, lower, upper = zip(*found, strict=True)
        return np.stack(experts, axis=1), np.array(lower), np.array(upper)


def _sums(terms: Array, k: int, stride: int) -> Array:
    """Return the sums of the 1 to ``k`` largest positive terms behind every place, (place, k, group, ...)."""
    best = np.zeros((k, *terms.shape[1:]))
    found = np.empty((-(-len(terms) // stride), *best.shape))
    for at in reversed(range(len(terms))):
        best = np.sort(np.concatenate([best, terms[[at]]]), axis=0)[1:]  # without the smallest
        if at % stride == 0:
            found[at // stride] = np.cumsum(best[::-1], axis=0)
    return found
