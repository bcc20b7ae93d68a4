"""The network: blocks, experts and gate of all features and members, as arrays.

An engine trains these arrays. For each feature and member, blocks turn the input of a slot into hidden units; experts
and gate terms are linear in these. With F features, M members, H hidden units, K experts, O outputs and W gate terms,
the arrays are

=============================  ====================  ==============================================================
``trunk.blocks.i.weight``      (M, F, in, H)         then ``bias``, ``scale`` and ``shift``, (M, F, 1, H)
``expert_weight``              (F, H, K, O, M)       and ``expert_bias``, (F, 1, K, O, M)
``intercept``                  (O, M)
``gate.weight``                (F, H, W, M)          and what else the gate has
``start``                      (F * S + 1, O, M)     what experts, and in the last row the intercept, are added to
=============================  ====================  ==============================================================
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from nae._typing import AnyArray, Array, BoolArray, IntArray
from nae.network.config import NetworkConfig
from nae.network.draws import Random, uniform
from nae.network.encoders import ENCODERS, Encoder
from nae.network.forms import Forms
from nae.network.gates import GATES, Gate
from nae.network.roughness import Roughness
from nae.tables.gates import GateTables
from nae.tables.routing import EqualRouting, Routing, SoftmaxRouting

__all__ = ["ADDITIONS", "ROUTINGS", "START", "Network", "below", "draw_network"]

START = "start"
ADDITIONS = ("expert_weight", "expert_bias", "intercept")
"""The arrays that add something to the start; without them, the gate mixes equals."""

ROUTINGS: dict[str, type[Routing]] = {"softmax": SoftmaxRouting, "equal": EqualRouting, "gumbel": SoftmaxRouting}
"""The routing of the finished model, by that of training."""

NOISY = ("gumbel",)
"""Routings that draw random numbers in training."""

_LEAST_VARIANCE = 1e-5  # is added to a variance before it divides
_QUIET = 0.1  # of the usual weights, for experts of one direction: their steps add up, those of random weights, too


@dataclass(frozen=True, eq=False)
class Network:
    """The weights of a network by name, and what it is built on."""

    config: NetworkConfig
    inputs: AnyArray
    """The input of every slot, (F, S, in), padded to the feature with most slots; its type is that of training."""
    n_outputs: int
    is_live: BoolArray
    """(F,), False for features that never vary. They could still carry what others do to each other, so their experts
    stay at zero."""
    noise: int
    """Where the random numbers of dropout and of Gumbel noise begin."""
    arrays: Mapping[str, AnyArray]
    """The weights, the running moments of batch norms, and the start of a small table."""
    forms: Forms | None = None
    """What experts and gate terms are made to be, after the start is added; None where nothing is promised."""
    roughness: Roughness | None = None
    """What a penalty on rough curves weighs; None without one."""

    @property
    def n_features(self) -> int:
        return len(self.inputs)

    @property
    def n_slots(self) -> int:
        """The slots of a feature, padding included."""
        return int(self.inputs.shape[1])

    @property
    def dtype(self) -> np.dtype:
        """The precision of training."""
        return self.inputs.dtype

    @property
    def encoder(self) -> Encoder:
        return ENCODERS[self.config.encoder]

    @property
    def gate(self) -> type[Gate]:
        return GATES[self.config.gate]

    @property
    def routing(self) -> Routing:
        """The routing of the finished model."""
        return ROUTINGS[self.config.routing](self.config.n_active)

    @property
    def is_noisy(self) -> bool:
        """Whether steps draw random numbers."""
        return self.config.expert_dropout > 0 or self.config.routing in NOISY

    @property
    def expert_shape(self) -> tuple[int, int, int]:
        """The numbers of experts, outputs and members."""
        return self.config.n_experts, self.n_outputs, self.config.n_members

    @property
    def sorts_outputs(self) -> bool:
        """Whether the outputs of every expert, and those of the intercept, are in ascending order."""
        return self.forms is not None and self.forms.sorts_outputs

    @property
    def start(self) -> AnyArray | None:
        """What all experts of a feature, and the intercept, are added to; None without such a start."""
        return self.arrays.get(START)

    @property
    def intercepts(self) -> Array:
        """The intercept of every member, (O, M), as float64."""
        own = np.asarray(self.arrays["intercept"], dtype=np.float64)
        own = own if self.start is None else own + np.asarray(self.start[-1], dtype=np.float64)
        return np.sort(own, axis=0) if self.sorts_outputs else own

    def with_arrays(self, arrays: Mapping[str, AnyArray]) -> "Network":
        """Return the network with other weights, in the precision of training."""
        return replace(self, arrays={name: np.asarray(array, dtype=self.dtype) for name, array in arrays.items()})

    def begin_at(self, start: AnyArray) -> "Network":
        """Return the network with all that is learned added to ``start``, (F * S + 1, O, M)."""
        if self.forms is not None:
            by_feature = start[:-1].reshape(self.n_features, self.n_slots, *start.shape[1:])
            start = np.concatenate([self.forms.to_raw(by_feature).reshape(-1, *start.shape[1:]), start[-1:]])
        return self.with_arrays({**self.arrays, START: start})

    def to_tables(self, padded: IntArray) -> tuple[Array, GateTables, Array]:
        """Return experts (T, K, O, M), gate and intercept (O, M) for the slots of the schema, as float64.

        ``padded`` gives the position of every slot of the schema in the padded tables; forms need those of a feature
        from the first on.
        """
        experts = np.empty((len(padded), *self.expert_shape))
        feature = padded // self.n_slots
        gate = below("gate.", self.arrays)
        terms = np.empty((len(padded), *gate["weight"].shape[2:]))
        start = None if self.start is None else np.asarray(self.start, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # weights that diverged: whoever takes the tables looks
            for i in range(self.n_features):
                own = np.flatnonzero(feature == i)
                raw, raw_terms = self._evaluate(i, padded[own] - i * self.n_slots)
                raw = raw if start is None else raw + start[padded[own]][:, None]
                experts[own], terms[own] = self._shape(i, raw, raw_terms)
        return experts, self.gate.to_tables(terms, gate, forms=self.forms), self.intercepts

    def _evaluate(self, feature: int, slots: IntArray) -> tuple[Array, Array]:
        """Return experts (S, K, O, M) and gate terms (S, W, M) of a feature on some slots."""
        hidden: Array = np.asarray(self.inputs[feature, slots], dtype=np.float64)[None]  # (1, S, in)
        for block in range(self.config.n_blocks):
            parts = below(f"trunk.blocks.{block}.", self.arrays)
            own = {name: np.asarray(array[:, feature], dtype=np.float64) for name, array in parts.items()}
            hidden = _apply_block(hidden, own, is_batch_norm=self.config.norm == "batch")
        experts = _project(hidden, self.arrays["expert_weight"][feature])
        experts = (experts + self.arrays["expert_bias"][feature]) * self.is_live[feature]
        return experts, _project(hidden, self.arrays["gate.weight"][feature])

    def _shape(self, feature: int, experts: Array, terms: Array) -> tuple[Array, Array]:
        """Return the experts and gate terms of a feature's first slots in the feature's form."""
        if self.forms is None:
            return experts, terms
        shaped = self.forms.shape_terms(feature, terms, n_experts=self.config.n_experts)
        return self.forms.shape_experts(feature, experts), shaped


def draw_network(
    config: NetworkConfig,
    inputs: Array,
    n_outputs: int,
    *,
    random: Random,
    dtype: type[np.floating] = np.float32,
    constant: BoolArray | None = None,
    forms: Forms | None = None,
    intercept: Array | None = None,
    roughness: Roughness | None = None,
) -> Network:
    """Return a network with random weights. Features that are ``constant`` get experts that stay at zero.

    ``intercept`` says where the score of each output begins, (O,). If None, at zero.
    """
    n_features, _, in_dim = inputs.shape
    encoder, gate = ENCODERS[config.encoder], GATES[config.gate]
    width, own = config.hidden_dim, (config.n_members, n_features)
    blocks: dict[str, Array] = {}
    for depth in range(config.n_blocks):
        n_inputs = in_dim if depth == 0 else width
        bound, bias_bound = encoder.block_bounds(n_features, n_inputs, width)
        block = {
            "weight": uniform(random, *own, n_inputs, width, bound=bound),
            "bias": uniform(random, *own, 1, width, bound=bias_bound),
            "scale": np.ones((*own, 1, width)),
            "shift": np.zeros((*own, 1, width)),
        }
        if config.norm == "batch":
            block |= {"running_mean": np.zeros((*own, 1, width)), "running_var": np.ones((*own, 1, width))}
        blocks |= {f"trunk.blocks.{depth}.{name}": array for name, array in block.items()}
    columns = (config.n_experts, n_outputs, config.n_members)
    bound, bias_bound = encoder.expert_bounds(n_features, width, config.n_experts)
    sizes = {"n_members": config.n_members, "n_features": n_features, "n_experts": config.n_experts}
    drawn = {
        "expert_weight": uniform(random, n_features, width, *columns, bound=bound),
        "expert_bias": uniform(random, n_features, 1, *columns, bound=bias_bound),
        "intercept": np.zeros((n_outputs, config.n_members)) + (0.0 if intercept is None else intercept[:, None]),
        **blocks,
    }
    drawn_gate = gate.draw(random, **sizes, hidden_dim=width, rank=config.gate_rank)
    drawn |= {f"gate.{name}": array for name, array in drawn_gate.items()}
    if forms is not None:
        drawn["expert_weight"][(forms.rises != 0) & (forms.bends == 0)] *= _QUIET
    is_live = np.ones(n_features, dtype=bool) if constant is None else ~constant
    made = Network(
        config, inputs.astype(dtype), n_outputs, is_live, int(random.integers(2**62)), drawn, forms, roughness
    )
    return made.with_arrays(drawn)


def below(prefix: str, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return the arrays whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _apply_block(hidden: Array, parts: Mapping[str, Array], *, is_batch_norm: bool) -> Array:
    """Return (M, S, H) for inputs (M, S, in), or (1, S, in) if all members have the same ones."""
    linear = hidden @ parts["weight"] + parts["bias"]
    if is_batch_norm:
        mean, variance = parts["running_mean"], parts["running_var"]
    else:
        mean, variance = linear.mean(axis=-1, keepdims=True), linear.var(axis=-1, keepdims=True)
    normal = (linear - mean) / np.sqrt(variance + _LEAST_VARIANCE)
    return np.asarray(np.maximum(normal * parts["scale"] + parts["shift"], 0.0))


def _project(hidden: Array, weight: AnyArray) -> Array:
    """Apply the weights of every member: (M, S, H), (H, ..., M) -> (S, ..., M)."""
    each = np.moveaxis(np.asarray(weight, dtype=np.float64), -1, 0)  # (M, H, ...)
    found = hidden @ each.reshape(*each.shape[:2], -1)
    return np.moveaxis(found.reshape(*found.shape[:2], *each.shape[2:]), 0, -1)
