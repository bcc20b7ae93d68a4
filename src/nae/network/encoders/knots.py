"""The encoder that is evaluated on knots: once for all rows of a step, which lie between them."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from nae._typing import Array
from nae.encoding import Columns, Schema
from nae.network.cells import RowCells
from nae.network.encoders.base import Encoder, Evaluation, ExpertSample
from nae.network.groups import Groups, group_features
from nae.network.inputs import piecewise_inputs
from nae.network.interpolation import interpolate, interpolate_sum
from nae.network.mixing import mix_experts
from nae.network.routed import Routed
from nae.network.untrained import fill_padded

if TYPE_CHECKING:
    from nae.network.network import Network

__all__ = ["KnotEncoder", "OnKnots"]

_SMALL = 0.3  # experts start near zero, as a share of the usual scale


@dataclass(frozen=True, eq=False)
class OnKnots(Evaluation):
    """Experts and gate terms on every slot; rows are interpolated between them."""

    experts: Tensor  # (F * S, K * O * M)
    terms: Tensor  # (M, F * S, width)
    members: slice = field(default_factory=lambda: slice(None))
    """Which of the network's members these are."""

    def at(self, cells: RowCells) -> tuple[Tensor, Tensor]:
        own = self.network.spread(interpolate(self.experts, cells))
        return own, self.network.gate.at_cells(self.terms, cells)

    def _route(self, cells: RowCells, weight: Tensor) -> Routed:
        network = self.network
        if self.experts.is_cuda or not network.mixes_in_blocks:
            return network.route(*self.at(cells), weight, self.members)
        logits = network.gate.logits(interpolate_sum(self.terms, cells), self.members)
        dropped = network.drop(len(weight), n_members=logits[0].shape[0])
        contributions, mean_routing = mix_experts(
            self.experts, *logits, cells, weight, n_outputs=network.n_outputs, dropped=dropped
        )
        return Routed(contributions.sum(dim=2) + network.offset[:, self.members], contributions, mean_routing)

    def score_member(self, member: int, cells: RowCells) -> Tensor:
        """Return the scores of one member alone, (B, O, 1), at its share of the price."""
        members = slice(member, member + 1)
        own = self.experts.unflatten(1, (-1, self.network.config.n_members))[:, :, member].contiguous()
        return OnKnots(self.network, own, self.terms[members], members).route(cells).score

    def own_effect(self, routed: Routed, mean_routing: Tensor, cells: RowCells) -> Tensor:
        if routed.experts is not None:
            return routed.own_effect(mean_routing)
        # Interpolation is linear: mixing the experts on the knots saves mixing those of every row.
        shape = self.network.expert_shape
        experts = self.experts.view(self.network.n_features, -1, *shape)
        mixed = (experts * mean_routing.transpose(0, 1).unsqueeze(2).unsqueeze(1)).sum(dim=2)  # (F, S, O, M)
        own = interpolate(mixed.flatten(0, 1).flatten(1), cells)
        return own.view(*own.shape[:2], *mixed.shape[2:]).transpose(1, 2)

    def sample_experts(self, routed: Routed, weight: Tensor, slot_weight: Tensor) -> ExpertSample:
        """Return the experts on all slots: far fewer than rows, and without sampling noise."""
        return ExpertSample(self.experts.view(-1, *self.network.expert_shape), slot_weight, is_local=False)

    def filled(self, slot_weight: Tensor) -> "OnKnots":
        share = slot_weight.view(self.network.n_features, -1)
        has_no_input = (self.network.inputs == 0).all(dim=-1)
        return OnKnots(
            self.network,
            fill_padded(self.experts, share, has_no_input),
            fill_padded(self.terms, share, has_no_input),
            self.members,
        )


class KnotEncoder(Encoder):
    """Piecewise-linear inputs, evaluated on knots: a table of the network is the network."""

    has_exact_tables = True

    def make_inputs(self, schema: Schema, columns: Columns, *, n_ramps: int, random: np.random.Generator) -> Array:
        return piecewise_inputs(schema, n_ramps)

    def block_bounds(self, n_features: int, in_dim: int, out_dim: int) -> tuple[float, float]:
        return math.sqrt(3 / in_dim), 1 / math.sqrt(in_dim)

    def expert_bounds(self, n_features: int, hidden_dim: int, n_experts: int) -> tuple[float, float]:
        return _SMALL * math.sqrt(3 / hidden_dim), 0.0

    def group(self, inputs: Array) -> Groups | None:
        return group_features(inputs)

    def count_evaluated(self, *, n_slots: int, batch_size: int) -> int:
        return n_slots

    def evaluate(self, network: "Network") -> OnKnots:
        return OnKnots(network, *network.evaluate_knots())
