"""The dial in torch: its state lives in tensors, so that a step can be captured in a CUDA graph without waiting."""

import torch
from torch import Tensor

from nae.engines.torch.penalties import weighted_mean
from nae.training.dial import LOG_MOST, SHARE, SPEED, DialState
from nae.training.workers import ALONE, Workers

__all__ = ["Dial", "context_share", "measured_additivity"]

_FLOOR = 1e-2  # of a variance, where the target's is one


class Dial:
    """A penalty on what additivity is defined by, whose weight is steered towards the target."""

    def __init__(self, state: DialState, *, device: torch.device, dtype: torch.dtype) -> None:
        self.state = state
        self.log_gamma = torch.full((), state.log_gamma, device=device, dtype=dtype)
        self.running = torch.full((), state.running, device=device, dtype=dtype)

    def penalty(self, contributions: Tensor, own: Tensor, weight: Tensor, workers: Workers = ALONE) -> Tensor:
        """Return the penalty per member, and move the controller one step."""
        with torch.no_grad():
            self.running.lerp_(measured_additivity(contributions, own, weight, workers), SHARE)
            step = SPEED * (self.state.target - self.running)
            self.log_gamma.add_(step).clamp_(self.state.log_least, LOG_MOST)
            gamma = self.log_gamma.exp()
        return gamma * context_share(contributions, own, weight, workers, is_relative=True)

    def read(self) -> DialState:
        """Return the state as it is now."""
        self.state.log_gamma, self.state.running = float(self.log_gamma), float(self.running)
        return self.state

    def write(self) -> None:
        """Go on from the state, after it was loaded."""
        self.log_gamma.fill_(self.state.log_gamma)
        self.running.fill_(self.state.running)


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
