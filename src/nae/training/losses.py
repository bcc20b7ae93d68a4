"""Losses: functions from score and target to a number per row and member, each with its link.

Scores have shape (row, output, member). Losses of several outputs are averaged over the outputs. Each loss also has, in
numpy, the *excess* of every row and how fast it grows with the score: the intercept of a finished model is the one at
which the excess adds up to zero. The excess is prediction minus target if totals are to match, and otherwise the slope
of the loss.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as fn
from torch import Tensor

from nae._typing import Array
from nae.errors import ConfigError, did_you_mean
from nae.links import LINKS
from nae.parameters import NumberParameters

__all__ = ["LOSSES", "ROBUST", "Loss", "make_loss"]


Excess = Callable[[Array, Array], tuple[Array, Array]]  # score, target -> excess, slope; (B, O) each


@dataclass(frozen=True)
class Loss:
    """A loss, its link, and the targets it is for."""

    name: str
    link: str
    per_row: Callable[[Tensor, Tensor], Tensor]  # (B, O, M), target -> (B, M)
    excess: Excess  # weighted, it adds up to zero once the model is balanced
    domain: str = "any"  # 'any', 'non-negative' or 'positive'
    is_scaled: bool = False  # the target is standardised
    option: tuple[str, float] | None = None  # its parameter, as the estimator calls it
    has_classes: bool = False  # the target is the number of a class, and every class has a score


def _elementwise(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    def per_row(score: Tensor, target: Tensor) -> Tensor:
        return function(score, target.unsqueeze(-1)).mean(dim=1)

    return per_row


def _squared(score: Tensor, target: Tensor) -> Tensor:
    return (score - target) ** 2


def _residual(score: Array, target: Array) -> tuple[Array, Array]:
    return score - target, np.ones_like(score)


def _absolute(score: Tensor, target: Tensor) -> Tensor:
    return (score - target).abs()


def _huber(delta: float) -> Callable[[Tensor, Tensor], Tensor]:
    def loss(score: Tensor, target: Tensor) -> Tensor:
        error = (score - target).abs()
        return torch.where(error <= delta, 0.5 * error**2, delta * (error - 0.5 * delta))

    return loss


def _clipped(delta: float) -> Excess:
    def excess(score: Array, target: Array) -> tuple[Array, Array]:
        error = score - target
        return np.clip(error, -delta, delta), (np.abs(error) < delta).astype(np.float64)

    return excess


def _pinball(quantile: float) -> Callable[[Tensor, Tensor], Tensor]:
    def loss(score: Tensor, target: Tensor) -> Tensor:
        error = target - score
        return torch.maximum(quantile * error, (quantile - 1) * error)

    return loss


def _above(quantile: float) -> Excess:
    """Return 1 - quantile for scores above the target and -quantile for those below; this has no slope."""

    def excess(score: Array, target: Array) -> tuple[Array, Array]:
        return np.where(score == target, 0.0, (score > target) - quantile), np.zeros_like(score)

    return excess


def _poisson(score: Tensor, target: Tensor) -> Tensor:
    return score.exp() - target * score


def _mean_excess(score: Array, target: Array) -> tuple[Array, Array]:
    """Return the excess of Poisson, gamma and Tweedie loss: an insurer's totals must be those of the claims."""
    mean = LINKS["log"].inverse(score)
    return mean - target, mean


def _gamma(score: Tensor, target: Tensor) -> Tensor:
    return score + target * (-score).exp()


def _tweedie(power: float) -> Callable[[Tensor, Tensor], Tensor]:
    def loss(score: Tensor, target: Tensor) -> Tensor:
        return ((2 - power) * score).exp() / (2 - power) - target * ((1 - power) * score).exp() / (1 - power)

    return loss


def _logistic(score: Tensor, target: Tensor) -> Tensor:
    return fn.softplus(score) - target * score


def _probability_excess(score: Array, target: Array) -> tuple[Array, Array]:
    chance = LINKS["logit"].inverse(score)
    return chance - target, chance * (1 - chance)


def _cross_entropy(score: Tensor, target: Tensor) -> Tensor:
    n_members = score.shape[-1]
    return fn.cross_entropy(score, target.unsqueeze(-1).expand(-1, n_members), reduction="none")


def _class_excess(score: Array, target: Array) -> tuple[Array, Array]:
    """Return the excess of every class, and its probability: the slope is not diagonal and follows from these."""
    chance = LINKS["softmax"].inverse(score)
    return chance - (target[:, None] == np.arange(score.shape[1])), chance


LOSSES = ("squared", "absolute", "huber", "quantile", "poisson", "gamma", "tweedie", "logistic", "cross-entropy")

ROBUST = ("absolute", "huber", "quantile")  # these bear a few targets far out, and so must what they are measured in


def make_loss(
    name: str,
    *,
    quantile: float = NumberParameters.quantile,
    power: float = NumberParameters.tweedie_power,
    delta: float = NumberParameters.huber_delta,
) -> Loss:
    """Return the loss called ``name`` with its parameter, if it has one."""
    if name not in LOSSES:
        raise ConfigError(f"loss must be one of {list(LOSSES)}; got {name!r}.{did_you_mean(name, LOSSES)}")
    if name == "quantile" and not 0 < quantile < 1:
        raise ConfigError(f"quantile must be in (0, 1); got {quantile}.")
    if name == "tweedie" and not 1 < power < 2:
        raise ConfigError(f"tweedie_power must be in (1, 2); got {power}. Use loss='poisson' for 1 and 'gamma' for 2.")
    if name == "huber" and not delta > 0:
        raise ConfigError(f"huber_delta must be positive; got {delta}.")
    made = {
        "squared": Loss(name, "identity", _elementwise(_squared), _residual, is_scaled=True),
        "absolute": Loss(name, "identity", _elementwise(_absolute), _above(0.5), is_scaled=True),
        "huber": Loss(
            name,
            "identity",
            _elementwise(_huber(delta)),
            _clipped(delta),
            is_scaled=True,
            option=("huber_delta", delta),
        ),
        "quantile": Loss(
            name,
            "identity",
            _elementwise(_pinball(quantile)),
            _above(quantile),
            is_scaled=True,
            option=("quantile", quantile),
        ),
        "poisson": Loss(name, "log", _elementwise(_poisson), _mean_excess, domain="non-negative"),
        "gamma": Loss(name, "log", _elementwise(_gamma), _mean_excess, domain="positive"),
        "tweedie": Loss(
            name,
            "log",
            _elementwise(_tweedie(power)),
            _mean_excess,
            domain="non-negative",
            option=("tweedie_power", power),
        ),
        "logistic": Loss(name, "logit", _elementwise(_logistic), _probability_excess),
        "cross-entropy": Loss(name, "softmax", _cross_entropy, _class_excess, has_classes=True),
    }
    return made[name]
