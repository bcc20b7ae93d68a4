"""Losses in torch, with gradients: from score (B, O, M) and target to a number per row and member."""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as fn
from torch import Tensor

from nae.training.losses import Loss

__all__ = ["PerRow", "loss_per_row"]

PerRow = Callable[[Tensor, Tensor], Tensor]  # (B, O, M), target -> (B, M)


def loss_per_row(loss: Loss) -> PerRow:
    """Return the function of a loss; losses of several outputs are averaged over the outputs."""
    if loss.has_classes:
        return _cross_entropy
    if loss.levels:
        return _by_output([_pinball(level) for level in loss.levels])
    if loss.option is not None:
        return _elementwise(_WITH_OPTION[loss.name](*loss.options(1)))
    return _elementwise(_PLAIN[loss.name])


def _elementwise(function: Callable[[Tensor, Tensor], Tensor]) -> PerRow:
    def per_row(score: Tensor, target: Tensor) -> Tensor:
        return function(score, target.unsqueeze(-1)).mean(dim=1)

    return per_row


def _by_output(functions: Sequence[Callable[[Tensor, Tensor], Tensor]]) -> PerRow:
    def per_row(score: Tensor, target: Tensor) -> Tensor:
        each = [own(score[:, o], target[:, o, None]) for o, own in enumerate(functions)]
        return torch.stack(each).mean(dim=0)

    return per_row


def _squared(score: Tensor, target: Tensor) -> Tensor:
    return (score - target) ** 2


def _absolute(score: Tensor, target: Tensor) -> Tensor:
    return (score - target).abs()


def _huber(delta: float) -> Callable[[Tensor, Tensor], Tensor]:
    def loss(score: Tensor, target: Tensor) -> Tensor:
        error = (score - target).abs()
        return torch.where(error <= delta, 0.5 * error**2, delta * (error - 0.5 * delta))

    return loss


def _pinball(quantile: float) -> Callable[[Tensor, Tensor], Tensor]:
    def loss(score: Tensor, target: Tensor) -> Tensor:
        error = target - score
        return torch.maximum(quantile * error, (quantile - 1) * error)

    return loss


def _poisson(score: Tensor, target: Tensor) -> Tensor:
    return score.exp() - target * score


def _gamma(score: Tensor, target: Tensor) -> Tensor:
    return score + target * (-score).exp()


def _tweedie(power: float) -> Callable[[Tensor, Tensor], Tensor]:
    def loss(score: Tensor, target: Tensor) -> Tensor:
        return ((2 - power) * score).exp() / (2 - power) - target * ((1 - power) * score).exp() / (1 - power)

    return loss


def _logistic(score: Tensor, target: Tensor) -> Tensor:
    return fn.softplus(score) - target * score


def _cross_entropy(score: Tensor, target: Tensor) -> Tensor:
    n_members = score.shape[-1]
    return fn.cross_entropy(score, target.unsqueeze(-1).expand(-1, n_members), reduction="none")


_PLAIN = {
    "squared": _squared,
    "absolute": _absolute,
    "poisson": _poisson,
    "gamma": _gamma,
    "logistic": _logistic,
}
_WITH_OPTION = {"huber": _huber, "quantile": _pinball, "tweedie": _tweedie}
