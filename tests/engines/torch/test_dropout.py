"""Dropped weights: how many, which, and in training alone."""

import numpy as np
import pytest
import torch

from nae.engines.torch import TorchNetwork
from nae.engines.torch.cells import RowCells
from nae.engines.torch.dropout import drop
from nae.engines.torch.noise import random_bytes
from nae.network import draw_network
from tests.configs import network_config
from tests.engines.torch.networks import make_torch


def testrandom_bytes_are_those_of_splitmix64() -> None:
    counter = torch.tensor(1)
    found = random_bytes(24, counter).numpy().view("<u8")
    # The first numbers of the published generator whose state is zero.
    assert [hex(word) for word in found] == ["0xe220a8397b1dcdaf", "0x6e789e6aa1b965f4", "0x6c45d188009454f"]
    assert int(counter) == 4
    assert random_bytes(8, counter).numpy().view("<u8")[0] == 0xF88BB8A8724C81EC


@pytest.mark.parametrize("share", [0.05, 0.3, 0.999])
def test_the_share_is_dropped_to_the_next_256th(share: float) -> None:
    found = drop(torch.Size((7, 11, 13, 999)), share, torch.tensor(5))
    assert found is not None
    chance = max(1, round(256 * (1 - share))) / 256
    assert found.kept.double().mean() == pytest.approx(chance, abs=5 * (chance * (1 - chance) / 1e6) ** 0.5)
    assert found.factor == pytest.approx(1 / chance)
    routing = torch.rand(found.kept.shape, dtype=torch.float64)
    assert torch.equal(found.thin(routing[2:4], slice(2, 4)), (routing * found.kept.double() * found.factor)[2:4])


def test_nothing_is_drawn_where_next_to_nothing_is_dropped() -> None:
    counter = torch.tensor(5)
    assert drop(torch.Size((2, 2, 2, 2)), 0.001, counter) is None
    assert int(counter) == 5


def test_noise_is_for_training_and_keeps_the_mean() -> None:
    random = np.random.default_rng(0)
    config = network_config(n_experts=4, n_active=4, n_members=2, hidden_dim=8, gate="additive", expert_dropout=0.3)
    network = make_torch(config, random.normal(size=(3, 5, 4)), 1)
    slot = torch.as_tensor(random.integers(0, 4, (50, 3)) + np.arange(3) * 5)
    cells = RowCells(slot, torch.as_tensor(random.random((50, 3))))
    noisy = torch.stack([network(cells).score.detach() for _ in range(600)])
    network.eval()
    quiet = network(cells).score.detach()
    assert torch.equal(network(cells).score, quiet)
    gap = (noisy.mean(dim=0) - quiet) / (noisy.std(dim=0) / 600**0.5)
    assert 0.8 < gap.std() < 1.2  # no more than chance


def test_networks_without_dropout_count_no_noise_and_begin_alike() -> None:
    """Dropout takes nothing from the generator that networks without it do not take."""
    states, arrays = [], []
    for share in (0.0, 0.1):
        random = np.random.default_rng(0)
        config = network_config(n_experts=2, n_active=2, hidden_dim=4, expert_dropout=share)
        drawn = draw_network(config, np.ones((1, 2, 3)), 1, random=random)
        network = TorchNetwork(drawn)
        states.append(random.bit_generator.state)
        arrays.append(drawn.arrays)
        assert (network.noise is None) == (share == 0)
        assert network.noise is None or int(network.noise) == drawn.noise
        assert "noise" not in network.state_dict()
    assert states[0] == states[1]
    assert all(np.array_equal(array, arrays[1][name]) for name, array in arrays[0].items())
