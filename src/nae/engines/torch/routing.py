"""Routings in training: from the logits of a gate to the weights of experts, with gradients.

Logits have shape (row, expert, feature, member). A routing has no weights of its own.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

__all__ = ["TORCH_ROUTINGS", "Routing"]


@dataclass(frozen=True)
class Routing(ABC):
    """How the ``n_active`` experts of a feature with the largest logits share its contribution."""

    n_active: int
    temperature: float
    """Temperature of the noise, for a routing that draws some."""

    is_softmax: ClassVar[bool] = False
    """Whether the weights are a softmax of the logits in training, too."""

    @abstractmethod
    def weights(self, logits: Tensor, *, is_training: bool) -> Tensor:
        """Return the weights of the experts, (row, expert, feature, member)."""


class Softmax(Routing):
    """Softmax over the active experts, Eq. (4)."""

    is_softmax = True

    def weights(self, logits: Tensor, *, is_training: bool) -> Tensor:
        return _mask(logits, self.n_active).softmax(dim=1)


class Equal(Routing):
    """Equal weights over the active experts, Eq. (25): the value ignores the logits, the gradient does not."""

    def weights(self, logits: Tensor, *, is_training: bool) -> Tensor:
        return (_mask(logits, self.n_active) - logits.detach()).softmax(dim=1)


class Gumbel(Routing):
    """Softmax, re-sampled with Gumbel noise in training, Eq. (23) (NAE-D)."""

    def weights(self, logits: Tensor, *, is_training: bool) -> Tensor:
        masked = _mask(logits, self.n_active)
        if not is_training:
            return masked.softmax(dim=1)
        noise = -torch.empty_like(logits).exponential_().log()
        return ((masked.log_softmax(dim=1) + noise) / self.temperature).softmax(dim=1)


def _mask(logits: Tensor, n_active: int) -> Tensor:
    if n_active == logits.shape[1]:
        return logits
    order = torch.argsort(logits.detach(), dim=1, descending=True, stable=True)
    idle = torch.ones_like(logits, dtype=torch.bool).scatter_(1, order[:, :n_active], False)
    return logits.masked_fill(idle, -torch.inf)


TORCH_ROUTINGS: dict[str, type[Routing]] = {"softmax": Softmax, "equal": Equal, "gumbel": Gumbel}
