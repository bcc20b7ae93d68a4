"""Smoothing of a curve: its slopes are averaged with those of their neighbours.

A slope is replaced by a weighted mean of all slopes, whose weights fall with the distance and add up to one; the total
rise stays the same. Hence a straight line stays as it is, a curve that never falls still never falls, and a convex one
stays convex. Every expert and every gate term is smoothed by the same linear map, so differences of gate terms that
never fall still never fall.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import Array
from nae.editing.arguments import finite_number
from nae.editing.ordering import expert_order, in_order, is_ordered
from nae.editing.part import Part
from nae.encoding.schema import Number
from nae.errors import ConfigError

__all__ = ["slope_means", "smoothed"]


def smoothed(part: Part, *, strength: Any) -> Part:
    """Return the feature in a model in which its curves are smoother; ``strength`` 4 reaches about two knots far.

    Bounds become no wider, and experts that have one order at every value keep it.
    """
    power = finite_number(strength, "The strength of smoothing must be a positive number", may_equal=False)
    slots, feature = part.knots, part.feature
    if not isinstance(feature, Number) or feature.n_values < 3:
        raise ConfigError(f"Smoothing needs at least three knots; {feature.name!r} has {feature.n_values}.")
    curve = _Smoother(feature.knots, slope_means(feature.knots, power), part.weight[slots])
    before = part.experts(slots)
    after = _fitted(curve.of(before), before)
    order = expert_order(part.experts(part.slots))
    if is_ordered(part.experts(part.slots), order):
        after = in_order(after, order)
    found = part.with_experts(slots, after).with_terms(slots, curve.of(part.terms(slots)))
    return found.with_clamps(slots, lambda own: _fitted(curve.of(own)[:, None], own[:, None])[:, 0])


@dataclass(frozen=True, eq=False)
class _Smoother:
    """A map from values at the knots to smoother ones with the same mean over the rows."""

    knots: Array
    means: Array  # (n - 1, n - 1), what of every slope is in every smooth one
    weight: Array  # (n,)

    def of(self, values: Array) -> Array:
        """Return smoother values, (n, ...)."""
        flat = values.reshape(len(values), -1)
        span = np.diff(self.knots)[:, None]
        rise = self.means @ (np.diff(flat, axis=0) / span) * span
        smooth = flat[0] + np.concatenate([np.zeros_like(flat[:1]), np.cumsum(rise, axis=0)])
        level = self.weight / self.weight.sum() @ (flat - smooth)
        return np.asarray((smooth + level).reshape(values.shape))


def slope_means(knots: Array, strength: float) -> Array:
    """Return the means that smooth slopes are of the slopes between knots, (n - 1, n - 1): rows add up to one.

    Smooth slopes g' minimise the sum of d (g - g')^2 and of strength d' (difference of neighbouring g')^2, where d is
    the length of an interval and d' the mean length of two neighbours. The equations have an M-matrix with three
    diagonals, whose inverse is totally positive: means of slopes that ascend ascend. Weighted by length, slopes keep
    their sum.
    """
    length = np.diff(knots)
    length = length / length.max()
    link = strength * (length[1:] + length[:-1]) / 2
    matrix = np.diag(length + np.append(link, 0.0) + np.append(0.0, link))
    matrix -= np.diag(link, 1) + np.diag(link, -1)
    means = np.maximum(np.linalg.solve(matrix, np.diag(length)), 0.0)
    return np.asarray(means / means.sum(axis=1, keepdims=True))


def _fitted(after: Array, before: Array) -> Array:
    """Return values (n, K, ...) squeezed and shifted into the range of those before."""
    low, high = before.min(axis=(0, 1)), before.max(axis=(0, 1))
    least, most = after.min(axis=(0, 1)), after.max(axis=(0, 1))
    share = np.minimum(1.0, (high - low) / np.maximum(most - least, 1e-300))
    squeezed = (after - least) * share
    start = np.clip(least, low, np.maximum(high - (most - least) * share, low))
    return np.asarray(np.clip(start + squeezed, low, high))
