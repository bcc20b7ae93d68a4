"""Grouping features by their slots changes what a step costs, not what it computes."""

import numpy as np
import pytest
import torch

from nae.engines.torch import TorchNetwork
from nae.engines.torch.groups import group_features
from tests.configs import network_config
from tests.engines.torch.networks import make_torch

COUNTS = (3, 40, 1, 8, 20, 2, 40, 5)  # slots that the features use
N_SLOTS, WIDTH = 42, 12


def make_inputs() -> np.ndarray:
    """Numbers have their inputs in the first four columns, features of few slots in the others."""
    inputs = np.zeros((len(COUNTS), N_SLOTS, WIDTH))
    random = np.random.default_rng(0)
    for feature, count in enumerate(COUNTS):
        columns = slice(0, 4) if count > 8 else slice(4, WIDTH)
        inputs[feature, :count, columns] = random.normal(size=inputs[feature, :count, columns].shape)
    inputs[2] = 0  # a constant number: its only input is zero
    return inputs


def make_network(gate: str, constant: np.ndarray | None = None) -> TorchNetwork:
    config = network_config(gate=gate, n_experts=3, n_active=3, hidden_dim=16, gate_rank=5, n_members=2)
    return make_torch(config, make_inputs(), 2, constant=constant)


def outcome(network: TorchNetwork) -> list[torch.Tensor]:
    """Return the tables where the slots are used, and the gradients of a sum over these."""
    is_used = torch.as_tensor(np.arange(N_SLOTS) < np.array(COUNTS)[:, None]).flatten()
    experts, terms = network.evaluate_knots()
    experts, terms = experts[is_used], terms[:, is_used]
    (experts.sin().sum() + terms.cos().sum()).backward()
    return [experts.detach(), terms.detach(), *(each.grad for each in network.parameters() if each.grad is not None)]


@pytest.mark.parametrize("gate", ["additive", "low-rank", "diagonal"])
def test_grouped_features_give_the_same_tables_and_gradients(gate: str) -> None:
    constant = np.arange(len(COUNTS)) == 2
    together, grouped = make_network(gate, constant), make_network(gate, constant)
    assert grouped.groups is not None
    assert (grouped.groups.sizes, grouped.groups.n_slots) == ((5, 1, 2), (8, 20, 40))
    together.groups = None
    for expected, found in zip(outcome(together), outcome(grouped), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10 * float(expected.abs().max()))


def test_features_of_one_size_stay_together() -> None:
    assert group_features(np.random.default_rng(0).normal(size=(5, 64, 17))) is None


def test_a_table_of_constants_has_groups_that_work() -> None:
    config = network_config(n_experts=2, n_active=2, hidden_dim=4)
    network = make_torch(config, np.zeros((3, 40, 6)), 1)
    assert network.groups is not None
    assert all(torch.isfinite(table).all() for table in network.evaluate_knots())
