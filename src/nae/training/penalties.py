"""Penalties: what is asked of the model besides a small loss."""

from torch import Tensor

from nae.network.network import Routed
from nae.training.workers import ALONE, Workers

__all__ = ["output_penalty", "variation_penalty", "weighted_mean"]


def weighted_mean(values: Tensor, weight: Tensor, workers: Workers = ALONE) -> Tensor:
    """Return the mean over rows, (B, ...) -> (...); weights have mean one, so empty batches do not divide by zero."""
    return workers.mean((values * weight.view(-1, *[1] * (values.dim() - 1))).mean(dim=0))


def variation_penalty(experts: Tensor, weight: Tensor, workers: Workers = ALONE) -> Tensor:
    """Return the spread of the experts per member, Eq. (7): variance over the experts (1 / K), mean over the rest.

    ``experts`` is (N, K, O, ..., M). On rows, N counts rows with mean weight one; on knots it counts slots weighted by
    the training rows that lie there, which costs far less and has no sampling noise.
    """
    spread = (experts**2).mean(dim=1) - experts.mean(dim=1) ** 2
    return weighted_mean(spread, weight, workers).flatten(0, -2).mean(dim=0)


def output_penalty(routed: Routed, weight: Tensor, workers: Workers = ALONE) -> Tensor:
    """Return the mean square of the contributions per member."""
    return weighted_mean(routed.contributions**2, weight, workers).mean(dim=(0, 1))
