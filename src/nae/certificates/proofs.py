"""Upper bounds, for every possible input, of what one feature can do: read off the tables of a model.

This file is meant to be read by an auditor. It needs numpy and the arrays of a :class:`TableModel`, and shares no code
with training. ``docs/guarantees.md`` has the statements and proofs in words.

The score is w0 + sum_j c_j with c_j = sum_k r_jk o_jk. The weights r_j are the softmax of the logits z_j. Experts o_j
and gate terms are linear between the knots of one feature. Three facts carry every bound:

1. A linear function on an interval is largest at one of the ends, and so is a maximum of linear functions.
2. While a value moves, dc_j = sum_k r_jk do_jk + Cov_r(dz_j, o_j), and |Cov_r(a, b)| <= range(a) range(b) / 4.
   If a and b both ascend with k, the covariance is not negative.
3. If the differences of the logits change by at most s, no set of experts gains more than tanh(s / 4) of the weight.

Shapes: T slots, K experts, F features, H gate width, M members; n slots of one feature. A mean over members comes last.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.encoding.cells import Cells
from nae.encoding.schema import Number
from nae.tables.lowered import Mix, OneExpert, lower
from nae.tables.model import TableModel
from nae.tables.routing import EqualRouting, SoftmaxRouting
from nae.tables.steps import Multiply, OwnTerms, Rectify, SumTerms

__all__ = ["TOLERANCE", "Tables"]

TOLERANCE = 1e-6  # share of the score's spread; a smaller violation counts as none
# All that a score passes; written out here, so that a new step is refused until the proofs cover it.
_KNOWN = (SumTerms, OwnTerms, Rectify, Multiply, SoftmaxRouting, EqualRouting, OneExpert, Mix)


@dataclass(frozen=True, eq=False)
class Tables:
    """The tables of a model, for one score: a combination of the model's outputs. All sums are in double precision."""

    model: TableModel  # gate terms, the largest array by far, become double precision where they are used
    direction: Array  # (output,), what each output counts in the score
    eps: float  # the rounding unit of the model's own arrays

    @classmethod
    def of(cls, model: TableModel, direction: Array) -> Self:
        """Return the tables for the score ``direction @ outputs``."""
        other = {type(step).__name__ for step in lower(model).steps if type(step) not in _KNOWN}
        if other:
            raise TypeError(f"The proofs know no step called {', '.join(sorted(other))}.")
        arrays: dict[str, Any] = {
            name: array.astype(np.float64) for name, array in model.gate.arrays.items() if name != "terms"
        }
        exact = replace(
            model, experts=model.experts.astype(np.float64), gate=replace(model.gate, **arrays), kernel=None
        )
        return cls(exact, np.asarray(direction, dtype=np.float64), float(np.finfo(model.experts.dtype).eps))

    @cached_property
    def reachable(self) -> tuple[IntArray, ...]:
        """The slots of every feature that an input can reach. Only a category, or an empty column, can be unseen."""
        found = []
        for i, feature in enumerate(self.model.schema.features):
            slots = self.model.schema.slots(i)
            first, last = slots.start, slots.stop
            if isinstance(feature, Number):
                first, last = (last - 2, last) if feature.is_empty else (first, last - 1)
            found.append(np.arange(first, last))
        return tuple(found)

    @cached_property
    def experts(self) -> Array:
        """The experts of the score, (T, K, M)."""
        return np.asarray(np.einsum("tkom,o->tkm", self.model.experts, self.direction))

    @cached_property
    def spread(self) -> float:
        """The highest minus the lowest score that the experts allow."""
        least, most = self.model.routing.bounds(self.experts, axis=1)
        low, high = least.mean(axis=-1), most.mean(axis=-1)
        return float(sum(high[own].max() - low[own].min() for own in self.reachable))

    @property
    def tolerance(self) -> float:
        """The largest violation that counts as none."""
        return TOLERANCE * self.spread

    @cached_property
    def rounding(self) -> float:
        """The most by which a computed score differs from the exact one, except where a jumping routing has a tie."""
        model, gate = self.model, self.model.gate
        n_features, n_experts, n_members = model.n_features, model.n_experts, model.n_members
        size = sum(float(np.abs(self.experts[own]).max()) for own in self.reachable)
        error = (n_features + n_experts * n_members + 8) * (size + abs(float(model.intercept @ self.direction)))
        if not self.is_fixed:
            largest = (np.abs(gate.terms[own]).max(axis=0) for own in self.reachable)  # (width, M)
            logits = sum(one.astype(np.float64) for one in largest) + np.abs(gate.bias).max()
            if gate.mix is not None and gate.mix_bias is not None:
                logits = np.einsum("hm,mhl->lm", logits, np.abs(gate.mix)) + np.abs(gate.mix_bias)
            n_terms = 2 * n_features + gate.terms.shape[1] + 8
            error += n_terms * float(np.max(logits)) * float(self.room.mean(axis=-1).sum()) / 2
        return self.eps * error

    @cached_property
    def is_fixed(self) -> bool:
        """Whether no logit matters: one expert, or equal weights for all."""
        model = self.model
        return model.n_experts == 1 or (
            isinstance(model.routing, EqualRouting) and model.routing.n_active >= model.n_experts
        )

    @property
    def jumps(self) -> bool:
        """Whether weights jump where the set of active experts changes."""
        return self.model.routing.n_active < self.model.n_experts

    @cached_property
    def room(self) -> Array:
        """The largest distance between two experts of a feature at one value, (F, M)."""
        far = self.experts.max(axis=1) - self.experts.min(axis=1)
        return np.stack([far[own].max(axis=0) for own in self.reachable])

    @cached_property
    def order(self) -> IntArray:
        """The experts of every feature from the lowest to the highest on average, (K, F, M)."""
        return np.stack([self.experts[own].mean(axis=0).argsort(axis=0, kind="stable") for own in self.reachable], 1)

    @cached_property
    def disorder(self) -> Array:
        """How far an expert lies below one that should not be higher, at most, (F, M). Zero: one order everywhere."""
        found = []
        for j, own in enumerate(self.reachable):
            ordered = np.take_along_axis(self.experts[own], self.order[None, :, j], axis=1)
            found.append((np.maximum.accumulate(ordered, axis=1) - ordered).max(axis=(0, 1)))
        return np.stack(found)

    def drop(self, feature: int, sign: int) -> float:
        """Return the most by which the score can fall while a number grows (``sign`` 1), or shrinks (-1)."""
        knots = self.knots(feature)[::sign]
        own = self._own(feature, knots)
        gain = np.diff(own, axis=0).min(axis=1)  # (n - 1, M), the experts' part of fact 2, from knot to knot
        loss: Array = np.zeros((len(knots) - 1, self.model.n_features, self.model.n_members))
        if not self.is_fixed and len(knots) > 1:
            loss = self._gate_loss(feature, knots, own)
        kept = self._own_gain(knots, (gain - loss[:, feature]).mean(axis=-1))
        gained = kept - np.delete(loss, feature, axis=1).sum(axis=1).mean(axis=-1)
        worst = lost = 0.0
        for step in -gained:  # the largest sum of neighbouring steps
            lost = max(lost + float(step), 0.0)
            worst = max(worst, lost)
        return min(worst, self.effect(feature)) if worst > 0 else 0.0

    def effect(self, feature: int) -> float:
        """Return the most by which the score changes when one feature changes alone."""
        return self._own_effect(feature) + float(self._felt(feature).sum())

    def changes(self, feature: int) -> float:
        """Return the most by which a feature changes the contribution of another one."""
        return float(self._felt(feature).max(initial=0.0))

    def changed(self, feature: int) -> float:
        """Return the most by which all other features together change the contribution of a feature."""
        total = np.delete(self._swayed(feature), feature, axis=0).sum(axis=0)
        return float((self.room[feature] * self._shifted(total)).mean())

    def _own_gain(self, knots: IntArray, gain: Array) -> Array:
        """Return the least gain of the own contribution from knot to knot, (n - 1,), given that of facts 1 and 2."""
        return gain

    def _own_effect(self, feature: int) -> float:
        """Return the most by which a feature's own contribution changes when the feature changes alone."""
        own = self._own(feature, self.reachable[feature])
        shifted = self._shifted(self._sway(feature, np.array([feature]))[0])
        least, most = self.model.routing.bounds(own, axis=1)
        whole = most.mean(axis=-1).max() - least.mean(axis=-1).min()
        steady = max(float((one - own).max(axis=1).mean(axis=-1).max()) for one in own)  # under the same weights
        steady += float(((own.max(axis=1) - own.min(axis=1)).max(axis=0) * shifted).mean())
        return float(min(whole, steady))

    def _felt(self, feature: int) -> Array:
        """Return the most by which every contribution changes when a feature changes alone, (F,); 0 for its own."""
        found = (self.room * self._shifted(self._sway(feature, np.arange(self.model.n_features)))).mean(axis=-1)
        found[feature] = 0.0
        return np.asarray(found)

    def knots(self, feature: int) -> IntArray:
        """Return the slots of a number in their order, without missing and unseen."""
        own = self.reachable[feature]
        return own[: len(own) - 1]

    def _own(self, feature: int, slots: IntArray) -> Array:
        """Return the experts of a feature, (n, K, M), or their mean (n, 1, M) if no input changes their weights."""
        own = self.experts[slots]
        if self._swayed(feature).any():
            return own
        if self.is_fixed:
            return np.asarray(own.mean(axis=1, keepdims=True))
        anywhere = Cells(np.array([[slot[0] for slot in self.reachable]]), np.zeros((1, self.model.n_features)))
        weights = self.model.routing.weights(self.model.gate.logits(anywhere))[0, :, feature]
        return np.asarray((own * weights).sum(axis=1, keepdims=True))

    def _gate_loss(self, feature: int, knots: IntArray, own: Array) -> Array:
        """Return the most that every contribution loses to the gate, from knot to knot, (n - 1, F, M): fact 2."""
        rise, fall, sway = self._moves(knots, feature)
        far = own.max(axis=1) - own.min(axis=1)
        room = np.repeat(self.room[None], len(knots) - 1, axis=0)
        room[:, feature] = np.maximum(far[1:], far[:-1])
        if self.jumps:  # the order must be exact: where the active set changes, weight jumps
            is_safe = (sway == 0) | (room == 0) | ((fall == 0) & (self.disorder == 0))
            return np.asarray(np.where(is_safe, 0.0, np.inf))
        return np.asarray(np.minimum(fall * room + rise * self.disorder, sway * room) / 4)

    def _moves(self, knots: IntArray, feature: int) -> tuple[Array, Array, Array]:
        """Return how a step from knot to knot changes the logits of all features, (n - 1, F, M) each.

        The experts are in their order. The differences of neighbouring logits rise by a sum of at most ``rise`` and
        fall by at most ``fall``; no two logits change their difference by more than ``sway``.
        """
        gate, n = self.model.gate, len(knots) - 1
        n_experts, n_features, n_members = self.order.shape
        moved = np.diff(self._terms(knots, np.arange(n_features)), axis=0)
        if gate.mix is None:
            logits = self._logits(moved, feature, np.arange(n_features))
            step = np.diff(np.take_along_axis(logits, self.order[None], axis=1), axis=1)
        else:
            mix = gate.mix.reshape(n_members, -1, n_experts, n_features)
            mix = np.diff(np.take_along_axis(mix, self.order.transpose(2, 0, 1)[:, None], axis=2), axis=2)
            if not gate.is_additive:
                up, down = np.maximum(mix, 0.0).sum(axis=2), np.maximum(-mix, 0.0).sum(axis=2)  # (M, H, F)
                more, less = (np.maximum(part, 0.0).transpose(2, 0, 1) for part in (moved, -moved))  # (M, n, H)
                rise, fall = (part.transpose(1, 2, 0) for part in (more @ up + less @ down, more @ down + less @ up))
                return rise, fall, np.einsum("nhm,mhf->nfm", np.abs(moved), self._ranges)
            flat = moved.transpose(2, 0, 1) @ mix.reshape(n_members, mix.shape[1], -1)
            step = flat.transpose(1, 2, 0).reshape(n, n_experts - 1, n_features, n_members)
        level = np.concatenate([np.zeros_like(step[:, :1]), np.cumsum(step, axis=1)], axis=1)
        sway = level.max(axis=1) - level.min(axis=1)
        return np.maximum(step, 0.0).sum(axis=1), np.maximum(-step, 0.0).sum(axis=1), sway

    def _sway(self, feature: int, targets: IntArray) -> Array:
        """Return the most by which a feature changes the difference of two logits of the targets, (target, M)."""
        out = np.zeros((len(targets), self.model.n_members))
        if self.is_fixed:
            return out
        terms = self._terms(self.reachable[feature], targets)
        if not self.model.gate.is_additive:
            return np.asarray(np.einsum("hm,mhf->fm", np.ptp(terms, axis=0), self._ranges[:, :, targets]))
        logits = self._logits(terms - terms[0], feature, targets)  # equal terms are exactly zero
        for k in range(self.model.n_experts):
            out = np.maximum(out, np.ptp(logits - logits[:, k : k + 1], axis=0).max(axis=0))
        return out

    def _swayed(self, target: int) -> Array:
        """Return the most by which every feature changes the difference of two logits of one target, (F, M)."""
        return np.concatenate([self._sway(i, np.array([target])) for i in range(self.model.n_features)])

    def _terms(self, slots: IntArray, targets: IntArray) -> Array:
        """Return the gate terms of slots that may reach the logits of the targets, (n, term, M)."""
        gate, model = self.model.gate, self.model
        if gate.multiplies or not gate.sums_features:
            terms = gate.terms[slots].astype(np.float64)
            return terms if gate.is_additive else terms * self._fires
        by_target = gate.terms.reshape(len(gate.terms), model.n_experts, model.n_features, model.n_members)
        found = by_target[slots[:, None], :, targets]  # (n, target, K, M); all terms would be copied otherwise
        return found.transpose(0, 2, 1, 3).reshape(len(slots), -1, model.n_members).astype(np.float64)

    def _logits(self, moved: Array, feature: int, targets: IntArray) -> Array:
        """Return the part of the targets' logits that a gate without ReLU makes of terms, (n, K, target, M)."""
        gate, model = self.model.gate, self.model
        if not gate.sums_features:
            return np.asarray(moved[:, :, None] * (targets == feature)[:, None])
        if gate.mix is None:
            return moved.reshape(len(moved), model.n_experts, len(targets), model.n_members)
        mix = gate.mix.reshape(model.n_members, -1, model.n_experts, model.n_features)[..., targets]
        return np.asarray(np.einsum("nhm,mhkf->nkfm", moved, mix, optimize=True))

    @cached_property
    def _fires(self) -> BoolArray:
        """Whether any input makes a hidden unit of a deep gate positive, (H, M)."""
        gate = self.model.gate
        highest = (gate.terms[own].max(axis=0).astype(np.float64) for own in self.reachable)
        return np.asarray(gate.bias + sum(highest) > 0)

    @cached_property
    def _ranges(self) -> Array:
        """The largest difference of two logits of a feature that each hidden unit makes, (M, H, F)."""
        if self.model.gate.mix is None:
            raise TypeError(f"A {self.model.gate.kind} gate has no matrix.")
        mix = self.model.gate.mix
        return np.asarray(np.ptp(mix.reshape(*mix.shape[:2], self.model.n_experts, -1), axis=2))

    def _shifted(self, sway: Array) -> Array:
        """Return the largest share of the weight that a change of logits moves from some experts to others: fact 3."""
        return (sway > 0).astype(np.float64) if self.jumps else np.tanh(sway / 4)
