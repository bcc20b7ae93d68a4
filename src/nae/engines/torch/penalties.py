"""The formulas of penalties: properties of a model that are asked for besides a small loss."""

from torch import Tensor

from nae.engines.torch.routed import Routed
from nae.training.workers import ALONE, Workers

__all__ = ["output_penalty", "roughness_penalty", "variation_penalty", "weighted_mean"]


def weighted_mean(values: Tensor, weight: Tensor, workers: Workers = ALONE) -> Tensor:
    """Return the weighted mean over rows, (B, ...) -> (...).

    Weights have mean one over all training rows, so the sum is divided by the number of rows: those of a batch may add
    up to zero.
    """
    found: Tensor = workers.mean((values * weight.view(-1, *[1] * (values.dim() - 1))).mean(dim=0))
    return found


def variation_penalty(experts: Tensor, weight: Tensor, workers: Workers = ALONE) -> Tensor:
    """Return the spread of the experts per member, Eq. (7): variance over the experts (1 / K), mean over the rest.

    ``experts`` is (N, K, O, ..., M). N counts rows or slots, and ``weight`` has mean one. The weight of a slot is how
    much of the training rows lies there.
    """
    spread = (experts**2).mean(dim=1) - experts.mean(dim=1) ** 2
    return weighted_mean(spread, weight, workers).flatten(0, -2).mean(dim=0)


def roughness_penalty(curves: Tensor, left: Tensor, weight: Tensor) -> Tensor:
    """Return the weighted squares of the residuals per member, a mean over the C curves (:mod:`nae.network.roughness`).

    ``curves`` is (F, S, C, M); ``left`` and ``weight`` are (F, S).
    """
    left, weight = (each[:, 1:-1, None, None] for each in (left, weight))
    residual = curves[:, 1:-1] - left * curves[:, :-2] - (1 - left) * curves[:, 2:]
    found: Tensor = (weight * residual**2).sum(dim=(0, 1)).mean(dim=0)
    return found


def output_penalty(routed: Routed, weight: Tensor, workers: Workers = ALONE) -> Tensor:
    """Return the mean square of the contributions per member."""
    return weighted_mean(routed.contributions**2, weight, workers).mean(dim=(0, 1))
