"""Gates in training: from a row's summed terms to the logits of every feature's experts.

A gate owns the weights that turn hidden units into terms, (F, hidden, width, M), a bias, and whatever follows the sum.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as fn
from torch import Tensor, nn

__all__ = ["GATES", "AdditiveGate", "DeepGate", "DiagonalGate", "Gate", "LowRankGate"]


class Gate(nn.Module):
    """What every gate has; final classes add what follows the sum."""

    sums_features = True  # whether the terms of all features are added up

    def __init__(
        self,
        n_members: int,
        n_features: int,
        n_experts: int,
        hidden_dim: int,
        *,
        width: int,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        fan = (n_features if self.sums_features else 1) * hidden_dim + width
        weight = torch.randn(n_features, hidden_dim, width, n_members, generator=generator)
        self.weight = nn.Parameter(weight * math.sqrt(2 / fan))
        self.bias = nn.Parameter(torch.zeros(width if self.sums_features else n_experts * n_features, n_members))
        self.n_features, self.n_experts = n_features, n_experts

    def logits(self, hidden: Tensor, members: slice = slice(None)) -> tuple[Tensor, Tensor]:
        """(M, B, width) -> (M, B, K * F), and a bias (M, 1, K * F) to add; ``members`` are those of ``hidden``."""
        return hidden, self._bias(members)

    def _bias(self, members: slice) -> Tensor:
        return self.bias[:, members].T.unsqueeze(1)


class AdditiveGate(Gate):
    """Every feature adds its own terms to every logit: Eq. (3) of the paper."""

    def __init__(
        self, n_members: int, n_features: int, n_experts: int, hidden_dim: int, *, rank: int, generator: torch.Generator
    ) -> None:
        super().__init__(
            n_members, n_features, n_experts, hidden_dim, width=n_experts * n_features, generator=generator
        )


class DiagonalGate(Gate):
    """Each feature's terms go to its own logits alone (NAE-D)."""

    sums_features = False

    def __init__(
        self, n_members: int, n_features: int, n_experts: int, hidden_dim: int, *, rank: int, generator: torch.Generator
    ) -> None:
        super().__init__(n_members, n_features, n_experts, hidden_dim, width=n_experts, generator=generator)


class LowRankGate(Gate):
    """The sum lives in ``rank`` numbers; a linear map gives the logits. Grows with features, not their square."""

    is_deep = False

    def __init__(
        self, n_members: int, n_features: int, n_experts: int, hidden_dim: int, *, rank: int, generator: torch.Generator
    ) -> None:
        super().__init__(n_members, n_features, n_experts, hidden_dim, width=rank, generator=generator)
        mix = torch.randn(n_members, rank, n_experts * n_features, generator=generator)
        self.mix = nn.Parameter(mix / math.sqrt(rank))
        self.mix_bias = nn.Parameter(torch.zeros(n_members, 1, n_experts * n_features))

    def logits(self, hidden: Tensor, members: slice = slice(None)) -> tuple[Tensor, Tensor]:
        total = hidden + self._bias(members)
        return torch.bmm(fn.relu(total) if self.is_deep else total, self.mix[members]), self.mix_bias[members]


class DeepGate(LowRankGate):
    """A low-rank gate with a ReLU before the map: for interactions of many features."""

    is_deep = True


GATES: dict[str, Callable[..., Gate]] = {
    "additive": AdditiveGate,
    "low-rank": LowRankGate,
    "deep": DeepGate,
    "diagonal": DiagonalGate,
}
