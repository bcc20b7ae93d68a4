"""The dial: a user asks for additivity, and a controller finds the strength of the penalty that leads to it."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from nae.network import Network
from nae.training.config import TrainingConfig
from nae.training.penalties import weighted_mean
from nae.training.workers import ALONE, Workers

__all__ = ["Dial", "context_share", "make_dial", "measured_additivity"]

_SPEED = 0.05  # of the controller, per step
_FLOOR = 1e-2  # of a variance, where the target's is one


class Dial:
    """A penalty on what additivity is defined by, whose weight is steered towards the target.

    For each feature, the penalty is the share of its contribution's variance that context causes. In each step, the
    logarithm of the penalty's weight moves by the difference between the target and the running additivity. The weight
    is never below ``least``: if the data are more additive than the target, that is all it costs. The state lives in
    tensors, so that a step can be captured in a CUDA graph and needs no synchronisation.
    """

    def __init__(
        self,
        target: float,
        *,
        start: float,
        least: float,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.target = target
        self.log_least = max(-9.0, math.log(least)) if least > 0 else -9.0
        self.log_gamma = torch.full((), math.log(start), device=device, dtype=dtype)
        self.running = torch.full((), 0.5, device=device, dtype=dtype)

    def penalty(self, contributions: Tensor, own: Tensor, weight: Tensor, workers: Workers = ALONE) -> Tensor:
        """Return the penalty per member, and move the controller one step."""
        with torch.no_grad():
            self.running.lerp_(measured_additivity(contributions, own, weight, workers), 0.05)
            self.log_gamma.add_(_SPEED * (self.target - self.running)).clamp_(self.log_least, 4.0)
            gamma = self.log_gamma.exp()
        return gamma * context_share(contributions, own, weight, workers, is_relative=True)

    @property
    def strength(self) -> float:
        """The weight of the penalty as it is now."""
        return float(self.log_gamma.exp())

    def tensors(self) -> dict[str, Tensor]:
        """Return the state by name."""
        return {"log_gamma": self.log_gamma, "running": self.running}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Put the state back."""
        for name, tensor in self.tensors().items():
            tensor.copy_(tensors[name])


def make_dial(network: Network, config: TrainingConfig) -> Dial | None:
    """Return the dial that a training asks for; a single expert per feature is additive anyway and needs none."""
    if config.additivity is None or network.config.n_experts == 1:
        return None
    return Dial(
        config.additivity,
        start=config.initial_penalty,
        least=config.context_penalty,
        device=network.intercept.device,
        dtype=network.intercept.dtype,
    )


@torch.no_grad()
def measured_additivity(contributions: Tensor, own: Tensor, weight: Tensor, workers: Workers = ALONE) -> Tensor:
    """Return the additivity of the members' mean: users get this mean, and it is more additive than each member."""
    together, own_together = contributions.mean(dim=-1, keepdim=True), own.mean(dim=-1, keepdim=True)
    context, spread = context_variance(together, own_together, weight, workers)
    score_variance = spread.sum(dim=1, keepdim=True)
    return 1 - (context / (spread + 1e-6 * score_variance + 1e-12)).clamp(max=1.0).mean()


def context_variance(
    contributions: Tensor, own: Tensor, weight: Tensor, workers: Workers = ALONE
) -> tuple[Tensor, Tensor]:
    """Return per output, feature and member the variance that context causes, and the whole variance (detached).

    ``own`` is each contribution with its feature's mean routing over the batch. Reports measure additivity by the mean
    effects of :mod:`nae.explanation.own`, which would take too long in a step. Of all functions of a value, the mean
    effect leaves the least variance, so that the additivity in a report is at least the one that is steered here,
    except by chance.
    """
    context = weighted_mean((contributions - own) ** 2, weight, workers)  # (O, F, M)
    centre = weighted_mean(contributions, weight, workers)
    return context, weighted_mean((contributions - centre) ** 2, weight, workers).detach()


def context_share(
    contributions: Tensor, own: Tensor, weight: Tensor, workers: Workers = ALONE, *, is_relative: bool = False
) -> Tensor:
    """Return the mean share of context in the variance of the contributions, per member.

    A constant in the denominator makes contributions count less that are small beside the target. If ``is_relative``,
    the constant is smaller where all contributions are small: among hundreds of features, each one is.
    """
    context, spread = context_variance(contributions, own, weight, workers)
    n_features = spread.shape[1]
    relative = max(0.1, 8 / n_features) * spread.mean(dim=1, keepdim=True)
    floor = relative.clamp(max=_FLOOR) if is_relative else _FLOOR
    return (context / (spread + floor + 1e-12)).mean(dim=(0, 1))
