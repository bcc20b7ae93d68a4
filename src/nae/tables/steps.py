"""The steps of a gate: what turns the cells of a row into logits, one step after the other.

A gate begins with a step that looks up terms: :class:`SumTerms` or :class:`OwnTerms`. Steps that change its values may
follow: :class:`Rectify` and :class:`Multiply`. :data:`nae.tables.gates.GATES` says which steps each gate has.

Values have shape (row, unit, member). The last step gives one unit per logit, ordered (expert, feature).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from nae._typing import Array
from nae.encoding.cells import Cells
from nae.tables.lookup import interpolate, interpolate_sum

if TYPE_CHECKING:
    from nae.tables.gates import GateTables

__all__ = ["Change", "Multiply", "OwnTerms", "Rectify", "SumTerms", "Terms"]

_ONE_THREAD = 2**18  # multiplications of a product; for larger ones BLAS starts threads, which wait for each other


@dataclass(frozen=True, eq=False)
class Terms(ABC):
    """A first step: look up the terms of every feature at its cell, and add a bias."""

    terms: Array  # (slot, term, member)
    bias: Array  # (unit, member)

    @classmethod
    def of(cls, gate: "GateTables") -> Self:
        """Return the step with the arrays of a gate."""
        return cls(gate.terms, gate.bias)

    @abstractmethod
    def look_up(self, cells: Cells) -> Array:
        """Return the values of a table's rows, (row, unit, member)."""


class SumTerms(Terms):
    """Sum the terms over the features: one unit per term."""

    def look_up(self, cells: Cells) -> Array:
        total = interpolate_sum(self.terms, cells)
        total += self.bias
        return total


class OwnTerms(Terms):
    """Keep the terms of every feature apart, one per expert: they are the logits of its own experts."""

    def look_up(self, cells: Cells) -> Array:
        own = interpolate(self.terms, cells)  # (B, F, K, M)
        n_rows, n_features, n_experts, n_members = own.shape
        return own.transpose(0, 2, 1, 3).reshape(n_rows, n_experts * n_features, n_members) + self.bias


class Change(ABC):
    """A later step: values from values."""

    is_linear: ClassVar[bool]

    @classmethod
    @abstractmethod
    def of(cls, gate: "GateTables") -> Self:
        """Return the step with the arrays of a gate."""

    @abstractmethod
    def apply(self, values: Array) -> Array:
        """Return the new values, (row, unit, member)."""


@dataclass(frozen=True, eq=False)
class Rectify(Change):
    """Replace negative values by zero."""

    is_linear: ClassVar[bool] = False

    @classmethod
    def of(cls, gate: "GateTables") -> Self:
        return cls()

    def apply(self, values: Array) -> Array:
        return np.maximum(values, 0.0)


@dataclass(frozen=True, eq=False)
class Multiply(Change):
    """Multiply the values of every member by its matrix, and add a bias."""

    matrix: Array  # (member, unit before, unit after)
    bias: Array  # (unit after, member)

    is_linear: ClassVar[bool] = True

    @classmethod
    def of(cls, gate: "GateTables") -> Self:
        if gate.mix is None or gate.mix_bias is None:
            raise TypeError(f"A {gate.kind} gate multiplies; it must have mix and mix_bias.")
        return cls(gate.mix, gate.mix_bias)

    def apply(self, values: Array) -> Array:
        by_member = np.ascontiguousarray(values.transpose(2, 0, 1))
        n_members, n_rows, n_before = by_member.shape
        n_after = self.matrix.shape[2]
        product = np.empty((n_members, n_rows, n_after), dtype=np.result_type(values, self.matrix))
        step = max(1, _ONE_THREAD // (n_after * n_before))
        for start in range(0, n_rows, step):
            rows = slice(start, start + step)
            np.matmul(by_member[:, rows], self.matrix, out=product[:, rows])
        product += self.bias.T[:, None]
        return product.transpose(1, 2, 0)
