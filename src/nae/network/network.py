"""The network: trunk, experts and gate of all features and members.

Row tensors keep the expert axis second and features and members last, (B, K, O, F, M): reductions over few experts
with a long contiguous tail are an order of magnitude faster than over a short last axis.
"""

import torch
from torch import Tensor, nn

from nae._typing import Array, BoolArray, IntArray
from nae.network.cells import RowCells
from nae.network.config import NetworkConfig
from nae.network.dropout import Dropped, drop
from nae.network.encoders import ENCODERS, Evaluation
from nae.network.gates import GATES, Gate
from nae.network.groups import Groups
from nae.network.routed import Routed
from nae.network.routing import ROUTINGS
from nae.network.tensors import project, to_numpy, uniform
from nae.network.trunk import Trunk
from nae.tables.gates import GateTables

__all__ = ["Network", "Routed", "RowCells"]


class Network(nn.Module):
    """The weights of all features and members, and what they give; the encoder says where they are evaluated."""

    inputs: Tensor
    live: Tensor | None  # (F, 1, 1), zero for features that never vary; None where all do
    noise: Tensor | None  # counts the random numbers of dropout and Gumbel noise; None without either
    start: Tensor | None  # (F * S + 1, O, M), what all experts of a feature, and the intercept, are added to

    def __init__(
        self,
        config: NetworkConfig,
        inputs: Array,
        n_outputs: int,
        *,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
        constant: BoolArray | None = None,
    ) -> None:
        super().__init__()
        n_features, _, in_dim = inputs.shape
        self.config, self.n_features, self.n_outputs = config, n_features, n_outputs
        self.encoder = ENCODERS[config.encoder]
        self.routing = ROUTINGS[config.routing](config.n_active, config.temperature)
        self.trunk = Trunk(
            config.n_members,
            n_features,
            in_dim,
            hidden_dim=config.hidden_dim,
            n_blocks=config.n_blocks,
            norm=config.norm,
            dropout=config.encoder_dropout,
            bounds=self.encoder.block_bounds,
            generator=generator,
        )
        width = config.hidden_dim
        columns = (config.n_experts, n_outputs, config.n_members)
        bound, bias_bound = self.encoder.expert_bounds(n_features, width, config.n_experts)
        self.expert_weight = uniform(n_features, width, *columns, bound=bound, generator=generator)
        self.expert_bias = uniform(n_features, 1, *columns, bound=bias_bound, generator=generator)
        self.gate: Gate = GATES[config.gate](
            config.n_members, n_features, config.n_experts, width, rank=config.gate_rank, generator=generator
        )
        self.intercept = nn.Parameter(torch.zeros(n_outputs, config.n_members))
        self.to(dtype)
        self.register_buffer("inputs", torch.as_tensor(inputs, dtype=dtype))
        # A feature that never varies could still carry what others do to each other: its experts stay at zero.
        live = None if constant is None or not constant.any() else torch.as_tensor(~constant, dtype=dtype)
        self.register_buffer("live", None if live is None else live.view(-1, 1, 1), persistent=False)
        is_noisy = config.expert_dropout > 0 or self.routing.is_noisy
        noise = torch.randint(2**62, (), generator=generator) if is_noisy else None
        self.register_buffer("noise", noise, persistent=False)
        self.register_buffer("start", None)
        self.groups = self.encoder.group(inputs)

    def forward(self, cells: RowCells, *, weight: Tensor | None = None) -> Routed:
        """Return scores and contributions of a batch."""
        return self.evaluate().route(cells, weight)

    def evaluate(self) -> Evaluation:
        """Return the network with the weights that it has now; asking it about several batches saves work."""
        return self.encoder.evaluate(self)

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
        return experts.flatten(1), terms.flatten(1, 2)

    @property
    def offset(self) -> Tensor:
        """What is added to the contributions, (O, M): the intercept, and that of the start."""
        return self.intercept if self.start is None else self.intercept + self.start[-1]

    @torch.no_grad()
    def begin_at(self, start: Tensor) -> None:
        """Add all that is learned to ``start``, (F * S + 1, O, M)."""
        self.start = start.to(self.intercept)

    def learned(self) -> tuple[Tensor, ...]:
        """Return copies of the parameters that add something to the start; without them, the gate mixes equals."""
        return tuple(each.detach().clone() for each in self._additions)

    @torch.no_grad()
    def restore_learned(self, learned: tuple[Tensor, ...], *, share: float) -> None:
        """Put a share of what was learned beyond the start in its place."""
        for each, value in zip(self._additions, learned, strict=True):
            each.copy_(share * value)

    @property
    def _additions(self) -> tuple[Tensor, ...]:
        return self.expert_weight, self.expert_bias, self.intercept

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

    @torch.no_grad()
    def to_tables(self, padded: IntArray) -> tuple[Array, GateTables, Array]:
        """Return experts (T, K, O, M), gate and intercept (O, M) for the slots of the schema, as float64.

        ``padded`` gives the position of every slot of the schema in the padded tables.
        """
        was_training = self.training
        self.eval()
        experts, terms = self.evaluate_knots()
        self.train(was_training)
        gate = self.gate.to_tables(to_numpy(terms).transpose(1, 2, 0)[padded])
        return to_numpy(experts)[padded].reshape(len(padded), *self.expert_shape), gate, to_numpy(self.offset)

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
