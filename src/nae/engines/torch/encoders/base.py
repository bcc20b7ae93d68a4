"""What training asks of an evaluated network."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nae.engines.torch.cells import RowCells
from nae.engines.torch.routed import Routed

if TYPE_CHECKING:
    from nae.engines.torch.network import TorchNetwork

__all__ = ["Evaluation", "ExpertSample"]


@dataclass(frozen=True, eq=False)
class ExpertSample:
    """Values of the experts that a penalty on their spread is computed from."""

    values: Tensor  # (N, K, O, ..., M)
    weight: Tensor  # (N,), mean one
    is_local: bool
    """Whether the values belong to rows of this worker; otherwise every worker has the same ones."""


@dataclass(frozen=True, eq=False)
class Evaluation(ABC):
    """A network whose weights stay as they are for a while, to be asked about rows."""

    network: "TorchNetwork"

    @abstractmethod
    def at(self, cells: RowCells) -> tuple[Tensor, Tensor]:
        """Return the experts (B, K, O, F, M) and the summed gate terms (M, B, width) of every row."""

    def route(self, cells: RowCells, weight: Tensor | None = None) -> Routed:
        """Return scores and contributions of a batch. If ``weight`` is None, rows count alike in the mean routing."""
        return self._route(cells, torch.ones_like(cells.fraction[:, 0]) if weight is None else weight)

    def _route(self, cells: RowCells, weight: Tensor) -> Routed:
        return self.network.route(*self.at(cells), weight)

    @abstractmethod
    def score_member(self, member: int, cells: RowCells) -> Tensor:
        """Return the scores of one member alone, (B, O, 1)."""

    def own_effect(self, routed: Routed, mean_routing: Tensor, cells: RowCells) -> Tensor:
        """Return each contribution with its feature's mean routing, (B, O, F, M): what context cannot change."""
        return routed.own_effect(mean_routing)

    @abstractmethod
    def sample_experts(self, routed: Routed, weight: Tensor, slot_weight: Tensor) -> ExpertSample:
        """Return values of the experts, from the rows of a batch with their weights or from all slots with theirs."""

    def curves(self) -> list[Tensor]:
        """Return the values of experts, and of gate terms, on all slots: (F, S, C, M) each."""
        raise TypeError("Curves are known where a network is evaluated on knots.")

    def filled(self, slot_weight: Tensor) -> "Evaluation":
        """Return the evaluation by which new rows are judged: what no row trains has the mean of the rest."""
        return self
