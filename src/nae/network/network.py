"""The network: trunk, experts and gate for all features and members, on knots or on rows.

Row tensors keep the expert axis second and features and members last, (B, K, O, F, M): reductions over few experts
with a long contiguous tail are an order of magnitude faster than over a short last axis.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from nae._typing import Array, BoolArray, IntArray
from nae.network.cells import RowCells
from nae.network.config import NetworkConfig
from nae.network.dropout import Dropped, drop
from nae.network.gates import GATES, Gate
from nae.network.groups import Groups, group_features
from nae.network.interpolation import interpolate, interpolate_sum
from nae.network.mixing import mix_experts
from nae.network.routing import ROUTINGS, TABLE_ROUTING
from nae.network.trunk import Trunk, uniform
from nae.tables.gates import GateTables

__all__ = ["Network", "Routed", "RowCells"]


@dataclass(frozen=True)
class Routed:
    """What the network computed for a batch."""

    score: Tensor  # (B, O, M)
    contributions: Tensor  # (B, O, F, M)
    mean_routing: Tensor  # (K, F, M), over the rows with their weights
    experts: Tensor | None = None  # (B, K, O, F, M); it and routing unless experts were mixed a few rows at a time
    routing: Tensor | None = None  # (B, K, F, M)


class Network(nn.Module):
    """Encoders, experts and gates of all features and members."""

    inputs: Tensor
    live: Tensor | None  # (F, 1, 1), zero for features that never vary; None where all do
    noise: Tensor | None  # counts the random numbers of dropout; None without it
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
        is_paper = config.encoder == "mlp"
        self.trunk = Trunk(
            config.n_members,
            n_features,
            in_dim,
            hidden_dim=config.hidden_dim,
            n_blocks=config.n_blocks,
            norm=config.norm,
            dropout=config.encoder_dropout,
            is_paper=is_paper,
            generator=generator,
        )
        width = config.hidden_dim
        columns = (config.n_experts, n_outputs, config.n_members)
        bound = math.sqrt(6 / (width * config.n_experts)) if is_paper else 0.3 * math.sqrt(3 / width)
        self.expert_weight = uniform(n_features, width, *columns, bound=bound, generator=generator)
        bias_bound = 1 / math.sqrt(n_features * width) if is_paper else 0.0
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
        noise = torch.randint(2**62, (), generator=generator) if config.expert_dropout else None
        self.register_buffer("noise", noise, persistent=False)
        self.register_buffer("start", None)
        self.groups = None if is_paper else group_features(inputs)

    def forward(
        self, cells: RowCells, tables: tuple[Tensor, Tensor] | None = None, *, weight: Tensor | None = None
    ) -> Routed:
        """Return scores and contributions of a batch; ``tables`` saves evaluating the knots again."""
        weight = torch.ones_like(cells.fraction[:, 0]) if weight is None else weight
        if self.config.encoder == "mlp":
            return self.route(*self.evaluate_rows(cells), weight)
        return self._mix(*(tables or self.evaluate_knots()), cells, weight)

    def score_member(self, member: int, cells: RowCells, tables: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """Return the scores of one member alone, (B, O, 1), at its share of the price."""
        experts, terms = tables or self.evaluate_knots()
        members = slice(member, member + 1)
        own = experts.unflatten(1, (-1, self.config.n_members))[:, :, member].contiguous()
        weight = torch.ones_like(cells.fraction[:, 0])
        return self._mix(own, terms[members], cells, weight, members).score

    def _mix(
        self, experts: Tensor, terms: Tensor, cells: RowCells, weight: Tensor, members: slice = slice(None)
    ) -> Routed:
        """Return contributions and scores from experts and gate terms on slots, of all or some ``members``."""
        if experts.is_cuda or not self._has_plain_softmax:
            return self.route(*self.interpolate(experts, terms, cells), weight, members)
        logits = self.gate.logits(interpolate_sum(terms, cells), members)
        dropped = self._drop(len(weight), n_members=logits[0].shape[0])
        contributions, mean_routing = mix_experts(
            experts, *logits, cells, weight, n_outputs=self.n_outputs, dropped=dropped
        )
        return Routed(contributions.sum(dim=2) + self.offset[:, members], contributions, mean_routing)

    def _drop(self, n_rows: int, *, n_members: int) -> Dropped | None:
        """Draw the weights that a step goes without."""
        # PAPER: an expert's weight is dropped and the rest scaled up; training only, so bounds are not touched.
        if not self.training or self.noise is None:
            return None
        shape = torch.Size((n_rows, self.config.n_experts, self.n_features, n_members))
        return drop(shape, self.config.expert_dropout, self.noise)

    @property
    def _has_plain_softmax(self) -> bool:
        config = self.config
        is_whole = config.n_active == config.n_experts > 1
        return config.routing == "softmax" and is_whole and self.gate.sums_features

    def evaluate_knots(self) -> tuple[Tensor, Tensor]:
        """Return experts (F * S, K * O * M) and gate terms (M, F * S, width) on every slot."""
        if self.groups is None or self.inputs.is_cuda:  # on a GPU, few large products are faster than less work
            hidden = self.trunk(self.inputs)
            experts, terms = self._experts(hidden), _head(hidden, self.gate.weight)
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
        experts, terms = ([_head(*own) for own in zip(hidden, parts, strict=True)] for parts in weights)
        return self._finish(groups.join(experts, n_slots)), groups.join(terms, n_slots)

    def interpolate(self, experts: Tensor, terms: Tensor, cells: RowCells) -> tuple[Tensor, Tensor]:
        """Return experts (B, K, O, F, M) and summed gate terms (M, B, width) of a batch."""
        own = self._spread(interpolate(experts, cells))
        if not self.gate.sums_features:
            return own, self._own_terms(interpolate(terms.permute(1, 2, 0).flatten(1), cells))
        return own, interpolate_sum(terms, cells)

    def evaluate_rows(self, cells: RowCells) -> tuple[Tensor, Tensor]:
        """As :meth:`interpolate`, with the encoders evaluated on the rows themselves (the paper)."""
        slots, weights = cells.ends()
        table = self.inputs.flatten(0, 1)
        rows = (table[slots] * weights.unsqueeze(-1)).sum(dim=2).transpose(0, 1)  # (F, B, in)
        hidden = self.trunk(rows)
        experts = self._experts(hidden)
        own = self._spread(experts.permute(2, 1, 3, 0).flatten(2))
        if not self.gate.sums_features:
            return own, self._own_terms(_head(hidden, self.gate.weight).permute(2, 1, 3, 0).flatten(2))
        # (M, B, F * hidden) @ (M, F * hidden, width): the features are summed by the product itself.
        units = hidden.permute(0, 2, 1, 3).flatten(2)
        return own, torch.bmm(units, self.gate.weight.permute(3, 0, 1, 2).flatten(1, 2))

    def route(self, experts: Tensor, hidden: Tensor, weight: Tensor, members: slice = slice(None)) -> Routed:
        """Return contributions and scores from experts and summed gate terms of all or some ``members``."""
        config = self.config
        if config.n_experts == 1:
            routing = torch.ones_like(experts[:, :, 0])
        else:
            logits = torch.add(*self.gate.logits(hidden, members)).permute(1, 2, 0).contiguous()
            routing = ROUTINGS[config.routing](
                logits.unflatten(1, (config.n_experts, -1)), config.n_active, self.training, config.temperature
            )
        dropped = self._drop(len(routing), n_members=routing.shape[-1])
        if dropped is not None:
            routing = dropped.thin(routing)
        contributions = (experts * routing.unsqueeze(2)).sum(dim=1)
        mean_routing = (weight / len(weight) @ routing.flatten(1)).view(routing.shape[1:])
        score = contributions.sum(dim=2) + self.offset[:, members]
        return Routed(score, contributions, mean_routing, experts, routing)

    def own_effect(
        self, routed: Routed, mean_routing: Tensor, cells: RowCells, tables: tuple[Tensor, Tensor] | None = None
    ) -> Tensor:
        """Return each contribution with its feature's mean routing, (B, O, F, M): what context cannot change."""
        if routed.experts is not None:
            return (routed.experts * mean_routing.unsqueeze(1)).sum(dim=1)
        # Interpolation is linear: mixing the experts on the knots saves mixing those of every row.
        experts, _ = tables or self.evaluate_knots()
        experts = experts.view(self.n_features, -1, self.config.n_experts, self.n_outputs, self.config.n_members)
        mixed = (experts * mean_routing.transpose(0, 1).unsqueeze(2).unsqueeze(1)).sum(dim=2)  # (F, S, O, M)
        own = interpolate(mixed.flatten(0, 1).flatten(1), cells)
        return own.view(*own.shape[:2], *mixed.shape[2:]).transpose(1, 2)

    @torch.no_grad()
    def to_tables(self, padded: IntArray) -> tuple[Array, GateTables, Array]:
        """Return experts (T, K, O, M), gate and intercept (O, M) for the slots of the schema, as float64.

        ``padded`` gives the position of every slot of the schema in the padded tables.
        """
        was_training = self.training
        self.eval()
        experts, terms = self.evaluate_knots()
        self.train(was_training)
        shape = (self.config.n_experts, self.n_outputs, self.config.n_members)
        mix, mix_bias = getattr(self.gate, "mix", None), getattr(self.gate, "mix_bias", None)
        gate = GateTables(
            kind=self.config.gate,
            terms=_numpy(terms).transpose(1, 2, 0)[padded],
            bias=_numpy(self.gate.bias),
            mix=None if mix is None else _numpy(mix),
            mix_bias=None if mix_bias is None else _numpy(mix_bias)[:, 0].T,
        )
        return _numpy(experts)[padded].reshape(len(padded), *shape), gate, _numpy(self.offset)

    @property
    def table_routing(self) -> str:
        """The name of the routing that the tables use."""
        return TABLE_ROUTING[self.config.routing]

    def _experts(self, hidden: Tensor) -> Tensor:
        """(M, F, N, hidden) -> (M, F, N, K * O)."""
        return self._finish(_head(hidden, self.expert_weight.flatten(2, 3)))

    def _finish(self, experts: Tensor) -> Tensor:
        """Add the bias, and leave nothing to features that never vary."""
        experts = experts + self.expert_bias.flatten(2, 3).permute(3, 0, 1, 2)
        return experts if self.live is None else experts * self.live

    def _spread(self, own: Tensor) -> Tensor:
        """(B, F, K * O * M) -> (B, K, O, F, M)."""
        shape = (self.config.n_experts, self.n_outputs, -1)
        spread: Tensor = own.unflatten(-1, shape).permute(0, 2, 3, 1, 4).contiguous()
        return spread

    def _own_terms(self, own: Tensor) -> Tensor:
        """(B, F, K * M) -> (M, B, K * F)."""
        terms: Tensor = own.unflatten(-1, (self.config.n_experts, -1)).permute(3, 0, 2, 1).flatten(2)
        return terms


def _head(hidden: Tensor, weight: Tensor) -> Tensor:
    """(M, F, N, hidden), (F, hidden, C, M) -> (M, F, N, C)."""
    each = weight.permute(3, 0, 1, 2)  # (M, F, hidden, C)
    return torch.bmm(hidden.flatten(0, 1), each.flatten(0, 1)).view(*hidden.shape[:3], -1)


def _numpy(tensor: Tensor) -> Array:
    return tensor.detach().to("cpu", torch.float64).numpy().astype(np.float64)
