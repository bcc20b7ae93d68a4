"""Routing: from gate logits to weights that sum to one over a feature's experts, and the bounds that follow.

Logits and weights have shape (row, expert, feature, member): the expert axis is not the last one, because numpy and
torch reduce over it far faster that way.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nae._typing import Array, BoolArray

__all__ = ["ROUTINGS", "EqualRouting", "Routing", "SoftmaxRouting", "active_experts"]


@dataclass(frozen=True)
class Routing(ABC):
    """How the ``n_active`` experts of a feature with the largest logits share its contribution."""

    n_active: int

    name: ClassVar[str]

    @abstractmethod
    def weights(self, logits: Array) -> Array:
        """Return the weights of the experts, (row, expert, feature, member)."""

    @abstractmethod
    def bounds(self, experts: Array, axis: int) -> tuple[Array, Array]:
        """Return the least and the largest contribution any logits can give; the expert axis is removed."""


@dataclass(frozen=True)
class SoftmaxRouting(Routing):
    """Softmax over the active experts: Eq. (4) of the paper."""

    name: ClassVar[str] = "softmax"

    def weights(self, logits: Array) -> Array:
        if self.n_active < logits.shape[1]:
            logits = np.where(active_experts(logits, self.n_active), logits, -np.inf)
        raised: Array = np.exp(logits - logits.max(axis=1, keepdims=True))
        raised /= raised.sum(axis=1, keepdims=True)
        return raised

    def bounds(self, experts: Array, axis: int) -> tuple[Array, Array]:
        return experts.min(axis=axis), experts.max(axis=axis)


@dataclass(frozen=True)
class EqualRouting(Routing):
    """Equal weights for the active experts (NAE-E): Eq. (25) of the paper."""

    name: ClassVar[str] = "equal"

    def weights(self, logits: Array) -> Array:
        active = active_experts(logits, self.n_active)
        return active.astype(logits.dtype) / logits.dtype.type(self.n_active)

    def bounds(self, experts: Array, axis: int) -> tuple[Array, Array]:
        # The extreme means of n_active experts are those of the smallest and of the largest ones.
        ordered = np.moveaxis(np.sort(experts, axis=axis), axis, 0)
        return ordered[: self.n_active].mean(axis=0), ordered[-self.n_active :].mean(axis=0)


def active_experts(logits: Array, n_active: int) -> BoolArray:
    """Return which experts are among the ``n_active`` largest logits; of equal ones the first wins."""
    order = np.argsort(-logits, axis=1, kind="stable")
    active = np.zeros(logits.shape, dtype=bool)
    np.put_along_axis(active, order[:, :n_active], True, axis=1)
    return active


ROUTINGS: dict[str, type[Routing]] = {routing.name: routing for routing in (SoftmaxRouting, EqualRouting)}
