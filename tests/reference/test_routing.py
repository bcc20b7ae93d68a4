"""Bounds, straight-through gradients and Gumbel noise: what the variants add to the equations."""

import numpy as np
import pytest
import torch

from nae.engines.torch.noise import gumbel_noise
from nae.engines.torch.routing import TORCH_ROUTINGS
from nae.network import NetworkConfig
from nae.tables.routing import EqualRouting, SoftmaxRouting
from tests.configs import network_config
from tests.reference.bridge import Setting, make_setting
from tests.reference.equations import (
    bounds,
    bounds_over_combinations,
    equal_relevance,
    gumbel_relevance,
    mask,
    relevance,
    softmax,
)

N_EXPERTS = 5


def draw_logits(*shape: int) -> np.ndarray:
    return np.random.default_rng(11).normal(scale=2.0, size=shape)


def equal_weights(logits: torch.Tensor, n_active: int) -> torch.Tensor:
    return TORCH_ROUTINGS["equal"](n_active, 0.1).weights(logits)


@pytest.mark.parametrize("n_active", range(1, N_EXPERTS + 1))
def test_bounds_of_equal_weights_are_the_extremes_over_all_combinations(n_active: int) -> None:
    experts = draw_logits(6, N_EXPERTS, 2)
    lower, upper = EqualRouting(n_active).bounds(experts, axis=1)
    for t in range(len(experts)):
        least, most = bounds_over_combinations(experts[t], n_active)
        np.testing.assert_allclose(lower[t], least, atol=1e-12)
        np.testing.assert_allclose(upper[t], most, atol=1e-12)


@pytest.mark.parametrize("n_active", [1, 3, N_EXPERTS])
def test_bounds_of_softmax_are_the_least_and_the_largest_expert(n_active: int) -> None:
    experts = draw_logits(6, N_EXPERTS, 2)
    lower, upper = SoftmaxRouting(n_active).bounds(experts, axis=1)
    for t in range(len(experts)):
        least, most = bounds(experts[t])
        np.testing.assert_array_equal(lower[t], least)
        np.testing.assert_array_equal(upper[t], most)


@pytest.mark.parametrize("n_active", range(1, N_EXPERTS + 1))
@pytest.mark.parametrize(("routing", "expected"), [(SoftmaxRouting, relevance), (EqualRouting, equal_relevance)])
def test_weights_of_tables_and_torch_are_those_of_the_paper(routing, expected, n_active: int) -> None:
    logits = draw_logits(4, N_EXPERTS, 3, 2)
    logits[0, 1:3] = logits[0, :1]  # ties, which the first experts win
    tables = routing(n_active).weights(logits)
    trained = TORCH_ROUTINGS[routing.name](n_active, 0.1).weights(torch.as_tensor(logits)).numpy()
    for t, i, m in np.ndindex(4, 3, 2):
        weights = expected(logits[t, :, i, m], n_active)
        np.testing.assert_allclose(tables[t, :, i, m], weights, atol=1e-12)
        np.testing.assert_allclose(trained[t, :, i, m], weights, atol=1e-12)


@pytest.mark.parametrize("n_active", [2, 3, N_EXPERTS])
def test_the_gradient_of_equal_weights_is_the_softmax_gradient_at_equal_logits(n_active: int) -> None:
    phi = draw_logits(N_EXPERTS)
    found = torch.autograd.functional.jacobian(
        lambda logits: equal_weights(logits.view(1, -1, 1, 1), n_active).flatten(), torch.as_tensor(phi)
    )
    active = np.isfinite(mask(phi, n_active))
    at_equal = np.zeros((N_EXPERTS, N_EXPERTS))
    share = active / n_active
    at_equal[np.diag_indices(N_EXPERTS)] = share
    at_equal -= np.outer(share, share)
    np.testing.assert_allclose(found, at_equal, atol=1e-12)


def test_the_gradient_of_equal_weights_is_that_of_equation_25_with_its_copy_held() -> None:
    phi, step = draw_logits(N_EXPERTS), 1e-6
    found = torch.autograd.functional.jacobian(
        lambda logits: equal_weights(logits.view(1, -1, 1, 1), 3).flatten(), torch.as_tensor(phi)
    )
    for k in range(N_EXPERTS):
        moved = step * np.eye(N_EXPERTS)[k]
        rise = equal_relevance(phi + moved, 3, frozen=phi) - equal_relevance(phi - moved, 3, frozen=phi)
        np.testing.assert_allclose(found[:, k], rise / (2 * step), atol=1e-8)


def test_equal_weights_do_not_depend_on_the_logits_but_train_the_gate() -> None:
    setting = make_setting(_config("equal", "additive", n_active=2))
    setting.network(setting.cells).score.sum().backward()
    assert setting.network.gate.weight.grad.abs().max() > 1e-6
    with torch.no_grad():
        weights = setting.network(setting.cells).routing
    assert set(np.unique(weights.numpy())) == {0.0, 0.5}


@pytest.mark.parametrize("n_active", [3, N_EXPERTS])
def test_gumbel_noise_resamples_the_relevance_as_in_equation_23(n_active: int) -> None:
    logits = torch.as_tensor(draw_logits(4, N_EXPERTS, 3, 2))
    found = TORCH_ROUTINGS["gumbel"](n_active, 0.1).weights(logits, counter=torch.tensor(5)).numpy()
    noise = gumbel_noise(logits.shape, torch.tensor(5), logits.dtype).numpy()
    for t, i, m in np.ndindex(4, 3, 2):
        weights = relevance(logits[t, :, i, m].numpy(), n_active)
        np.testing.assert_allclose(found[t, :, i, m], gumbel_relevance(weights, noise[t, :, i, m]), atol=1e-9)


def test_the_expert_that_gumbel_noise_favours_is_drawn_from_the_relevance() -> None:
    phi = np.array([1.0, 0.0, -0.5, 0.3, -2.0])
    n_draws = 20_000
    logits = torch.as_tensor(phi).view(1, -1, 1, 1).expand(n_draws, -1, 1, 1)
    counter = torch.tensor(0)
    drawn = TORCH_ROUTINGS["gumbel"](N_EXPERTS, 0.1).weights(logits, counter=counter).argmax(dim=1).numpy()
    frequency = np.bincount(drawn.ravel(), minlength=N_EXPERTS) / n_draws
    np.testing.assert_allclose(frequency, softmax(phi), atol=4 * np.sqrt(0.25 / n_draws))


def test_gumbel_noise_ends_with_training() -> None:
    setting = make_setting(_config("gumbel", "diagonal", n_active=4))
    network, cells = setting.network, setting.cells
    with torch.no_grad():
        network.train()
        assert not torch.equal(network(cells).routing, network(cells).routing)
        network.eval()
        torch.testing.assert_close(network(cells).routing, network(cells).routing, rtol=0, atol=0)


def test_an_own_gate_ignores_the_other_features() -> None:
    others = _with_other_columns(make_setting(_config("gumbel", "diagonal", n_active=4)))
    np.testing.assert_allclose(*others, atol=1e-12)


def test_an_additive_gate_does_not() -> None:
    before, after = _with_other_columns(make_setting(_config("softmax", "additive", n_active=4)))
    assert np.abs(before - after).max() > 1e-3


def _with_other_columns(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Return the contributions of the first feature, and again after the other columns were turned round."""
    cells = setting.cells
    turned = type(cells)(cells.slot.flip(0), cells.fraction.flip(0))
    turned.slot[:, 0], turned.fraction[:, 0] = cells.slot[:, 0], cells.fraction[:, 0]
    with torch.no_grad():
        return tuple(setting.network(each).contributions[:, :, 0].numpy() for each in (cells, turned))


def _config(routing: str, gate: str, n_active: int) -> NetworkConfig:
    return network_config(routing=routing, gate=gate, n_experts=4, n_active=n_active, hidden_dim=5, n_members=2)
