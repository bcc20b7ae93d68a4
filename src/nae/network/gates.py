"""Gates in training: from a row's summed terms to the logits of every feature's experts.

A gate owns the weights that turn hidden units into terms, (F, hidden, width, M), a bias, and all that follows the sum.
Everything that depends on the kind of gate is asked of its class.
"""

import math
from typing import ClassVar

import torch
import torch.nn.functional as fn
from torch import Tensor, nn

from nae._typing import Array
from nae.network.cells import RowCells
from nae.network.interpolation import interpolate, interpolate_sum
from nae.network.tensors import project, to_numpy
from nae.tables.gates import GateTables

__all__ = ["GATES", "AdditiveGate", "DeepGate", "DiagonalGate", "Gate", "LowRankGate"]


class Gate(nn.Module):
    """What all gates have in common. A final class says how many terms a feature has and what follows their sum."""

    name: ClassVar[str]
    sums_features: ClassVar[bool] = True
    """Whether the terms of all features are added up."""

    def __init__(
        self,
        n_members: int,
        n_features: int,
        n_experts: int,
        hidden_dim: int,
        *,
        rank: int,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        width = self.width(n_features, n_experts, rank)
        fan = (n_features if self.sums_features else 1) * hidden_dim + width
        weight = torch.randn(n_features, hidden_dim, width, n_members, generator=generator)
        self.weight = nn.Parameter(weight * math.sqrt(2 / fan))
        self.bias = nn.Parameter(torch.zeros(width if self.sums_features else n_experts * n_features, n_members))
        self.n_features, self.n_experts = n_features, n_experts

    @staticmethod
    def width(n_features: int, n_experts: int, rank: int) -> int:
        """Return how many terms a feature has."""
        return n_experts * n_features

    @staticmethod
    def work(n_experts: int, rank: int) -> int:
        """Return how many terms of a feature an estimate of work counts."""
        return n_experts

    def on_slots(self, hidden: Tensor) -> Tensor:
        """Return the terms of hidden units: (M, F, S, hidden) -> (M, F, S, width)."""
        return project(hidden, self.weight)

    def at_cells(self, terms: Tensor, cells: RowCells) -> Tensor:
        """Return the summed terms of rows from those on slots: (M, F * S, width) -> (M, B, width)."""
        return interpolate_sum(terms, cells)

    def at_rows(self, hidden: Tensor) -> Tensor:
        """Return the summed terms of rows from their hidden units: (M, F, B, hidden) -> (M, B, width)."""
        # (M, B, F * hidden) @ (M, F * hidden, width): the features are summed by the product itself.
        units = hidden.permute(0, 2, 1, 3).flatten(2)
        return torch.bmm(units, self.weight.permute(3, 0, 1, 2).flatten(1, 2))

    def logits(self, hidden: Tensor, members: slice = slice(None)) -> tuple[Tensor, Tensor]:
        """Return logits (M, B, K * F) of summed terms (M, B, width), and a bias (M, 1, K * F) to be added.

        ``members`` are those that ``hidden`` belongs to.
        """
        return hidden, self._bias(members)

    def to_tables(self, terms: Array) -> GateTables:
        """Return the gate of the finished model; ``terms`` are those on the slots of its schema, (slot, width, M)."""
        return GateTables(kind=self.name, terms=terms, bias=to_numpy(self.bias))

    def _bias(self, members: slice) -> Tensor:
        return self.bias[:, members].T.unsqueeze(1)


class AdditiveGate(Gate):
    """Every feature adds terms to every logit: Eq. (3) of the paper."""

    name = "additive"


class DiagonalGate(Gate):
    """The terms of a feature go to its own logits alone (NAE-D)."""

    name = "diagonal"
    sums_features = False

    @staticmethod
    def width(n_features: int, n_experts: int, rank: int) -> int:
        return n_experts

    def at_cells(self, terms: Tensor, cells: RowCells) -> Tensor:
        return self._own(interpolate(terms.permute(1, 2, 0).flatten(1), cells))

    def at_rows(self, hidden: Tensor) -> Tensor:
        return self._own(self.on_slots(hidden).permute(2, 1, 3, 0).flatten(2))

    def _own(self, terms: Tensor) -> Tensor:
        """Return the terms as logits: (B, F, K * M) -> (M, B, K * F)."""
        own: Tensor = terms.unflatten(-1, (self.n_experts, -1)).permute(3, 0, 2, 1).flatten(2)
        return own


class LowRankGate(Gate):
    """The terms are summed as ``rank`` numbers, and a linear map gives the logits: weights grow with the features.

    The weights of an additive gate grow with the square of the features.
    """

    name = "low-rank"
    is_deep: ClassVar[bool] = False

    def __init__(
        self, n_members: int, n_features: int, n_experts: int, hidden_dim: int, *, rank: int, generator: torch.Generator
    ) -> None:
        super().__init__(n_members, n_features, n_experts, hidden_dim, rank=rank, generator=generator)
        mix = torch.randn(n_members, rank, n_experts * n_features, generator=generator)
        self.mix = nn.Parameter(mix / math.sqrt(rank))
        self.mix_bias = nn.Parameter(torch.zeros(n_members, 1, n_experts * n_features))

    @staticmethod
    def width(n_features: int, n_experts: int, rank: int) -> int:
        return rank

    @staticmethod
    def work(n_experts: int, rank: int) -> int:
        return rank

    def logits(self, hidden: Tensor, members: slice = slice(None)) -> tuple[Tensor, Tensor]:
        total = hidden + self._bias(members)
        return torch.bmm(fn.relu(total) if self.is_deep else total, self.mix[members]), self.mix_bias[members]

    def to_tables(self, terms: Array) -> GateTables:
        bias, mix_bias = to_numpy(self.bias), to_numpy(self.mix_bias)[:, 0].T
        return GateTables(kind=self.name, terms=terms, bias=bias, mix=to_numpy(self.mix), mix_bias=mix_bias)


class DeepGate(LowRankGate):
    """A low-rank gate with a ReLU before the map: for interactions of many features."""

    name = "deep"
    is_deep = True


GATES: dict[str, type[Gate]] = {gate.name: gate for gate in (AdditiveGate, LowRankGate, DeepGate, DiagonalGate)}
