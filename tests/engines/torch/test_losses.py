"""The losses of torch are those of numpy, and its automatic gradients are the slopes that numpy has formulas for."""

import numpy as np
import pytest
import torch

from nae.engines.torch.losses import loss_per_row
from nae.training.losses import LOSSES, Loss, make_loss

CORNERS = ("absolute", "huber", "quantile")
OPTIONS = [(name, {}) for name in LOSSES]
SEVERAL = ("quantile", {"quantile": (0.1, 0.5, 0.8)})
OPTIONS += [("quantile", {"quantile": 0.9}), ("huber", {"delta": 0.2}), ("tweedie", {"power": 1.2})]


def problem_of(name: str, n_outputs: int = 2, n_members: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return scores (B, O, M), and targets some of which they hit exactly."""
    random = np.random.default_rng(0)
    score = 1.5 * random.normal(size=(40, n_outputs, n_members))
    if name == "cross-entropy":
        return score, random.integers(0, n_outputs, 40)
    target = random.integers(0, 3 if name in ("poisson", "tweedie") else 2, (40, n_outputs)).astype(float)
    if name == "gamma":
        target += 0.5
    if name in CORNERS:
        score[:5] = target[:5, :, None]
    return score, target


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_several_quantiles_are_those_of_numpy(dtype: torch.dtype) -> None:
    loss, (score, target) = make_loss(SEVERAL[0], **SEVERAL[1]), problem_of("quantile", n_outputs=3)
    found = loss_per_row(loss)(torch.as_tensor(score, dtype=dtype), torch.as_tensor(target, dtype=dtype))
    assert found.dtype == dtype
    tolerance = 1e-12 if dtype == torch.float64 else 1e-5
    np.testing.assert_allclose(found, loss.per_row(score, target), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(
        loss.derivatives(score, target)[0], gradients(loss, score, target)[0], rtol=1e-12, atol=1e-14
    )


def gradients(loss: Loss, score: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return slope and curvature of every row's loss along each of its scores, as torch finds them."""
    at = torch.as_tensor(score).requires_grad_()
    (slope,) = torch.autograd.grad(loss_per_row(loss)(at, torch.as_tensor(target)).sum(), at, create_graph=True)
    curvature = torch.zeros_like(slope)
    if slope.requires_grad:  # that of a straight side is zero
        for output in range(score.shape[1]):
            (own,) = torch.autograd.grad(slope[:, output].sum(), at, retain_graph=True)
            curvature[:, output] = own[:, output]
    return slope.detach().numpy(), curvature.detach().numpy()


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_a_loss_is_that_of_numpy(name: str, options: dict[str, float]) -> None:
    loss, (score, target) = make_loss(name, **options), problem_of(name)
    found = loss_per_row(loss)(torch.as_tensor(score), torch.as_tensor(target))
    assert found.shape == (40, 3)
    np.testing.assert_allclose(found, loss.per_row(score, target), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_slopes_are_torchs_gradients(name: str, options: dict[str, float]) -> None:
    loss, (score, target) = make_loss(name, **options), problem_of(name, n_outputs=3)
    slope, _ = loss.derivatives(score, target)
    np.testing.assert_allclose(slope, gradients(loss, score, target)[0], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("name", "options"), [each for each in OPTIONS if each[0] not in CORNERS])
def test_curvatures_are_torchs_gradients_of_gradients(name: str, options: dict[str, float]) -> None:
    loss, (score, target) = make_loss(name, **options), problem_of(name, n_outputs=3)
    _, curvature = loss.derivatives(score, target)
    expected = np.maximum(gradients(loss, score, target)[1], 1e-4)
    np.testing.assert_allclose(curvature, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in ("gamma", "tweedie")])
def test_the_excess_is_the_slope_of_the_loss(name: str) -> None:
    random = np.random.default_rng(4)
    target = random.integers(0, 3 if name == "cross-entropy" else 2, 50)
    target = target if name == "cross-entropy" else target[:, None].astype(float)
    score = 2 * random.normal(size=(50, 3 if name == "cross-entropy" else 1))
    loss = make_loss(name, quantile=0.3)
    slope, _ = gradients(loss, score[:, :, None], target)
    factor = 2.0 if name in ("squared", "absolute") else 1.0  # what is zero stays zero
    np.testing.assert_allclose(factor * loss.excess(score, target)[0], slope[:, :, 0], atol=1e-12)


def test_extreme_scores_of_two_classes_do_not_overflow() -> None:
    score = torch.tensor([-1e4, 1e4]).view(2, 1, 1)
    found = loss_per_row(make_loss("logistic"))(score, torch.tensor([[0.0], [1.0]]))
    assert found.flatten().tolist() == [0, 0]
