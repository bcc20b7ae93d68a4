"""What one feature does to the logits of all features, read off a gate's tables.

Terms are linear between the knots of a feature. An additive gate adds them up; a low-rank gate multiplies the sum by a
matrix; a deep gate has a ReLU before. A hidden unit of a deep gate passes between none and all of a change.

Shapes: T slots, K experts, F features, H gate width, M members; n slots of one feature.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.encoding.cells import Cells
from nae.tables.model import TableModel

__all__ = ["Logits"]


@dataclass(frozen=True, eq=False)
class Logits:
    """The gate of a model, and which slots an input can reach."""

    model: TableModel
    reachable: tuple[IntArray, ...]

    def sway(self, feature: int, targets: IntArray) -> Array:
        """Return the most by which a feature changes the difference of two logits of the targets, (target, M)."""
        terms = self._terms(self.reachable[feature], targets)
        if not self.model.gate.is_additive:
            return np.asarray(np.einsum("hm,mhf->fm", np.ptp(terms, axis=0), self._ranges[:, :, targets]))
        out = np.zeros((len(targets), self.model.n_members))
        logits = self._logits(terms - terms[0], feature, targets)  # equal terms are exactly zero
        for k in range(self.model.n_experts):
            out = np.maximum(out, np.ptp(logits - logits[:, k : k + 1], axis=0).max(axis=0))
        return out

    def steps(self, feature: int, knots: IntArray, order: IntArray) -> tuple[Array, Array, Array]:
        """Return how a step from knot to knot changes the logits of all features, (n - 1, F, M) each.

        The experts are in an order (K, F, M). The differences of neighbouring logits rise by a sum of at most ``rise``
        and fall by at most ``fall``; no two logits change their difference by more than ``sway``.
        """
        gate, n = self.model.gate, len(knots) - 1
        n_experts, n_features, n_members = order.shape
        moved = np.diff(self._terms(knots, np.arange(n_features)), axis=0)
        if gate.mix is None:
            logits = self._logits(moved, feature, np.arange(n_features))
            step = np.diff(np.take_along_axis(logits, order[None], axis=1), axis=1)
        else:
            mix = gate.mix.reshape(n_members, -1, n_experts, n_features)
            mix = np.diff(np.take_along_axis(mix, order.transpose(2, 0, 1)[:, None], axis=2), axis=2)
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

    def anywhere(self) -> Array:
        """Return the logits of one row, (1, K, F, M)."""
        firsts = np.array([slots[0] for slots in self.reachable])
        gate = replace(self.model.gate, terms=self.model.gate.terms[firsts].astype(np.float64))
        return gate.logits(Cells(np.arange(len(firsts))[None], np.zeros((1, len(firsts)))))

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
