"""The paper's encoder, evaluated on the rows of every batch."""

import math
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from nae._typing import Array
from nae.encoding import Columns, Schema
from nae.network.cells import RowCells
from nae.network.encoders.base import Encoder, Evaluation, ExpertSample
from nae.network.inputs import quantile_inputs
from nae.network.routed import Routed

if TYPE_CHECKING:
    from nae.network.network import Network

__all__ = ["OnRows", "RowEncoder"]


class OnRows(Evaluation):
    """Nothing is known in advance: every batch goes through the blocks."""

    def at(self, cells: RowCells) -> tuple[Tensor, Tensor]:
        network = self.network
        slots, weights = cells.ends()
        table = network.inputs.flatten(0, 1)
        rows = (table[slots] * weights.unsqueeze(-1)).sum(dim=2).transpose(0, 1)  # (F, B, in)
        hidden = network.trunk(rows)
        own = network.spread(network.to_experts(hidden).permute(2, 1, 3, 0).flatten(2))
        return own, network.gate.at_rows(hidden)

    def score_member(self, member: int, cells: RowCells) -> Tensor:
        return self.route(cells).score[..., member : member + 1]

    def sample_experts(self, routed: Routed, weight: Tensor, slot_weight: Tensor) -> ExpertSample:
        """Return the experts of the rows."""
        return ExpertSample(routed.kept_experts, weight, is_local=True)


class RowEncoder(Encoder):
    """Quantile-normal inputs and the paper's start; its tables are exact on the knots alone."""

    has_exact_tables = False

    def make_inputs(self, schema: Schema, columns: Columns, *, n_ramps: int, random: np.random.Generator) -> Array:
        return quantile_inputs(schema, columns, random)

    def block_bounds(self, n_features: int, in_dim: int, out_dim: int) -> tuple[float, float]:
        # PAPER: with plain He scales the paper's architecture stops well short of its figures.
        return math.sqrt(6 / (in_dim * out_dim)), 1 / math.sqrt(n_features * in_dim)

    def expert_bounds(self, n_features: int, hidden_dim: int, n_experts: int) -> tuple[float, float]:
        return math.sqrt(6 / (hidden_dim * n_experts)), 1 / math.sqrt(n_features * hidden_dim)

    def count_evaluated(self, *, n_slots: int, batch_size: int) -> int:
        return batch_size

    def evaluate(self, network: "Network") -> OnRows:
        return OnRows(network)
