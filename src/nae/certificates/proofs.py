"""Upper bounds, for every possible input, of what one feature can do: read off the tables of a model.

This file is meant to be read by an auditor, and so is ``logits.py``, which says what one feature does to the logits.
Both need numpy and the arrays of a :class:`TableModel`, and share no code with training.
``docs/guarantees.md`` has the statements and proofs in words.

The score is w0 + sum_j c_j with c_j = sum_k r_jk o_jk. The weights r_j are the softmax of the logits z_j. Experts o_j
and gate terms are linear between the knots of one feature. Four facts carry every bound:

1. A linear function on an interval is largest at one of the ends, and so is a maximum of linear functions.
2. While a value moves, dc_j = sum_k r_jk do_jk + Cov_r(dz_j, o_j), and |Cov_r(a, b)| <= range(a) range(b) / 4.
   If a and b both ascend with k, the covariance is not negative.
3. If the differences of the logits change by at most s, no set of experts gains more than tanh(s / 4) of the weight.
4. A mean of curves is above its chords by no more than the curve that is highest above its own. Between the knots, a
   curve is farthest above its chords at a knot. A change of the weights by a share s adds at most s range_k(o_jk).

Shapes: T slots, K experts, F features, H gate width, M members; n slots of one feature. A mean over members comes last.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from nae._typing import Array, IntArray
from nae.certificates.chords import above_chords, places_of
from nae.certificates.logits import Logits
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
        model = self.model
        n_features, n_experts, n_members = model.n_features, model.n_experts, model.n_members
        size = sum(float(np.abs(self.experts[own]).max()) for own in self.reachable)
        error = (
            self.eps * (n_features + n_experts * n_members + 8) * (size + abs(float(model.intercept @ self.direction)))
        )
        return error + self.logit_rounding * float(self.room.mean(axis=-1).sum()) / 2

    @cached_property
    def logit_rounding(self) -> float:
        """The most by which a computed logit differs from the exact one."""
        model, gate = self.model, self.model.gate
        if self.is_fixed:
            return 0.0
        largest = (np.abs(gate.terms[own]).max(axis=0) for own in self.reachable)  # (width, M)
        logits = sum(one.astype(np.float64) for one in largest) + np.abs(gate.bias).max()
        if gate.mix is not None and gate.mix_bias is not None:
            logits = np.einsum("hm,mhl->lm", logits, np.abs(gate.mix)) + np.abs(gate.mix_bias)
        return float(self.eps * (2 * model.n_features + gate.terms.shape[1] + 8) * np.max(logits))

    @cached_property
    def logits(self) -> Logits:
        """What the gate makes of a change of one feature."""
        return Logits(self.model, self.reachable)

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

    def bend(self, feature: int, sign: int) -> float:
        """Return the most by which the score is above a chord (``sign`` 1) over the knots of a number, or below (-1).

        A chord is a straight line between the scores at two values of the number, while all else remains the same.
        """
        bend = self._own_bend(feature, sign) + float(self._felt(feature).sum())
        return min(bend, self.effect(feature)) if bend > 0 else 0.0

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

    def _own_bend(self, feature: int, sign: int) -> float:
        """Return the most by which the own contribution is above a chord, or below: fact 4."""
        own = sign * self._own(feature, self.knots(feature))
        if own.shape[1] == 1:  # the weights are the same everywhere, so the mean over the members is exact
            own = own.mean(axis=-1, keepdims=True)
        places = self.places(feature)
        rises = np.apply_along_axis(lambda curve: above_chords(places, curve).gap, 0, own)  # (K, M)
        far = (own.max(axis=1) - own.min(axis=1)).max(axis=0)
        shifted = self._shifted(self._sway(feature, np.array([feature]))[0])
        return float(rises.max(axis=0).mean() + (far * shifted).mean())

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
        """Return the slots of a number, or of levels in order, without missing and unseen."""
        own = self.reachable[feature]
        return own[: self.model.schema.features[feature].n_values]

    def places(self, feature: int) -> Array:
        """Return where the knots of a number lie, from 0 to 1."""
        number = self.model.schema.features[feature]
        if not isinstance(number, Number):
            raise TypeError(f"{number.name!r} is no number, so its slots have no places.")
        return places_of(number.knots)

    def _own(self, feature: int, slots: IntArray) -> Array:
        """Return the experts of a feature, (n, K, M), or their mean (n, 1, M) if no input changes their weights."""
        own = self.experts[slots]
        if self._swayed(feature).any():
            return own
        if self.is_fixed:
            return np.asarray(own.mean(axis=1, keepdims=True))
        weights = self.model.routing.weights(self.logits.anywhere())[0, :, feature]
        return np.asarray((own * weights).sum(axis=1, keepdims=True))

    def _gate_loss(self, feature: int, knots: IntArray, own: Array) -> Array:
        """Return the most that every contribution loses to the gate, from knot to knot, (n - 1, F, M): fact 2."""
        rise, fall, sway = self.logits.steps(feature, knots, self.order)
        far = own.max(axis=1) - own.min(axis=1)
        room = np.repeat(self.room[None], len(knots) - 1, axis=0)
        room[:, feature] = np.maximum(far[1:], far[:-1])
        if self.jumps:  # the order must be exact: where the active set changes, weight jumps
            is_safe = (sway == 0) | (room == 0) | ((fall == 0) & (self.disorder == 0))
            return np.asarray(np.where(is_safe, 0.0, np.inf))
        return np.asarray(np.minimum(fall * room + rise * self.disorder, sway * room) / 4)

    def _sway(self, feature: int, targets: IntArray) -> Array:
        """Return the most by which a feature changes the difference of two logits of the targets, (target, M)."""
        if self.is_fixed:
            return np.zeros((len(targets), self.model.n_members))
        return self.logits.sway(feature, targets)

    def _swayed(self, target: int) -> Array:
        """Return the most by which every feature changes the difference of two logits of one target, (F, M)."""
        if target not in self._sways:
            own = np.array([target])
            self._sways[target] = np.concatenate([self._sway(i, own) for i in range(self.model.n_features)])
        return self._sways[target]

    @cached_property
    def _sways(self) -> dict[int, Array]:
        """What was found so far: every proof about a feature asks for it."""
        return {}

    def _shifted(self, sway: Array) -> Array:
        """Return the largest share of the weight that a change of logits moves from some experts to others: fact 3."""
        return (sway > 0).astype(np.float64) if self.jumps else np.tanh(sway / 4)
