"""The same parameters in both worlds: a small random network, and the oracle's models read off its weights."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from nae.encoding import Category, Columns, Feature, Schema, build_schema
from nae.engines.torch import TorchNetwork
from nae.engines.torch.network import RowCells
from nae.network import ENCODERS, Network, NetworkConfig, draw_network
from nae.training.assemble import padded_slots
from tests.reference.equations import Block, Model, Outcome, embed, interpolation, run

__all__ = ["Setting", "make_setting", "mean_over_members", "oracle_models"]

N_OUTPUTS = 2


@dataclass(frozen=True)
class Setting:
    """A network, the table it was made for, and the table's rows as plain values."""

    drawn: Network
    network: TorchNetwork
    schema: Schema
    columns: Columns
    rows: list[list[object]]

    @property
    def cells(self) -> RowCells:
        cells = self.schema.locate(self.columns)
        dtype = self.network.intercept.dtype
        return RowCells(
            torch.as_tensor(padded_slots(self.schema)[cells.slot]), torch.as_tensor(cells.fraction, dtype=dtype)
        )


def make_setting(
    config: NetworkConfig, *, n_outputs: int = N_OUTPUTS, n_knots: int = 5, dtype: type[np.floating] = np.float64
) -> Setting:
    """Return a random network on a table of two numbers and a category, with missing values."""
    random = np.random.default_rng(7)
    first = np.round(random.uniform(-2, 3, size=24), 3)
    second = np.where(random.uniform(size=24) < 0.2, np.nan, random.integers(0, 9, size=24).astype(float))
    third = np.array(
        [["a", "b", "c", None][i] for i in random.choice(4, size=24, p=[0.5, 0.2, 0.2, 0.1])], dtype=object
    )
    columns = Columns((first, second, third), ("first", "second", "third"))
    kinds = [("number", ""), ("number", ""), ("category", "")]
    schema = build_schema(columns, kinds, np.ones(24), n_knots=n_knots)
    inputs = ENCODERS[config.encoder].make_inputs(schema, columns, n_ramps=4, random=random)
    random = np.random.default_rng(3)
    network = draw_network(config, inputs, n_outputs, random=random, dtype=dtype)
    arrays = {}  # nothing may be zero or one by default: a lost bias or scale would go unnoticed
    for name, array in network.arrays.items():
        if "running" in name:
            arrays[name] = array + random.uniform(size=array.shape)
        else:
            arrays[name] = array * (3.0 if "gate" in name else 1.0) + 0.5 * random.normal(size=array.shape)
    network = network.with_arrays(arrays)
    rows = [list(row) for row in zip(first, second, third, strict=True)]
    return Setting(network, TorchNetwork(network).eval(), schema, columns, rows)


def oracle_models(setting: Setting) -> list[Model]:
    """Return one oracle model per member."""
    return [_member(setting, member) for member in range(setting.network.config.n_members)]


def mean_over_members(models: list[Model], row: list[object]) -> Outcome:
    """Return contributions, bounds and prediction of the ensemble: means over the members, before any link."""
    each = [run(model, row) for model in models]

    def mean(pick: Callable[[Outcome], list[np.ndarray]]) -> list[np.ndarray]:
        return [np.mean([pick(outcome)[i] for outcome in each], axis=0) for i in range(len(row))]

    return Outcome(
        prediction=np.mean([outcome.prediction for outcome in each], axis=0),
        contributions=mean(lambda outcome: outcome.contributions),
        outputs=[],
        weights=[],
        lower=mean(lambda outcome: outcome.lower),
        upper=mean(lambda outcome: outcome.upper),
    )


def _member(setting: Setting, member: int) -> Model:
    network, config = setting.network, setting.network.config
    features, experts = range(network.n_features), range(config.n_experts)
    head, head_bias = _array(network.expert_weight), _array(network.expert_bias)
    gate, bias = _array(network.gate.weight)[..., member], _array(network.gate.bias)[:, member]

    def columns_of(feature: int) -> list[int]:
        return [k * network.n_features + feature for k in experts]  # experts run slower than features

    is_mixed = config.gate in ("low-rank", "deep")
    if is_mixed:
        matrices = [[gate[i]] for i in features]
        biases = [bias]
    elif config.gate == "diagonal":
        matrices = [[gate[i] for _ in features] for i in features]
        biases = [bias[columns_of(j)] for j in features]
    else:
        matrices = [[gate[i][:, columns_of(j)] for j in features] for i in features]
        biases = [bias[columns_of(j)] for j in features]
    mix = _array(network.gate.mix)[member] if is_mixed else None
    mix_bias = _array(network.gate.mix_bias)[member, 0] if is_mixed else None
    return Model(
        embeddings=[_embedding(setting, i, member) for i in features],
        expert_weights=[[head[i, :, k, :, member] for k in experts] for i in features],
        expert_biases=[[head_bias[i, 0, k, :, member] for k in experts] for i in features],
        matrices=matrices,
        bias=biases,
        intercept=_array(network.intercept)[:, member],
        n_active=config.n_active,
        is_equal=config.routing == "equal",
        is_diagonal=config.gate == "diagonal",
        is_deep=config.gate == "deep",
        mix=[] if mix is None else [mix[:, columns_of(j)] for j in features],
        mix_bias=[] if mix_bias is None else [mix_bias[columns_of(j)] for j in features],
    )


def _embedding(setting: Setting, feature: int, member: int) -> Callable[[object], np.ndarray]:
    """Return E_i as a function of the feature's value."""
    spec = setting.schema.features[feature]
    blocks = [_block(block, feature, member) for block in setting.network.trunk.blocks]
    inputs = _array(setting.network.inputs)[feature]
    seen = [row[feature] for row in setting.rows]

    def of(value: object) -> np.ndarray:
        ends = _ends(spec, value, seen)
        if setting.network.config.encoder == "mlp":
            return embed(sum(weight * inputs[slot] for slot, weight in ends), blocks)
        return sum(weight * embed(inputs[slot], blocks) for slot, weight in ends)

    return of


def _ends(spec: Feature, value: object, seen: list[object]) -> list[tuple[int, float]]:
    """Return the slots a value lies between, with weights."""
    if value is None or value != value:
        return [(spec.n_values, 1.0)]
    if not isinstance(spec, Category):
        return interpolation(list(spec.knots), value)
    if value in spec.levels:
        return [(spec.levels.index(value), 1.0)]
    known = [level for level in seen if level is not None]  # never seen: the known levels by frequency
    return [(slot, known.count(level) / len(known)) for slot, level in enumerate(spec.levels)]


def _block(block: torch.nn.Module, feature: int, member: int) -> Block:
    fixed = None
    if block.is_batch_norm:
        fixed = tuple(_array(buffer)[member, feature, 0] for buffer in (block.running_mean, block.running_var))
    return Block(
        weight=_array(block.weight)[member, feature],
        bias=_array(block.bias)[member, feature, 0],
        scale=_array(block.scale)[member, feature, 0],
        shift=_array(block.shift)[member, feature, 0],
        fixed=fixed,
    )


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()
