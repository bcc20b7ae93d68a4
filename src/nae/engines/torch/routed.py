"""What a network computes for a batch."""

from dataclasses import dataclass

from torch import Tensor

__all__ = ["Routed"]


@dataclass(frozen=True)
class Routed:
    """Scores and contributions of the rows of a batch."""

    score: Tensor  # (B, O, M)
    contributions: Tensor  # (B, O, F, M)
    mean_routing: Tensor  # (K, F, M), over the rows with their weights
    experts: Tensor | None = None  # (B, K, O, F, M)
    """The experts of every row; like ``routing``, None where experts were mixed a few rows at a time."""
    routing: Tensor | None = None  # (B, K, F, M)

    @property
    def kept_experts(self) -> Tensor:
        """The experts of every row, of a batch that was not mixed a few rows at a time."""
        if self.experts is None:
            raise ValueError("The experts of the rows were mixed a few rows at a time and not kept.")
        return self.experts

    def own_effect(self, mean_routing: Tensor) -> Tensor:
        """Return each contribution with its feature's mean routing, (B, O, F, M)."""
        return (self.kept_experts * mean_routing.unsqueeze(1)).sum(dim=1)
