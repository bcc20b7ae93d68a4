"""Twins: the network that was trained and the tables it left give the same scores."""

import numpy as np
import pytest
import torch

from nae.encoding import Columns, Schema, build_schema, infer_kinds
from nae.engines.torch import TorchNetwork
from nae.links import LINKS
from nae.network import ENCODERS, GATES, Network, NetworkConfig, draw_network
from nae.network.network import ROUTINGS
from nae.training.assemble import Scale, assemble
from tests.configs import network_config
from tests.engines.torch.networks import cells_of, moved

N_ROWS = 60


@pytest.fixture(scope="module")
def table() -> Columns:
    random = np.random.default_rng(0)
    number = np.round(random.normal(size=N_ROWS), 2)
    gaps = np.where(random.uniform(size=N_ROWS) < 0.2, np.nan, random.integers(0, 30, N_ROWS))
    flag = random.uniform(size=N_ROWS) < 0.5
    level = random.choice(np.array(["a", "b", "c", "d", None], dtype=object), N_ROWS)
    return Columns((number, gaps, flag, level), ("number", "gaps", "flag", "level"))


@pytest.fixture(scope="module")
def schema(table: Columns) -> Schema:
    return build_schema(table, infer_kinds(table), np.ones(N_ROWS), n_knots=8)


def network_for(config: NetworkConfig, table: Columns, schema: Schema, n_outputs: int) -> Network:
    inputs = ENCODERS[config.encoder].make_inputs(schema, table, n_ramps=5, random=np.random.default_rng(1))
    drawn = draw_network(config, inputs, n_outputs, random=np.random.default_rng(2), dtype=np.float64)
    return moved(drawn)


def assert_twins(config: NetworkConfig, table: Columns, schema: Schema, *, n_outputs: int, on_knots: bool) -> None:
    network = network_for(config, table, schema, n_outputs)
    cells = schema.locate(table)
    if on_knots:
        cells = type(cells)(cells.nearest, np.zeros_like(cells.fraction))
    random = np.random.default_rng(3)
    scale = Scale(random.normal(size=n_outputs), random.uniform(0.5, 2.0, size=n_outputs))
    model = assemble(
        network,
        schema,
        cells,
        random.uniform(0.1, 2.0, N_ROWS),
        scale,
        link=LINKS["identity"],
        outputs=tuple(f"y{i}" for i in range(n_outputs)),
    )
    with torch.no_grad():
        routed = TorchNetwork(network).eval()(cells_of(schema, table, on_knots=on_knots))
    expected = routed.score.mean(dim=-1).numpy() * scale.spread + scale.centre
    found = model.decision_function(cells).reshape(N_ROWS, n_outputs)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    weights = model.contributions(cells, with_experts=True).routing
    np.testing.assert_allclose(
        weights.mean(axis=0), routed.mean_routing.numpy().transpose(1, 2, 0), rtol=1e-9, atol=1e-12
    )
    assert found.std() > 0.05


@pytest.mark.parametrize("gate", sorted(GATES))
@pytest.mark.parametrize("routing", sorted(ROUTINGS))
@pytest.mark.parametrize("sizes", [(1, 1), (4, 4), (4, 2)])
def test_network_and_tables_agree_between_knots(table, schema, gate, routing, sizes):
    config = network_config(
        gate=gate,
        routing=routing,
        n_experts=sizes[0],
        n_active=sizes[1],
        n_members=2,
        hidden_dim=6,
        gate_rank=5,
    )
    assert_twins(config, table, schema, n_outputs=2, on_knots=False)


@pytest.mark.parametrize("gate", sorted(GATES))
@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_the_papers_network_and_its_tables_agree_on_knots(table, schema, gate, norm):
    config = network_config(
        encoder="mlp", gate=gate, norm=norm, n_experts=3, n_active=2, n_members=2, hidden_dim=6, gate_rank=5
    )
    assert_twins(config, table, schema, n_outputs=2, on_knots=True)


def test_twins_that_differ_are_told_apart(table, schema, monkeypatch):
    config = network_config(hidden_dim=6, n_experts=3, n_active=3)
    right = Network.to_tables

    def wrong(self, padded):
        experts, gate, intercept = right(self, padded)
        experts[3, 1] += 1e-6
        return experts, gate, intercept

    monkeypatch.setattr(Network, "to_tables", wrong)
    with pytest.raises(AssertionError):
        assert_twins(config, table, schema, n_outputs=1, on_knots=False)
