"""Forms: what the experts and gate terms of a feature are made to be, whatever the weights are.

Weights give raw numbers on every slot; a form turns them into numbers that keep a promise, and training goes through
it. So a promise holds for every step of training and for the finished tables, and nothing is cut afterwards.

======================  ===============================================================================================
``rises``               The curve over the ordered slots has steps of one sign: :func:`positive` of the raw ones. The
                        middle slot stays where it is.
``bends``               The slopes of the curve ascend, or descend: its steps are the nearest such ones to the raw
                        steps, and its mean stays. Gradients pass as if nothing had been changed.
``is_single``           All experts are their mean: the gate has nothing to choose, so nothing changes the feature.
``caps``                No expert leaves an interval around zero.
``sorts_outputs``       The experts of the first output are the lowest, slot by slot, those of the last the highest.
``is_sorted``           The experts of a slot ascend.
``leads``               Gate terms: from each expert to the next, logits rise together with a feature that rises.
``allows``              Gate terms: zero where a feature may not change another.
======================  ===============================================================================================

``docs/guarantees.md`` shows why these make a promise true. The two engines do the same: ``nae.engines.torch.forms``,
and ``forms.h`` of the native core, which also has the way back.
"""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.tables.isotonic import isotonic

__all__ = ["Forms", "positive"]

_DIGITS = 23  # of single precision, less one for what rounding adds
_MOST = 0.95  # of a cap, where a start that lies outside is put


@dataclass(frozen=True, eq=False, kw_only=True)
class Forms:
    """The forms of all features, F, with O outputs and M members."""

    n_ordered: IntArray
    """(F,), how many of the first slots have an order; those for missing and unseen values never have one."""
    places: Array
    """(F, S), where the ordered slots lie, from 0 to 1."""
    rises: IntArray
    """(F,), 1 for experts that never fall over the ordered slots, -1 for those that never rise, else 0."""
    bends: IntArray
    """(F,), 1 for convex experts, -1 for concave ones, else 0."""
    caps: Array
    """(F, O), the largest absolute expert; infinite without one. Outputs that are sorted have the same."""
    is_single: BoolArray
    is_sorted: BoolArray
    sorts_outputs: bool
    leads: BoolArray
    """(F,), features that rise or fall and may change others."""
    allows: BoolArray
    """(M, F, F), or (1, F, F) for all members alike: whether the first feature may change the second."""
    n_leading: int
    """With a matrix behind the gate's terms: how many of the first terms features that lead feed, and no others of
    theirs. What these terms do to logits grows from each expert to the next."""
    sharpness: float
    """How soft the corner of :func:`positive` is, as a share of a curve's usual rise."""

    @property
    def has_mask(self) -> bool:
        return not self.allows.all()

    @property
    def is_whole(self) -> bool:
        """Whether each feature may change either all features or none."""
        return bool((self.allows == self.allows[:, :, :1]).all())

    @property
    def has_caps(self) -> BoolArray:
        """(F,), whether a feature has a cap."""
        return np.asarray(np.isfinite(self.caps).all(axis=1))

    @property
    def has_shape(self) -> BoolArray:
        """(F,), whether the curves of a feature have a direction or a bend."""
        return np.asarray((self.rises != 0) | (self.bends != 0))

    def softness(self, feature: int) -> float:
        """Return how soft the corner is for one step from slot to slot."""
        return self.sharpness / max(1, int(self.n_ordered[feature]) - 1)

    def shape_experts(self, feature: int, experts: Array) -> Array:
        """Return the experts of a feature, (S, K, O, M), on its first S slots."""
        experts = experts.copy()
        n = int(self.n_ordered[feature])
        if self.bends[feature] and n > 1:
            experts[:n] = self._bend(feature, experts[:n])
        elif self.rises[feature] and n > 1:
            experts[:n] = _rise(experts[:n], int(self.rises[feature]), self.softness(feature))
        if self.is_single[feature]:
            experts[:] = experts.mean(axis=1, keepdims=True)
        if self.has_caps[feature]:
            cap = self.caps[feature][:, None]
            share = experts / np.maximum(cap, 1.0)
            experts = cap * share / np.sqrt(1 + share**2)
        if self.sorts_outputs:
            experts = np.sort(experts, axis=2)
        return np.sort(experts, axis=1) if self.is_sorted[feature] else experts

    def shape_terms(self, feature: int, terms: Array, *, n_experts: int) -> Array:
        """Return the gate terms of a feature, (S, W, M); each W is a logit of the gate, expert by expert.

        Only features that lead, or may change some features and not others, need a gate whose terms are logits.
        """
        if self.leads[feature]:
            terms = self._feed(feature, terms) if self.n_leading else self._lead(feature, terms, n_experts)
        allowed = self.allows[:, feature].T[None]  # (1, F, M)
        if (allowed == allowed[:, :1]).all():
            return terms * allowed[:, :1]
        by_expert = terms.reshape(len(terms), n_experts, -1, terms.shape[-1])
        if by_expert.shape[2] == 1:  # a diagonal gate: terms are a feature's own
            allowed = allowed[:, [feature]]
        return np.asarray((by_expert * allowed[:, None]).reshape(terms.shape))

    def shape_mix(self, mix: Array, *, n_experts: int) -> Array:
        """Return the matrix from terms to logits, (M, W, K * F): rows of leading terms ascend with the experts."""
        if not self.n_leading:
            return mix
        shaped = mix.reshape(*mix.shape[:2], n_experts, -1).copy()
        first = shaped[:, : self.n_leading]
        steps = positive(np.diff(first, axis=2), self.mix_softness(n_experts))
        first[:, :, 1:] = first[:, :, :1] + np.cumsum(steps, axis=2)
        first[..., self.bends != 0] = 0  # sorting would break the bend of what a leader changes
        return np.asarray(shaped.reshape(mix.shape))

    def mix_softness(self, n_experts: int) -> float:
        """Return how soft the corner is for one step from expert to expert."""
        return self.sharpness / max(1, n_experts - 1)

    def to_raw(self, start: Array) -> Array:
        """Return what forms turn into ``start``, (F, S, O, M), or into what comes near it."""
        raw = start.copy()
        for i in range(len(raw)):
            if self.has_caps[i]:
                cap = self.caps[i][:, None]
                share = np.clip(raw[i] / cap, -_MOST, _MOST)
                raw[i] = np.maximum(cap, 1.0) * share / np.sqrt(1 - share**2)
            n = int(self.n_ordered[i])
            if self.rises[i] and not self.bends[i] and n > 1:  # raw steps of the wrong sign would not learn
                raw[i, :n] = self.rises[i] * isotonic(self.rises[i] * raw[i, :n], np.ones(n))
        return raw

    def _bend(self, feature: int, experts: Array) -> Array:
        """Return curves whose slopes grow, or shrink, from slot to slot; and keep a sign, if they also rise or fall."""
        sign, rise, n = int(self.bends[feature]), int(self.rises[feature]), len(experts)
        widths = np.diff(self.places[feature, :n])
        steps = sign * np.diff(experts.reshape(n, -1), axis=0)
        slopes = np.stack([ascending(column, widths) for column in steps.T], axis=1)
        if rise:
            slopes = sign * rise * np.maximum(sign * rise * slopes, 0)
        bent = _sums(sign * slopes * widths[:, None]).reshape(experts.shape)
        return np.asarray(bent + (experts.mean(axis=0) - bent.mean(axis=0)))

    def _feed(self, feature: int, terms: Array) -> Array:
        n, shaped = int(self.n_ordered[feature]), np.zeros_like(terms)
        shaped[:, : self.n_leading] = terms[:, : self.n_leading]
        if n > 1:
            own = terms[:n, : self.n_leading]
            shaped[:n, : self.n_leading] = _rise(own, int(self.rises[feature]), self.softness(feature))
        return shaped

    def _lead(self, feature: int, terms: Array, n_experts: int) -> Array:
        n = int(self.n_ordered[feature])
        by_expert = terms.reshape(len(terms), n_experts, -1, terms.shape[-1])
        apart = np.diff(by_expert, axis=1, prepend=0)
        if n > 1:
            apart[:n] = _rise(apart[:n], int(self.rises[feature]), self.softness(feature))
        return np.asarray(np.cumsum(_exact(apart), axis=1).reshape(terms.shape))


def positive(values: Array, softness: float) -> Array:
    """Return positive numbers: nearly the values themselves where these are large, nearly 0 where they are below 0."""
    return np.asarray((values + np.sqrt(values**2 + softness**2)) / 2)


def ascending(steps: Array, widths: Array) -> Array:
    """Return slopes that ascend, such that slopes times widths are as near to the steps as they can be."""
    blocks: list[tuple[float, float, int]] = []  # products of steps and widths, squares of widths, and how many
    for step, width in zip(steps.tolist(), widths.tolist(), strict=True):
        product, square, count = step * width, width * width, 1
        while blocks and blocks[-1][0] * square >= product * blocks[-1][1]:
            before = blocks.pop()
            product, square, count = product + before[0], square + before[1], count + before[2]
        blocks.append((product, square, count))
    found = [product / square if square > 0 else 0.0 for product, square, _ in blocks]  # two knots may be one place
    return np.repeat(found, [count for _, _, count in blocks])


def _exact(apart: Array) -> Array:
    """Return differences rounded such that single precision holds their sums along the second axis, digit by digit.

    Rounding keeps an order, and so do the differences of tables in single precision then.
    """
    largest = np.abs(apart).sum(axis=1).max(initial=0.0)
    if not (0 < largest < np.inf):
        return apart
    unit = 2.0 ** (np.ceil(np.log2(largest)) - _DIGITS)
    return np.asarray(np.round(apart / unit) * unit)


def _rise(values: Array, way: int, softness: float) -> Array:
    """Return values whose steps along the first axis have one sign."""
    steps = way * positive(way * np.diff(values, axis=0), softness)
    return _anchored(values[len(values) // 2], steps)


def _anchored(middle: Array, steps: Array) -> Array:
    """Return the sums of steps along the first axis, shifted so that they pass the middle."""
    sums = _sums(steps)
    return np.asarray(sums - sums[(len(steps) + 1) // 2] + middle)


def _sums(steps: Array) -> Array:
    """Return the running sums of steps along the first axis, from zero on."""
    return np.concatenate([np.zeros_like(steps[:1]), np.cumsum(steps, axis=0)])
