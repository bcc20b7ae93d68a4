"""Mixing experts a few rows at a time gives what mixing them at once gives, values and gradients."""

import numpy as np
import pytest
import torch

from nae.engines.torch import TorchNetwork, mixing
from nae.engines.torch.cells import RowCells
from nae.network import ENCODERS
from tests.configs import network_config
from tests.engines.torch.networks import make_torch

N_ROWS, N_FEATURES, N_SLOTS = 70, 5, 9


def make_network(gate: str, n_outputs: int, dropout: float = 0.0, encoder: str = "piecewise") -> TorchNetwork:
    config = network_config(
        encoder=encoder,
        gate=gate,
        n_experts=5,
        n_active=5,
        hidden_dim=16,
        gate_rank=6,
        n_members=3,
        expert_dropout=dropout,
    )
    inputs = np.random.default_rng(0).normal(size=(N_FEATURES, N_SLOTS, 4))
    network = make_torch(config, inputs, n_outputs)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for bias in (network.gate.bias, getattr(network.gate, "mix_bias", network.gate.bias)):
            bias.normal_(generator=generator)
    return network


@pytest.fixture
def rows() -> tuple[RowCells, torch.Tensor]:
    random = np.random.default_rng(1)
    slot = random.integers(0, N_SLOTS - 1, (N_ROWS, N_FEATURES)) + np.arange(N_FEATURES) * N_SLOTS
    cells = RowCells(torch.as_tensor(slot), torch.as_tensor(random.random((N_ROWS, N_FEATURES))))
    return cells, torch.as_tensor(random.uniform(0.2, 2.0, N_ROWS))


def outcome(network: TorchNetwork, cells: RowCells, weight: torch.Tensor) -> list[torch.Tensor]:
    """Return all that a step looks at, and the gradients of a sum in which each of these has a part."""
    evaluation = network.evaluate()
    routed = evaluation.route(cells, weight)
    own = evaluation.own_effect(routed, routed.mean_routing, cells)
    (routed.score.sin().sum() + (routed.contributions * own).sum() + own.cos().sum()).backward()
    found = [routed.score, routed.contributions, routed.mean_routing, own]
    return [tensor.detach() for tensor in found] + [parameter.grad for parameter in network.parameters()]


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("gate", ["additive", "low-rank", "deep"])
def test_blocks_and_the_whole_agree(
    gate: str, n_outputs: int, rows: tuple[RowCells, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mixing, "_BLOCK", 1000 * n_outputs)  # 13 rows each, and a rest
    found = outcome(make_network(gate, n_outputs), *rows)
    monkeypatch.setattr(TorchNetwork, "mixes_in_blocks", False)
    expected = outcome(make_network(gate, n_outputs), *rows)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


def test_dropout_in_blocks_is_that_of_the_whole(
    rows: tuple[RowCells, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mixing, "_BLOCK", 2000)
    found = outcome(make_network("low-rank", 2, dropout=0.25), *rows)
    monkeypatch.setattr(TorchNetwork, "mixes_in_blocks", False)
    expected = outcome(make_network("low-rank", 2, dropout=0.25), *rows)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)
    assert not torch.allclose(found[0], outcome(make_network("low-rank", 2), *rows)[0])


@pytest.mark.parametrize("gate", ["additive", "low-rank", "deep", "diagonal"])
@pytest.mark.parametrize("encoder", sorted(ENCODERS))
def test_a_member_alone_scores_as_among_the_others(
    encoder: str, gate: str, rows: tuple[RowCells, torch.Tensor]
) -> None:
    network = make_network(gate, 2, encoder=encoder)
    together = network(rows[0]).score
    for member in range(3):
        torch.testing.assert_close(network.evaluate().score_member(member, rows[0]), together[..., member : member + 1])


def test_no_rows_are_fine() -> None:
    cells = RowCells(torch.zeros(0, N_FEATURES, dtype=torch.int64), torch.zeros(0, N_FEATURES, dtype=torch.float64))
    routed = make_network("low-rank", 1)(cells)
    assert routed.score.shape == (0, 1, 3)
    assert not routed.mean_routing.any()
