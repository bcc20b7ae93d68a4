"""The compiled kernels give what torch's operations give, values and gradients."""

import sys

import numpy as np
import pytest
import torch

from nae import NAERegressor
from nae.estimators import fitting
from nae.network import NetworkConfig
from nae.network.cells import RowCells
from nae.network.kernels import Kernels, can_compile
from nae.network.network import Network

SHAPE = {"n_experts": 5, "n_active": 5, "hidden_dim": 16, "gate_rank": 6, "n_members": 3}
N_ROWS, N_FEATURES, N_SLOTS = 70, 5, 9


def make_network(gate: str, n_outputs: int) -> Network:
    inputs = np.random.default_rng(0).normal(size=(N_FEATURES, N_SLOTS, 4))
    generator = torch.Generator().manual_seed(0)
    return Network(NetworkConfig(gate=gate, **SHAPE), inputs, n_outputs, generator=generator)


def make_rows() -> tuple[RowCells, torch.Tensor]:
    random = np.random.default_rng(1)
    slot = random.integers(0, N_SLOTS - 1, (N_ROWS, N_FEATURES)) + np.arange(N_FEATURES) * N_SLOTS
    fraction = random.random((N_ROWS, N_FEATURES)) * (random.random((N_ROWS, N_FEATURES)) > 0.3)
    slot[0], fraction[0] = np.arange(1, N_FEATURES + 1) * N_SLOTS - 1, 0.0  # the last slot has no next one
    weight = random.uniform(0.2, 2.0, N_ROWS)
    return RowCells(torch.as_tensor(slot), torch.as_tensor(fraction).float()), torch.as_tensor(weight).float()


def outcome(network: Network) -> list[torch.Tensor]:
    """Return all that a step looks at, and the gradients of a sum in which each of these has a part."""
    cells, weight = make_rows()
    tables = network.evaluate_knots()
    routed = network(cells, tables, weight=weight)
    own = network.own_effect(routed, routed.mean_routing, cells, tables)
    (routed.score.sin().sum() + (routed.contributions * own).sum() + own.cos().sum()).backward()
    found = [routed.score, routed.contributions, routed.mean_routing, own]
    return [tensor.detach() for tensor in found] + [parameter.grad for parameter in network.parameters()]


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("gate", ["additive", "low-rank", "deep"])
def test_compiled_and_plain_steps_agree(gate: str, n_outputs: int) -> None:
    plain, compiled = make_network(gate, n_outputs), make_network(gate, n_outputs)
    compiled.compile()
    for expected, found in zip(outcome(plain), outcome(compiled), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()))


def test_any_number_of_threads_gives_the_same_bits() -> None:
    def with_threads(count: int) -> list[torch.Tensor]:
        before = torch.get_num_threads()
        torch.set_num_threads(count)
        try:
            network = make_network("low-rank", 1)
            network.compile()
        finally:
            torch.set_num_threads(before)
        assert network.kernels.n_threads == count
        return outcome(network)

    for one, many in zip(with_threads(1), with_threads(4), strict=True):
        assert torch.equal(one, many)


def test_threads_share_everything_once() -> None:
    network = make_network("low-rank", 1)
    kernels = Kernels(network.config, 1)
    for count in (1, 2, 5, 12):
        seen: list[int] = []
        kernels.share(count, lambda first, last, seen=seen: seen.extend(range(first, last)))
        assert sorted(seen) == list(range(count))


def test_without_numba_torch_does_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    assert not can_compile(NetworkConfig(**SHAPE))


@pytest.mark.parametrize(
    "change",
    [
        {"encoder": "mlp"},
        {"routing": "equal"},
        {"n_active": 2},
        {"gate": "diagonal"},
        {"expert_dropout": 0.1},
        {"n_experts": 1, "n_active": 1},
    ],
)
def test_what_has_no_kernel_is_left_to_torch(change: dict[str, object]) -> None:
    assert can_compile(NetworkConfig(**SHAPE))
    assert not can_compile(NetworkConfig(**{**SHAPE, **change}))


def test_a_compiled_fit_ends_where_a_plain_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    X = random.normal(size=(600, 4))
    y = X[:, 0] * np.sign(X[:, 1]) + X[:, 2]
    compiled: list[Network] = []
    plain_compile = Network.compile
    monkeypatch.setattr(Network, "compile", lambda network: (compiled.append(network), plain_compile(network)))

    def predictions(worth_compiling: float) -> np.ndarray:
        monkeypatch.setattr(fitting, "_WORTH_COMPILING", worth_compiling)
        return NAERegressor(n_members=3, n_experts=5, max_epochs=8, random_state=0).fit(X, y).predict(X)

    plain, fast = predictions(np.inf), predictions(0)
    assert len(compiled) == 1
    np.testing.assert_allclose(fast, plain, atol=1e-3 * y.std())
