"""Gates: the tables that turn a row's cells into logits.

additive    logits = bias + sum over features of the interpolated terms                   terms (T, K*F, M)
low-rank    the same sum in a space of H numbers, then a linear map to the logits          terms (T, H, M)
deep        as low-rank, with a ReLU in between
diagonal    each feature's own terms alone                                                 terms (T, K, M)
"""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array
from nae.encoding.cells import Cells
from nae.tables.lookup import interpolate, interpolate_sum

__all__ = ["GATES", "GateTables"]

_ONE_THREAD = 2**18  # multiplications of a product; for larger ones BLAS starts threads, which wait for each other
GATES = ("additive", "low-rank", "deep", "diagonal")


@dataclass(frozen=True, eq=False)
class GateTables:
    """The gate of all members."""

    kind: str
    terms: Array  # (slot, width, member)
    bias: Array  # (width, member); diagonal: (expert * feature, member)
    mix: Array | None = None  # (member, width, expert * feature), low-rank and deep
    mix_bias: Array | None = None  # (expert * feature, member), low-rank and deep

    @property
    def is_additive(self) -> bool:
        """Whether the logits are a sum of functions of one feature each."""
        return self.kind != "deep"

    def hidden(self, cells: Cells) -> Array:
        """Return bias plus summed terms, (row, width, member)."""
        if self.kind == "diagonal":
            own = interpolate(self.terms, cells)  # (B, F, K, M)
            n_rows, n_features, n_experts, n_members = own.shape
            return own.transpose(0, 2, 1, 3).reshape(n_rows, n_experts * n_features, n_members) + self.bias
        total = interpolate_sum(self.terms, cells)
        total += self.bias
        return total

    def to_logits(self, hidden: Array, n_features: int) -> Array:
        """Return the logits of hidden values, (row, expert, feature, member)."""
        n_rows, _, n_members = hidden.shape
        if self.mix is None or self.mix_bias is None:
            return hidden.reshape(n_rows, hidden.shape[1] // n_features, n_features, n_members)
        active = np.maximum(hidden, 0.0) if self.kind == "deep" else hidden
        by_member = np.ascontiguousarray(active.transpose(2, 0, 1))
        n_logits = self.mix.shape[2]
        mixed = np.empty((n_members, n_rows, n_logits), dtype=np.result_type(hidden, self.mix))
        step = max(1, _ONE_THREAD // (n_logits * self.mix.shape[1]))
        for start in range(0, n_rows, step):
            rows = slice(start, start + step)
            np.matmul(by_member[:, rows], self.mix, out=mixed[:, rows])
        mixed += self.mix_bias.T[:, None]
        return mixed.reshape(n_members, n_rows, n_logits // n_features, n_features).transpose(1, 2, 3, 0)

    def logits(self, cells: Cells) -> Array:
        """Return the logits of every row, (row, expert, feature, member)."""
        return self.to_logits(self.hidden(cells), cells.slot.shape[1])
