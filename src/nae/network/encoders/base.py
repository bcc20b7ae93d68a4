"""What a network asks of its encoder, and what training asks of an evaluated network."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from nae._typing import Array
from nae.encoding import Columns, Schema
from nae.network.cells import RowCells
from nae.network.groups import Groups
from nae.network.routed import Routed

if TYPE_CHECKING:
    from nae.network.network import Network

__all__ = ["Encoder", "Evaluation", "ExpertSample"]


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

    network: "Network"

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

    def filled(self, slot_weight: Tensor) -> "Evaluation":
        """Return the evaluation by which new rows are judged: what no row trains has the mean of the rest."""
        return self


class Encoder(ABC):
    """How a network reads the values of features: its inputs, its start, and where it is evaluated."""

    has_exact_tables: bool
    """Whether tables hold exactly what the network computes between knots, too."""

    @abstractmethod
    def make_inputs(self, schema: Schema, columns: Columns, *, n_ramps: int, random: np.random.Generator) -> Array:
        """Return a vector per slot, (feature, slot, width)."""

    @abstractmethod
    def block_bounds(self, n_features: int, in_dim: int, out_dim: int) -> tuple[float, float]:
        """Return the bounds between which the weights and the biases of a block are drawn."""

    @abstractmethod
    def expert_bounds(self, n_features: int, hidden_dim: int, n_experts: int) -> tuple[float, float]:
        """Return the bounds between which the weights and the biases of the experts are drawn."""

    def group(self, inputs: Array) -> Groups | None:
        """Return the groups in which features are evaluated; None evaluates all of them at once."""
        return None

    @abstractmethod
    def count_evaluated(self, *, n_slots: int, batch_size: int) -> int:
        """Return how often a step evaluates the blocks of one feature."""

    @abstractmethod
    def evaluate(self, network: "Network") -> Evaluation:
        """Return the network with the weights that it has now, to be asked about rows."""
