"""Routings in training: from the logits of a gate to the weights of experts, with gradients.

Logits have shape (row, expert, feature, member). A routing has no weights of its own. Each knows the routing of
:mod:`nae.tables.routing` that the finished model uses in its place.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from nae.network.noise import gumbel_noise
from nae.network.softmax import log_softmax, softmax
from nae.tables.routing import EqualRouting, SoftmaxRouting
from nae.tables.routing import Routing as TableRouting

__all__ = ["ROUTINGS", "Routing"]


@dataclass(frozen=True)
class Routing(ABC):
    """How the ``n_active`` experts of a feature with the largest logits share its contribution."""

    n_active: int
    temperature: float
    """Temperature of the noise, for a routing that draws some."""

    name: ClassVar[str]
    in_tables: ClassVar[type[TableRouting]]
    """The routing of the finished model."""
    is_softmax: ClassVar[bool] = False
    """Whether the weights are a softmax of the logits in training, too."""
    is_noisy: ClassVar[bool] = False
    """Whether random numbers are drawn in training."""

    @abstractmethod
    def weights(self, logits: Tensor, *, counter: Tensor | None = None) -> Tensor:
        """Return the weights of the experts, (row, expert, feature, member).

        In training, a routing with noise draws it from ``counter`` and moves the counter on.
        """


class Softmax(Routing):
    """Softmax over the active experts, Eq. (4)."""

    name = "softmax"
    in_tables = SoftmaxRouting
    is_softmax = True

    def weights(self, logits: Tensor, *, counter: Tensor | None = None) -> Tensor:
        return softmax(_mask(logits, self.n_active))


class Equal(Routing):
    """Equal weights over the active experts, Eq. (25): the value ignores the logits, the gradient does not."""

    name = "equal"
    in_tables = EqualRouting

    def weights(self, logits: Tensor, *, counter: Tensor | None = None) -> Tensor:
        return softmax(_mask(logits, self.n_active) - logits.detach())


class Gumbel(Routing):
    """Softmax, re-sampled with Gumbel noise in training, Eq. (23) (NAE-D)."""

    name = "gumbel"
    in_tables = SoftmaxRouting
    is_noisy = True

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


ROUTINGS: dict[str, type[Routing]] = {routing.name: routing for routing in (Softmax, Equal, Gumbel)}
