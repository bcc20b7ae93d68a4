"""What every encoder keeps to, whichever way it is evaluated."""

import numpy as np
import pytest
import torch

from nae.encoding import Columns, Schema, build_schema, infer_kinds
from nae.engines.torch import TorchNetwork
from nae.network import ENCODERS
from tests.configs import network_config
from tests.engines.torch.networks import cells_of, make_torch

N_ROWS = 50


@pytest.fixture(scope="module")
def table() -> Columns:
    random = np.random.default_rng(0)
    level = random.choice(np.array(["a", "b", None], dtype=object), N_ROWS)
    return Columns((random.normal(size=N_ROWS), random.normal(size=N_ROWS), level), ("x", "y", "level"))


@pytest.fixture(scope="module")
def schema(table: Columns) -> Schema:
    return build_schema(table, infer_kinds(table), np.ones(N_ROWS), n_knots=7)


def network_of(encoder: str, schema: Schema, table: Columns) -> TorchNetwork:
    config = network_config(encoder=encoder, n_experts=3, n_active=3, n_members=2, hidden_dim=8)
    inputs = ENCODERS[encoder].make_inputs(schema, table, n_ramps=4, random=np.random.default_rng(0))
    return make_torch(config, inputs, 2).eval()


@pytest.mark.parametrize("encoder", sorted(ENCODERS))
def test_inputs_have_a_vector_per_slot(encoder: str, schema: Schema, table: Columns) -> None:
    inputs = network_of(encoder, schema, table).inputs
    assert inputs.shape[:2] == (3, max(feature.n_slots for feature in schema.features))
    assert not inputs[:, -1].any()  # nothing trains the slot of unseen values
    assert inputs.any(dim=2).any(dim=1).all()


@pytest.mark.parametrize("encoder", sorted(ENCODERS))
def test_an_evaluation_answers_for_several_batches_as_the_network_does(
    encoder: str, schema: Schema, table: Columns
) -> None:
    network, cells = network_of(encoder, schema, table), cells_of(schema, table)
    with torch.no_grad():
        whole, evaluation = network(cells), network.evaluate()
        for rows in torch.arange(N_ROWS).split(20):
            part = evaluation.route(cells.take(rows))
            torch.testing.assert_close(part.score, whole.score[rows])
            torch.testing.assert_close(part.contributions, whole.contributions[rows])
        routed = network.route(*evaluation.at(cells), torch.ones(N_ROWS, dtype=torch.float64))
    torch.testing.assert_close(routed.score, whole.score)


@pytest.mark.parametrize("encoder", sorted(ENCODERS))
def test_the_own_effect_is_what_the_mean_routing_gives(encoder: str, schema: Schema, table: Columns) -> None:
    network, cells = network_of(encoder, schema, table), cells_of(schema, table)
    with torch.no_grad():
        evaluation = network.evaluate()
        routed = evaluation.route(cells)
        experts, _ = evaluation.at(cells)
        own = evaluation.own_effect(routed, routed.mean_routing, cells)
    torch.testing.assert_close(own, (experts * routed.mean_routing.unsqueeze(1)).sum(dim=1))


@pytest.mark.parametrize("encoder", sorted(ENCODERS))
def test_an_encoder_says_whether_its_tables_are_exact(encoder: str, schema: Schema, table: Columns) -> None:
    network = network_of(encoder, schema, table)
    tables, _ = network.evaluate_knots()
    for on_knots in (True, False):
        cells = cells_of(schema, table, on_knots=on_knots)
        slots, weights = cells.ends()
        expected = network.spread((tables[slots] * weights.unsqueeze(-1)).sum(dim=2))
        experts, _ = network.evaluate().at(cells)
        assert torch.allclose(experts, expected) == (on_knots or ENCODERS[encoder].has_exact_tables)
