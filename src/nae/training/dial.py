"""The dial: additivity is asked for, and a controller finds the strength of the penalty that gives it."""

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
    """Penalises what additivity is defined by, and steers the weight of the penalty towards the target.

    The share of a contribution's variance that context causes is penalised per feature; the logarithm of the
    penalty's weight moves each step by the difference between target and running additivity, and never below
    ``least``: a target that the data exceed anyway costs nothing. All state lives in tensors, so a step can be captured
    in a graph and needs no synchronisation.
    """

    def __init__(
        self,
        target: float,
        *,
        start: float = 0.1,
        least: float = 0.0,
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
    """Return the additivity of the members' mean: that is what users get, and more additive than each of them."""
    together, own_together = contributions.mean(dim=-1, keepdim=True), own.mean(dim=-1, keepdim=True)
    context, spread = context_variance(together, own_together, weight, workers)
    score_variance = spread.sum(dim=1, keepdim=True)
    return 1 - (context / (spread + 1e-6 * score_variance + 1e-12)).clamp(max=1.0).mean()


def context_variance(
    contributions: Tensor, own: Tensor, weight: Tensor, workers: Workers = ALONE
) -> tuple[Tensor, Tensor]:
    """Return per output, feature and member the variance that context causes, and the whole variance (detached).

    ``own`` is each contribution with its feature's mean routing over the batch: a step has no time for the mean effects
    of :mod:`nae.explanation.own`, which additivity is reported by. Of all functions of a value, the mean effect leaves
    the least, so what is reported is at least what is steered here, but for chance.
    """
    context = weighted_mean((contributions - own) ** 2, weight, workers)  # (O, F, M)
    centre = weighted_mean(contributions, weight, workers)
    return context, weighted_mean((contributions - centre) ** 2, weight, workers).detach()


def context_share(
    contributions: Tensor, own: Tensor, weight: Tensor, workers: Workers = ALONE, *, is_relative: bool = False
) -> Tensor:
    """Return the mean share of context in the variance of the contributions, per member.

    A constant keeps contributions from being blown up that are small beside the target; ``is_relative`` means beside
    the others as well: among hundreds of features, all are small beside the target.
    """
    context, spread = context_variance(contributions, own, weight, workers)
    n_features = spread.shape[1]
    relative = max(0.1, 8 / n_features) * spread.mean(dim=1, keepdim=True)
    floor = relative.clamp(max=_FLOOR) if is_relative else _FLOOR
    return (context / (spread + floor + 1e-12)).mean(dim=(0, 1))
