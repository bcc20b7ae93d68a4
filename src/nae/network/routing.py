"""Routing in training: the same weights as in :mod:`nae.tables.routing`, with gradients.

Logits have shape (row, expert, feature, member). Strategies have no weights; ``ROUTINGS`` maps names to functions.
"""

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["ROUTINGS", "TABLE_ROUTING"]

Routing = Callable[[Tensor, int, bool, float], Tensor]


def _softmax(logits: Tensor, n_active: int, is_training: bool, temperature: float) -> Tensor:
    """Softmax over the active experts, Eq. (4)."""
    return _mask(logits, n_active).softmax(dim=1)


def _equal(logits: Tensor, n_active: int, is_training: bool, temperature: float) -> Tensor:
    """Equal weights over the active experts, Eq. (25): the value ignores the logits, the gradient does not."""
    return (_mask(logits, n_active) - logits.detach()).softmax(dim=1)


def _gumbel(logits: Tensor, n_active: int, is_training: bool, temperature: float) -> Tensor:
    """Softmax, re-sampled with Gumbel noise in training, Eq. (23) (NAE-D)."""
    masked = _mask(logits, n_active)
    if not is_training:
        return masked.softmax(dim=1)
    noise = -torch.empty_like(logits).exponential_().log()
    return ((masked.log_softmax(dim=1) + noise) / temperature).softmax(dim=1)


def _mask(logits: Tensor, n_active: int) -> Tensor:
    if n_active == logits.shape[1]:
        return logits
    order = torch.argsort(logits.detach(), dim=1, descending=True, stable=True)
    idle = torch.ones_like(logits, dtype=torch.bool).scatter_(1, order[:, :n_active], False)
    return logits.masked_fill(idle, -torch.inf)


ROUTINGS: dict[str, Routing] = {"softmax": _softmax, "equal": _equal, "gumbel": _gumbel}
TABLE_ROUTING = {"softmax": "softmax", "equal": "equal", "gumbel": "softmax"}
