"""Routings in training: from the logits of a gate to the weights of experts, with gradients.

Logits have shape (row, expert, feature, member). A routing has no weights of its own.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from nae.engines.torch.noise import gumbel_noise
from nae.engines.torch.softmax import log_softmax, softmax

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
    def weights(self, logits: Tensor, *, counter: Tensor | None = None) -> Tensor:
        """Return the weights of the experts, (row, expert, feature, member).

        In training, a routing with noise draws it from ``counter`` and moves the counter on.
        """


class Softmax(Routing):
    """Softmax over the active experts, Eq. (4)."""

    is_softmax = True

    def weights(self, logits: Tensor, *, counter: Tensor | None = None) -> Tensor:
        return softmax(_mask(logits, self.n_active))


class Equal(Routing):
    """Equal weights over the active experts, Eq. (25): the value ignores the logits, the gradient does not."""

    def weights(self, logits: Tensor, *, counter: Tensor | None = None) -> Tensor:
        return softmax(_mask(logits, self.n_active) - logits.detach())


class Gumbel(Routing):
    """Softmax, re-sampled with Gumbel noise in training, Eq. (23) (NAE-D)."""

    def weights(self, logits: Tensor, *, counter: Tensor | None = None) -> Tensor:
        masked = _mask(logits, self.n_active)
        if counter is None:
            return softmax(masked)
        noise = gumbel_noise(logits.shape, counter, logits.dtype)
        return softmax((log_softmax(masked) + noise) / self.temperature)


def _mask(logits: Tensor, n_active: int) -> Tensor:
    if n_active == logits.shape[1]:
        return logits
    order = torch.argsort(logits.detach(), dim=1, descending=True, stable=True)
    idle = torch.ones_like(logits, dtype=torch.bool).scatter_(1, order[:, :n_active], False)
    return logits.masked_fill(idle, -torch.inf)


TORCH_ROUTINGS: dict[str, type[Routing]] = {"softmax": Softmax, "equal": Equal, "gumbel": Gumbel}
