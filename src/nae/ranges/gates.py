"""The units of a gate: what its features add up to. Units are logits, except in a deep gate, which rectifies them.

Shapes: K experts, F features, M members, W units; V vertices of a domain.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nae._typing import Array
from nae.encoding.cells import Cells
from nae.ranges.domains import Domain
from nae.tables.model import TableModel

__all__ = ["Units"]


@dataclass(frozen=True, eq=False)
class Units:
    """The units of a model's gate."""

    model: TableModel

    @property
    def shape(self) -> tuple[int, int, int]:
        """Experts, features and members: the axes of logits after the rows."""
        return self.model.n_experts, self.model.n_features, self.model.n_members

    @property
    def n_first(self) -> int:
        """The length of the first axis of units (group, n, W * M / group): one group per expert if units are logits."""
        return self.shape[0] if self.model.gate.is_additive else 1

    def at(self, cells: Cells) -> Array:
        """Return the units of rows, (group, row, ...)."""
        gate = self.model.gate
        return self.grouped(gate.logits(cells) if gate.is_additive else gate.hidden(cells))

    def grouped(self, units: Array) -> Array:
        """Return units (n, W, M), or logits (n, K, F, M), with their groups first: reductions over experts are fast."""
        apart = units.reshape(len(units), self.n_first, -1)
        return np.ascontiguousarray(apart.swapaxes(0, 1), dtype=np.float64)

    def along(self, domain: Domain) -> Array:
        """Return what every vertex adds to the units beyond the first vertex, (V, W, M)."""
        gate = self.model.gate
        added = domain.read(gate.terms)
        added -= added[0]
        if not gate.is_additive:
            return added
        if not gate.sums_features:
            own = np.zeros((len(domain), *self.shape))
            own[:, :, domain.feature] = added
            added = own.reshape(len(domain), -1, self.shape[2])
        if gate.mix is not None:
            added = np.einsum("vhm,mhl->vlm", added, gate.mix, optimize=True)
        return _centred(added, axis=1, n_experts=self.shape[0])

    def refined(self, domain: Domain, *, step: float, n_places: int) -> Domain:
        """Return a domain with vertices between which logits move by about a step, as far as there is room for them."""
        added = self.along(domain)
        moved = np.abs(np.diff(added, axis=0))
        if not self.model.gate.is_additive:
            moved = np.einsum("vhm,mhl->vlm", moved, np.abs(self._mix), optimize=True)
        moves = moved.mean(axis=-1).max(axis=1, initial=0.0)
        return domain.refined(moves, step=step, most=n_places // added[0].size)

    def logits(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return the least and the largest logits, (K, n, F * M), of units (group, n, ...) between two ends."""
        gate, n = self.model.gate, low.shape[1]
        if gate.is_additive or gate.mix_bias is None:
            return low, high
        n_experts, n_features, n_members = self.shape
        low, high = (np.maximum(end, 0.0).reshape(n, -1, n_members).transpose(2, 0, 1) for end in (low, high))
        up, down = np.maximum(self._mix, 0.0), np.minimum(self._mix, 0.0)
        bias = gate.mix_bias.T[:, None]
        ends = low @ up + high @ down + bias, high @ up + low @ down + bias  # (M, n, K * F)
        apart = (end.reshape(n_members, n, n_experts, n_features).transpose(2, 1, 3, 0) for end in ends)
        least, most = (end.reshape(n_experts, n, -1) for end in apart)
        return least, most

    @cached_property
    def _mix(self) -> Array:
        """The matrix of a deep gate, without what it does to all experts of a feature alike, (M, W, K * F)."""
        mix = self.model.gate.mix
        if mix is None:
            raise TypeError(f"A {self.model.gate.kind} gate has no matrix.")
        return _centred(mix, axis=2, n_experts=self.shape[0])


def _centred(logits: Array, *, axis: int, n_experts: int) -> Array:
    """Return logits minus the mean over the experts of a feature, which changes no weight."""
    shape = (*logits.shape[:axis], n_experts, -1, *logits.shape[axis + 1 :])
    apart = logits.reshape(shape)
    return np.asarray((apart - apart.mean(axis=axis, keepdims=True)).reshape(logits.shape))
