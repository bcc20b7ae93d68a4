"""The network in torch: trunk, experts and gate of all features and members.

Row tensors keep the expert axis second and features and members last, (B, K, O, F, M): reductions over few experts
with a long contiguous tail are an order of magnitude faster than over a short last axis.
"""

import numpy as np
import torch
from torch import Tensor, nn

from nae._typing import AnyArray
from nae.engines.torch.cells import RowCells
from nae.engines.torch.dropout import Dropped, drop
from nae.engines.torch.encoders import EVALUATIONS, Evaluation
from nae.engines.torch.forms import TorchForms
from nae.engines.torch.gates import TORCH_GATES, TorchGate
from nae.engines.torch.groups import Groups, group_features
from nae.engines.torch.routed import Routed
from nae.engines.torch.routing import TORCH_ROUTINGS
from nae.engines.torch.tensors import parameter, project
from nae.engines.torch.trunk import Trunk
from nae.network import START, Network, below

__all__ = ["Routed", "RowCells", "TorchNetwork"]


class TorchNetwork(nn.Module):
    """The weights of all features and members, and what they give; the encoder says where they are evaluated."""

    expert_weight: Tensor
    expert_bias: Tensor
    intercept: Tensor
    inputs: Tensor
    live: Tensor | None  # (F, 1, 1), zero for features that never vary; None where all do
    noise: Tensor | None  # counts the random numbers of dropout and Gumbel noise; None without either
    start: Tensor | None  # (F * S + 1, O, M), what all experts of a feature, and the intercept, are added to

    def __init__(self, network: Network) -> None:
        super().__init__()
        config, arrays = network.config, network.arrays
        self.config, self.n_features, self.n_outputs = config, network.n_features, network.n_outputs
        self.is_on_rows = not network.encoder.has_exact_tables
        self.routing = TORCH_ROUTINGS[config.routing](config.n_active, config.temperature)
        for name in ("expert_weight", "expert_bias", "intercept"):
            self.register_parameter(name, parameter(arrays[name]))
        trunk = below("trunk.", arrays)
        self.trunk = Trunk(trunk, n_blocks=config.n_blocks, norm=config.norm, dropout=config.encoder_dropout)
        self.forms = None if network.forms is None else TorchForms(network.forms, dtype=network.dtype)
        self.gate: TorchGate = TORCH_GATES[config.gate](
            below("gate.", arrays), n_experts=config.n_experts, forms=self.forms
        )
        self.register_buffer("inputs", torch.tensor(network.inputs), persistent=False)
        # A feature that never varies could still carry what others do to each other: its experts stay at zero.
        live = None if network.is_live.all() else torch.as_tensor(network.is_live.astype(network.dtype)).view(-1, 1, 1)
        self.register_buffer("live", live, persistent=False)
        noise = torch.tensor(network.noise) if network.is_noisy else None
        self.register_buffer("noise", noise, persistent=False)
        self.register_buffer(START, None if network.start is None else torch.tensor(network.start))
        self.sorts_outputs = network.forms is not None and network.forms.sorts_outputs
        self.roughness = network.roughness
        self.groups = None if self.is_on_rows else group_features(network.inputs)

    def arrays(self) -> dict[str, AnyArray]:
        """Return copies of the weights as arrays."""
        return {name: np.array(tensor.detach().cpu().numpy()) for name, tensor in self.state_dict().items()}

    def forward(self, cells: RowCells, *, weight: Tensor | None = None) -> Routed:
        """Return scores and contributions of a batch."""
        return self.evaluate().route(cells, weight)

    def evaluate(self) -> Evaluation:
        """Return the network with the weights that it has now; asking it about several batches saves work."""
        return EVALUATIONS[self.config.encoder](self)

    def drop(self, n_rows: int, *, n_members: int) -> Dropped | None:
        """Draw the expert weights that a step goes without; None if it has them all."""
        # PAPER: an expert's weight is dropped and the rest scaled up; training only, so bounds are not touched.
        if not self.training or self.noise is None:
            return None
        shape = torch.Size((n_rows, self.config.n_experts, self.n_features, n_members))
        return drop(shape, self.config.expert_dropout, self.noise)

    @property
    def mixes_in_blocks(self) -> bool:
        """Whether experts can be mixed a few rows at a time: by a softmax over all of them, from summed terms."""
        is_whole = self.config.n_active == self.config.n_experts > 1
        return self.routing.is_softmax and is_whole and self.gate.sums_features

    @property
    def expert_shape(self) -> tuple[int, int, int]:
        """The numbers of experts, outputs and members."""
        return self.config.n_experts, self.n_outputs, self.config.n_members

    def evaluate_knots(self) -> tuple[Tensor, Tensor]:
        """Return experts (F * S, K * O * M) and gate terms (M, F * S, width) on every slot."""
        if self.groups is None or self.inputs.is_cuda:  # on a GPU, few large products are faster than less work
            hidden = self.trunk(self.inputs)
            experts, terms = self.to_experts(hidden), self.gate.on_slots(hidden)
        else:
            experts, terms = self._evaluate_groups(self.groups)
        experts = experts.permute(1, 2, 3, 0).flatten(0, 1)  # (F * S, K * O, M)
        if self.start is not None:
            experts = experts + self.start[:-1].repeat(1, self.config.n_experts, 1)
        if self.forms is not None:
            shape = (self.n_features, -1, *self.expert_shape)
            experts = self.forms.shape_experts(experts.view(shape)).flatten(0, 1)
            terms = self.forms.shape_terms(terms, n_experts=self.config.n_experts)
        return experts.flatten(1), terms.flatten(1, 2)

    @property
    def offset(self) -> Tensor:
        """What is added to the contributions, (O, M): the intercept, and that of the start."""
        offset: Tensor = self.intercept if self.start is None else self.intercept + self.start[-1]
        return offset.sort(dim=0).values if self.sorts_outputs else offset

    def _evaluate_groups(self, groups: Groups) -> tuple[Tensor, Tensor]:
        """Return experts (M, F, S, K * O) and gate terms (M, F, S, width); slots that nothing trains are zero."""
        n_slots = self.inputs.shape[1]
        hidden = self.trunk.forward_groups(self.inputs, groups)
        weights = [groups.split(weight, 0) for weight in (self.expert_weight.flatten(2, 3), self.gate.weight)]
        experts, terms = ([project(*own) for own in zip(hidden, parts, strict=True)] for parts in weights)
        return self._finish(groups.join(experts, n_slots)), groups.join(terms, n_slots)

    def route(self, experts: Tensor, hidden: Tensor, weight: Tensor, members: slice = slice(None)) -> Routed:
        """Return contributions and scores from experts and summed gate terms of all or some ``members``."""
        config = self.config
        if config.n_experts == 1:
            routing = torch.ones_like(experts[:, :, 0])
        else:
            logits = torch.add(*self.gate.logits(hidden, members)).permute(1, 2, 0).contiguous()
            by_expert = logits.unflatten(1, (config.n_experts, -1))
            routing = self.routing.weights(by_expert, counter=self.noise if self.training else None)
        dropped = self.drop(len(routing), n_members=routing.shape[-1])
        if dropped is not None:
            routing = dropped.thin(routing)
        contributions = (experts * routing.unsqueeze(2)).sum(dim=1)
        mean_routing = (weight / len(weight) @ routing.flatten(1)).view(routing.shape[1:])
        score = contributions.sum(dim=2) + self.offset[:, members]
        return Routed(score, contributions, mean_routing, experts, routing)

    def to_experts(self, hidden: Tensor) -> Tensor:
        """Return the experts of hidden units: (M, F, N, hidden) -> (M, F, N, K * O)."""
        return self._finish(project(hidden, self.expert_weight.flatten(2, 3)))

    def _finish(self, experts: Tensor) -> Tensor:
        """Return experts with their bias, and zeros for features that never vary."""
        experts = experts + self.expert_bias.flatten(2, 3).permute(3, 0, 1, 2)
        return experts if self.live is None else experts * self.live

    def spread(self, own: Tensor) -> Tensor:
        """Return the experts of rows by expert: (B, F, K * O * M) -> (B, K, O, F, M)."""
        shape = (self.config.n_experts, self.n_outputs, -1)
        spread: Tensor = own.unflatten(-1, shape).permute(0, 2, 3, 1, 4).contiguous()
        return spread
