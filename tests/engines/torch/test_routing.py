"""The weights of experts in training against the paper's equations, gradients included."""

import numpy as np
import pytest
import torch

from nae.engines.torch.noise import gumbel_noise, random_bytes
from nae.engines.torch.routing import TORCH_ROUTINGS


def _counter() -> torch.Tensor:
    return torch.tensor(0)


def _logits(n_experts: int = 6, n_rows: int = 5) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n_rows, n_experts, 2, 1, generator=generator, dtype=torch.float64)


def test_equal_weights_lie_on_the_largest_logits() -> None:
    logits = _logits()
    weights = TORCH_ROUTINGS["equal"](3, 1.0).weights(logits)
    chosen = logits.topk(3, dim=1).indices
    torch.testing.assert_close(weights.gather(1, chosen), torch.full_like(weights[:, :3], 1 / 3))
    torch.testing.assert_close(weights.sum(dim=1), torch.ones_like(weights[:, 0]))


def test_equal_weights_have_the_gradient_of_a_softmax_at_equal_weights() -> None:
    logits = _logits(n_rows=1).requires_grad_()
    outputs = torch.randn(logits.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (TORCH_ROUTINGS["equal"](3, 1.0).weights(logits) * outputs).sum().backward()
    chosen = logits.detach().topk(3, dim=1).indices
    active = torch.zeros_like(outputs).scatter_(1, chosen, 1.0)
    mean = (outputs * active).sum(dim=1, keepdim=True) / 3
    # Eq. (25): r (o − mean o) with r = 1 / C for the active experts, nothing for the others.
    torch.testing.assert_close(logits.grad, active * (outputs - mean) / 3)


def test_gumbel_noise_draws_an_expert_as_often_as_its_softmax_says() -> None:
    logits = _logits(n_experts=4, n_rows=1).expand(20_000, -1, -1, -1)
    drawn = TORCH_ROUTINGS["gumbel"](4, 0.1).weights(logits, counter=_counter())
    often = torch.nn.functional.one_hot(drawn.argmax(dim=1), 4).double().mean(dim=0)  # (feature, member, expert)
    torch.testing.assert_close(often.permute(2, 0, 1), logits[0].softmax(dim=0), atol=0.015, rtol=0.0)


@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_a_low_temperature_gives_nearly_all_weight_to_the_drawn_expert(temperature: float) -> None:
    largest = (
        TORCH_ROUTINGS["gumbel"](6, temperature).weights(_logits(n_rows=2000), counter=_counter()).amax(dim=1).mean()
    )
    assert (largest > 0.9) == (temperature == 0.1)


def test_no_noise_is_drawn_where_nothing_is_trained() -> None:
    logits = _logits()
    torch.testing.assert_close(TORCH_ROUTINGS["gumbel"](6, 0.1).weights(logits), logits.softmax(dim=1))


def test_noise_is_that_of_the_counter_which_moves_on() -> None:
    counter = torch.tensor(7)
    found = gumbel_noise(torch.Size((3, 5)), counter, torch.float64)
    assert int(counter) == 7 + 8
    words = random_bytes(15 * 4, torch.tensor(7)).numpy().view("<u4")
    uniform = ((words >> 9) + 0.5) / 2**23
    np.testing.assert_allclose(found.numpy().ravel(), -np.log(-np.log(uniform)), rtol=1e-12)
    assert not torch.equal(found, gumbel_noise(torch.Size((3, 5)), counter, torch.float64))


def test_noise_of_extreme_numbers_is_finite_in_single_precision() -> None:
    found = gumbel_noise(torch.Size((2**22,)), torch.tensor(0), torch.float32)
    assert found.isfinite().all()
    assert float(found.mean()) == pytest.approx(np.euler_gamma, abs=0.005)
    assert float(found.std()) == pytest.approx(np.pi / 6**0.5, abs=0.005)
