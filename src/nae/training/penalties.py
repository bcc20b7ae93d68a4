"""Penalties: what is asked of the model besides a small loss."""

from torch import Tensor

from nae.network.network import Routed

__all__ = ["output_penalty", "variation_penalty", "weighted_mean"]


def weighted_mean(values: Tensor, weight: Tensor) -> Tensor:
    """Return the mean over rows, (B, ...) -> (...); weights have mean one, so empty batches do not divide by zero."""
    return (values * weight.view(-1, *[1] * (values.dim() - 1))).mean(dim=0)


def variation_penalty(routed: Routed, weight: Tensor) -> Tensor:
    """Return the spread of the experts per member, Eq. (7): variance over the experts (1 / K), mean over the rest."""
    spread = routed.experts.var(dim=1, correction=0)  # (B, O, F, M)
    return weighted_mean(spread, weight).mean(dim=(0, 1))


def output_penalty(routed: Routed, weight: Tensor) -> Tensor:
    """Return the mean square of the contributions per member."""
    return weighted_mean(routed.contributions**2, weight).mean(dim=(0, 1))
