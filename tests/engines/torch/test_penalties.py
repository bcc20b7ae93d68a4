"""Penalties and the dial, against sums written out."""

import numpy as np
import pytest
import torch

from nae.engines.torch.dial import Dial, context_share
from nae.engines.torch.network import Routed
from nae.engines.torch.penalties import output_penalty, variation_penalty, weighted_mean
from nae.training.dial import make_dial as begin_dial
from tests.configs import network_config, training_config

SHAPE = (30, 4, 2, 3, 2)  # rows, experts, outputs, features, members


_RANDOM = np.random.default_rng(0).uniform(0.2, 3, 30)
WEIGHT = torch.as_tensor(_RANDOM / _RANDOM.mean())


@pytest.fixture
def weight() -> torch.Tensor:
    return WEIGHT


def press(dial: Dial, *, is_constant: bool = False) -> torch.Tensor:
    found = routed(is_constant=is_constant)
    return dial.penalty(found.contributions, own_effect(found), WEIGHT)


def draw_routing(*, is_constant: bool = False) -> torch.Tensor:
    logits = np.random.default_rng(3).normal(size=(1 if is_constant else 30, 4, 3, 2)) * 2
    return torch.as_tensor(logits).softmax(dim=1).expand(30, -1, -1, -1)


def routed(*, is_constant: bool = False) -> Routed:
    experts = torch.as_tensor(np.random.default_rng(1).normal(size=SHAPE))
    routing = draw_routing(is_constant=is_constant)
    contributions = (experts * routing.unsqueeze(2)).sum(dim=1)
    mean_routing = weighted_mean(routing, WEIGHT)
    return Routed(contributions.sum(dim=2), contributions, mean_routing, experts)


def own_effect(found: Routed) -> torch.Tensor:
    return (found.experts * found.mean_routing.unsqueeze(1)).sum(dim=1)


def test_a_weighted_mean_weighs_rows(weight):
    values = torch.as_tensor(np.random.default_rng(2).normal(size=(30, 2, 3)))
    expected = np.average(values.numpy(), axis=0, weights=weight.numpy())
    np.testing.assert_allclose(weighted_mean(values, weight).numpy(), expected)


def test_the_variation_penalty_is_the_variance_over_experts(weight):
    experts = routed().experts
    expected = np.average(experts.numpy().var(axis=1), axis=0, weights=weight.numpy()).mean(axis=(0, 1))
    np.testing.assert_allclose(variation_penalty(experts, weight).numpy(), expected)


def test_the_output_penalty_is_the_mean_square_of_contributions(weight):
    found = routed()
    expected = np.average(found.contributions.numpy() ** 2, axis=0, weights=weight.numpy()).mean(axis=(0, 1))
    np.testing.assert_allclose(output_penalty(found, weight).numpy(), expected)


def test_routing_that_never_changes_has_no_context(weight):
    for is_constant in (True, False):
        found = routed(is_constant=is_constant)
        share = context_share(found.contributions, own_effect(found), weight).numpy()
        assert (share < 1e-15).all() if is_constant else (share > 0.1).all()


def test_the_share_of_context_is_a_ratio_of_variances(weight):
    found = routed()
    w = weight.numpy()[:, None, None, None]
    mean = (draw_routing().numpy() * w).mean(axis=0)
    own = (found.experts.numpy() * mean[:, None]).sum(axis=1)
    values = found.contributions.numpy()
    context = ((values - own) ** 2 * w).mean(axis=0)
    spread = ((values - (values * w).mean(axis=0)) ** 2 * w).mean(axis=0)
    share = context_share(found.contributions, own_effect(found), weight).numpy()
    np.testing.assert_allclose(share, (context / (spread + 0.01)).mean(axis=(0, 1)))


def make_dial(target: float, *, least: float = 0.0) -> Dial:
    config = training_config(additivity=target, initial_penalty=0.1, context_penalty=least)
    state = begin_dial(network_config(n_experts=4, n_active=4), config)
    assert state is not None
    return Dial(state, device=torch.device("cpu"), dtype=torch.float64)


def test_the_dial_presses_harder_while_additivity_is_short_of_its_target():
    short, reached = make_dial(0.99), make_dial(0.05)
    for _ in range(50):
        press(short)
        press(reached)
    assert short.log_gamma > np.log(0.1) + 0.1
    assert reached.log_gamma < np.log(0.1) - 0.1
    assert 0 <= short.running <= 1


def test_the_dial_presses_no_less_than_a_fit_without_target():
    free, held = make_dial(0.05), make_dial(0.05, least=0.08)
    for _ in range(50):
        press(free)
        press(held)
    assert held.log_gamma.exp() == pytest.approx(0.08)
    assert free.log_gamma < held.log_gamma


def test_the_dial_measures_full_additivity_where_there_is_no_context():
    dial = make_dial(0.9)
    for _ in range(200):
        penalty = press(dial, is_constant=True)
    assert float(dial.running) == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(penalty.numpy(), 0, atol=1e-12)


def test_the_dials_penalty_is_one_number_per_member_with_a_gradient(weight):
    found = routed()
    found.experts.requires_grad_()
    contributions = (found.experts * draw_routing().unsqueeze(2)).sum(dim=1)
    penalty = make_dial(0.9).penalty(contributions, own_effect(found), weight)
    assert penalty.shape == (2,)
    penalty.sum().backward()
    assert found.experts.grad.abs().max() > 0


def test_the_dials_share_does_not_depend_on_how_small_all_contributions_are(weight):
    found = routed()
    own = own_effect(found)
    shares = [
        context_share(scale * found.contributions, scale * own, weight, is_relative=True) for scale in (1e-2, 1e-3)
    ]
    torch.testing.assert_close(*shares, rtol=1e-4, atol=0)
    assert (context_share(1e-3 * found.contributions, 1e-3 * own, weight) < 1e-3).all()
