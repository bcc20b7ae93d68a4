"""The mean gate: the contribution of a feature if the gate terms of all other features have their mean.

Attributions of context shifts start here. The reference logits of a feature keep its own gate term, and hold the terms
of all other features at their mean over the training rows.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nae._typing import Array
from nae.encoding.cells import Cells
from nae.errors import DataError
from nae.tables.lookup import interpolate
from nae.tables.model import TableModel
from nae.tables.statistics import Statistics

__all__ = ["MeanGate", "all_slots", "has_context", "mean_contributions", "mean_terms", "require_statistics"]


def has_context(model: TableModel) -> bool:
    """Return whether any feature can change the contribution of another one."""
    return model.n_experts > 1 and model.n_features > 1 and model.gate.sums_features


def require_statistics(model: TableModel) -> Statistics:
    """Return the model's statistics. If it has none, the error says how to add them."""
    if model.statistics is None:
        raise DataError(
            "An explanation needs the statistics of the training rows; this model was built without them. "
            "Use nae.explanation.with_statistics(model, X)."
        )
    return model.statistics


def mean_terms(model: TableModel, weight: Array) -> Array:
    """Return the mean gate terms of every feature, (feature, width, member), given the weight of every slot."""
    means = []
    for i in range(model.n_features):
        slots = model.schema.slots(i)
        own = weight[slots]
        means.append(np.tensordot(own / own.sum(), model.gate.terms[slots], axes=1))
    return np.stack(means)


def mean_contributions(model: TableModel) -> Array:
    """Return the mean own effect of every feature over the training rows: the average row, (feature, output)."""
    statistics = require_statistics(model)
    means = []
    for i in range(model.n_features):
        weight = statistics.weight[model.schema.slots(i)]
        means.append(weight / weight.sum() @ statistics.mean[model.schema.slots(i)])
    return np.stack(means)


def all_slots(model: TableModel) -> Cells:
    """Return cells that visit every slot: row t holds the t-th slot of every feature, or its last slot."""
    sizes = np.diff(model.schema.offsets)
    within = np.minimum(np.arange(sizes.max())[:, None], sizes - 1)
    slot = (within + model.schema.offsets[:-1]).astype(np.int32)
    return Cells(slot, np.zeros(slot.shape, dtype=model.experts.dtype))


@dataclass(frozen=True, eq=False)
class MeanGate:
    """A model's gate with all features but one at their mean."""

    model: TableModel
    means: Array  # (feature, width, member)

    def centred_terms(self, cells: Cells) -> Array:
        """Return gate terms minus their means, (row, feature, width, member)."""
        return np.asarray(interpolate(self.model.gate.terms, cells) - self.means.astype(self.model.gate.terms.dtype))

    def logits(self, cells: Cells) -> Array:
        """Return the reference logits, (row, expert, feature, member)."""
        gate = self.model.gate
        if not gate.sums_features:
            return gate.logits(cells)
        if not gate.is_additive:
            return self.mix(np.maximum(self.own_hidden(cells), 0.0))
        return np.ascontiguousarray(interpolate(self._slot_logits, cells).transpose(0, 2, 1, 3))

    def own_hidden(self, cells: Cells) -> Array:
        """Return the hidden values of every feature's reference, (row, feature, width, member)."""
        total = self.means.sum(axis=0) + self.model.gate.bias
        base = (total - self.means).astype(self.model.gate.terms.dtype)
        return np.asarray(interpolate(self.model.gate.terms, cells) + base)

    def mix(self, active: Array) -> Array:
        """Return the logits of hidden values that are different for each feature: (B, F, H, M) -> (B, K, F, M)."""
        gate, model = self.model.gate, self.model
        if gate.mix is None or gate.mix_bias is None:
            raise TypeError(f"A {gate.kind} gate has no matrix.")
        mix = gate.mix.reshape(model.n_members, -1, model.n_experts, model.n_features)
        by_feature = np.matmul(active.transpose(1, 3, 0, 2), mix.transpose(3, 0, 1, 2))  # (F, M, B, K)
        bias = gate.mix_bias.reshape(model.n_experts, model.n_features, model.n_members)
        return np.ascontiguousarray(by_feature.transpose(2, 3, 0, 1)) + bias

    @cached_property
    def _slot_logits(self) -> Array:
        """Return the reference logits at every slot, (slot, expert, member); like the gate, they are linear between."""
        model, gate = self.model, self.model.gate
        base = (self.means.sum(axis=0) + gate.bias - self.means).astype(gate.terms.dtype)  # (F, H, M)
        out = np.empty((model.schema.n_slots, model.n_experts, model.n_members), dtype=gate.terms.dtype)
        for i in range(model.n_features):
            slots = model.schema.slots(i)
            if gate.mix is None or gate.mix_bias is None:
                own = slice(i, None, model.n_features)  # the width is ordered (expert, feature)
                out[slots] = gate.terms[slots, own] + base[i, own]
            else:
                hidden = (gate.terms[slots] + base[i]).transpose(2, 0, 1)  # (M, slot, H)
                own = slice(i, None, model.n_features)
                out[slots] = np.matmul(hidden, gate.mix[:, :, own]).transpose(1, 2, 0) + gate.mix_bias[own]
        return out

    def contributions(self, cells: Cells) -> Array:
        """Return the contributions under the reference logits, by member: (row, feature, output, member).

        Clamps are left out, because they hold for the mean over the members.
        """
        experts = interpolate(self.model.experts, cells)  # (B, F, K, O, M)
        if self.model.n_experts == 1:
            return np.asarray(experts[:, :, 0])
        weights = self.model.routing.weights(self.logits(cells))
        return np.asarray(np.einsum("bfkom,bkfm->bfom", experts, weights))

    def slot_effects(self) -> Array:
        """Return the reference contribution at every slot, by member: (slot, output, member), without clamps."""
        model = self.model
        visited = all_slots(model)
        out = np.empty((model.schema.n_slots, model.n_outputs, model.n_members))
        for rows, part in model.iterate(visited):
            out[visited.slot[rows]] = self.contributions(part)
        return out
