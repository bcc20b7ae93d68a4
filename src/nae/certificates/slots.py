"""The contributions of rows that stand on slots, in double precision. Moving one feature needs no new sum over all.

Every row is given by its slots: knots, levels, *missing*, *unseen*. ``hidden`` are the values after a gate's first
step, (row, unit, member).
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from nae._typing import Array, IntArray
from nae.certificates.proofs import Tables
from nae.tables.gates import GateTables

__all__ = ["SlotRows", "contributions"]


@dataclass(frozen=True, eq=False)
class SlotRows:
    """What the contributions of some features, the targets, follow from."""

    tables: Tables
    targets: IntArray
    gate: GateTables  # of the targets' logits alone

    @classmethod
    def of(cls, tables: Tables, targets: IntArray) -> Self:
        """Return what the contributions of the targets follow from."""
        model, gate = tables.model, tables.model.gate
        if len(targets) == model.n_features:
            return cls(tables, targets, gate)
        sizes = (model.n_experts, model.n_features)

        def part(array: Array, axis: int) -> Array:
            """Return an array without the logits of other features, which are the parts of one axis."""
            shape = array.shape
            apart = array.reshape(*shape[:axis], *sizes, *shape[axis + 1 :]).take(targets, axis=axis + 1)
            return apart.reshape(*shape[:axis], -1, *shape[axis + 1 :])

        if gate.mix is not None and gate.mix_bias is not None:
            return cls(tables, targets, replace(gate, mix=part(gate.mix, 2), mix_bias=part(gate.mix_bias, 0)))
        terms = part(gate.terms, 1) if gate.sums_features else gate.terms
        return cls(tables, targets, replace(gate, terms=terms, bias=part(gate.bias, 0)))

    def hidden(self, rows: IntArray) -> Array:
        """Return the hidden values of rows, (row, feature)."""
        if not self.gate.sums_features:
            own = self.gate.terms[rows[:, self.targets]].swapaxes(1, 2)  # (row, K, target, M)
            return np.asarray(own.reshape(len(rows), *self.gate.bias.shape) + self.gate.bias)
        total = np.repeat(self.gate.bias[None], len(rows), axis=0)
        for slots in rows.T:
            total += self.gate.terms[slots]
        return total

    def moved(self, row: IntArray, hidden: Array, feature: int, slots: IntArray) -> tuple[IntArray, Array]:
        """Return copies of a row with a feature at each of some slots, and their hidden values."""
        rows = np.repeat(row[None], len(slots), axis=0)
        rows[:, feature] = slots
        if not self.gate.sums_features:
            return rows, self.hidden(rows)
        rest = hidden - self.gate.terms[row[feature]]
        return rows, rest + self.gate.terms[slots]

    def contributions(self, rows: IntArray, hidden: Array) -> Array:
        """Return the contributions of the targets to the score, (row, target)."""
        model = self.tables.model
        for step in self.gate.changes:
            hidden = step.apply(hidden)
        logits = hidden.reshape(len(rows), model.n_experts, len(self.targets), model.n_members)
        own = model.experts[rows[:, self.targets]]  # (row, target, K, O, M)
        found = np.einsum("rfkom,rkfm->rfo", own, model.routing.weights(logits)) / model.n_members
        if model.clamps is not None:
            found = model.clamps.clip_slots(found, rows[:, self.targets])
        return np.asarray(found @ self.tables.direction)


def contributions(tables: Tables, rows: IntArray) -> Array:
    """Return the contributions to the score of a few rows of slots, (row, feature)."""
    every = SlotRows.of(tables, np.arange(tables.model.n_features))
    return every.contributions(rows, every.hidden(rows))
