"""Losses: (score, target) -> one number per row and member, with the link each belongs to.

Scores have shape (row, output, member). Losses of several outputs are averaged over the outputs.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as fn
from torch import Tensor

from nae.errors import ConfigError, did_you_mean

__all__ = ["LOSSES", "Loss", "make_loss"]


@dataclass(frozen=True)
class Loss:
    """A loss, its link, and which targets it takes."""

    name: str
    link: str
    per_row: Callable[[Tensor, Tensor], Tensor]  # (B, O, M), target -> (B, M)
    domain: str = "any"  # 'any', 'non-negative' or 'positive'
    is_scaled: bool = False  # the target is standardised
    option: tuple[str, float] | None = None  # its parameter, as the estimator calls it


def _elementwise(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    def per_row(score: Tensor, target: Tensor) -> Tensor:
        return function(score, target.unsqueeze(-1)).mean(dim=1)

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


LOSSES = ("squared", "absolute", "huber", "quantile", "poisson", "gamma", "tweedie", "logistic", "cross-entropy")


def make_loss(name: str, *, quantile: float = 0.5, power: float = 1.5, delta: float = 1.35) -> Loss:
    """Return the loss called ``name`` with its parameter filled in."""
    if name not in LOSSES:
        raise ConfigError(f"loss must be one of {list(LOSSES)}; got {name!r}.{did_you_mean(name, LOSSES)}")
    if name == "quantile" and not 0 < quantile < 1:
        raise ConfigError(f"quantile must be in (0, 1); got {quantile}.")
    if name == "tweedie" and not 1 < power < 2:
        raise ConfigError(f"tweedie_power must be in (1, 2); got {power}. Use loss='poisson' for 1 and 'gamma' for 2.")
    if name == "huber" and not delta > 0:
        raise ConfigError(f"huber_delta must be positive; got {delta}.")
    made = {
        "squared": Loss(name, "identity", _elementwise(_squared), is_scaled=True),
        "absolute": Loss(name, "identity", _elementwise(_absolute), is_scaled=True),
        "huber": Loss(name, "identity", _elementwise(_huber(delta)), is_scaled=True, option=("huber_delta", delta)),
        "quantile": Loss(
            name, "identity", _elementwise(_pinball(quantile)), is_scaled=True, option=("quantile", quantile)
        ),
        "poisson": Loss(name, "log", _elementwise(_poisson), domain="non-negative"),
        "gamma": Loss(name, "log", _elementwise(_gamma), domain="positive"),
        "tweedie": Loss(
            name, "log", _elementwise(_tweedie(power)), domain="non-negative", option=("tweedie_power", power)
        ),
        "logistic": Loss(name, "logit", _elementwise(_logistic)),
        "cross-entropy": Loss(name, "softmax", _cross_entropy),
    }
    return made[name]
