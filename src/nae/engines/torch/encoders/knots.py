"""A network evaluated on knots: once for all rows of a step, which lie between them."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import Tensor

from nae.engines.torch.cells import RowCells
from nae.engines.torch.encoders.base import Evaluation, ExpertSample
from nae.engines.torch.interpolation import interpolate, interpolate_sum
from nae.engines.torch.mixing import mix_experts
from nae.engines.torch.routed import Routed
from nae.engines.torch.untrained import fill_padded

if TYPE_CHECKING:
    from nae.engines.torch.network import TorchNetwork

__all__ = ["OnKnots", "on_knots"]


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

    def curves(self) -> list[Tensor]:
        n_features, n_members = self.network.n_features, self.network.config.n_members
        experts = self.experts.view(n_features, -1, self.experts.shape[1] // n_members, n_members)
        if self.network.config.n_experts == 1:
            return [experts]
        return [experts, self.terms.unflatten(1, (n_features, -1)).permute(1, 2, 3, 0)]

    def filled(self, slot_weight: Tensor) -> "OnKnots":
        share = slot_weight.view(self.network.n_features, -1)
        has_no_input = (self.network.inputs == 0).all(dim=-1)
        return OnKnots(
            self.network,
            fill_padded(self.experts, share, has_no_input),
            fill_padded(self.terms, share, has_no_input),
            self.members,
        )


def on_knots(network: "TorchNetwork") -> OnKnots:
    """Return the network with the weights that it has now, evaluated on its knots."""
    return OnKnots(network, *network.evaluate_knots())
