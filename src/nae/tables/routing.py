"""Routings: from logits to the weights of experts, and the bounds that follow.

The weights of a feature's experts sum to one. Logits and weights have shape (row, expert, feature, member): numpy and
torch reduce over the expert axis much faster if it is not the last one.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nae._typing import Array, BoolArray

__all__ = ["ROUTINGS", "EqualRouting", "Routing", "SoftmaxRouting", "active_experts"]


@dataclass(frozen=True)
class Routing(ABC):
    """How the experts of a feature share its contribution: the ``n_active`` with the largest logits are active."""

    n_active: int

    name: ClassVar[str]

    @property
    @abstractmethod
    def n_extreme(self) -> int:
        """How many of the smallest experts the lower bound is the mean of, and of the largest the upper bound."""

    @abstractmethod
    def weights(self, logits: Array) -> Array:
        """Return the weights of the experts, (row, expert, feature, member)."""

    def bounds(self, experts: Array, axis: int) -> tuple[Array, Array]:
        """Return the least and the largest contribution that any logits can give; the expert axis is removed."""
        if self.n_extreme == 1:
            return experts.min(axis=axis), experts.max(axis=axis)
        ordered = np.moveaxis(np.sort(experts, axis=axis), axis, 0)
        return ordered[: self.n_extreme].mean(axis=0), ordered[-self.n_extreme :].mean(axis=0)


@dataclass(frozen=True)
class SoftmaxRouting(Routing):
    """Softmax over the active experts: Eq. (4) of the paper."""

    name: ClassVar[str] = "softmax"

    @property
    def n_extreme(self) -> int:
        return 1

    def weights(self, logits: Array) -> Array:
        if self.n_active < logits.shape[1]:
            logits = np.where(active_experts(logits, self.n_active), logits, -np.inf)
        raised: Array = np.exp(logits - logits.max(axis=1, keepdims=True))
        raised /= raised.sum(axis=1, keepdims=True)
        return raised


@dataclass(frozen=True)
class EqualRouting(Routing):
    """Equal weights for the active experts (NAE-E): Eq. (25) of the paper."""

    name: ClassVar[str] = "equal"

    @property
    def n_extreme(self) -> int:
        return self.n_active

    def weights(self, logits: Array) -> Array:
        active = active_experts(logits, self.n_active)
        return active.astype(logits.dtype) / logits.dtype.type(self.n_active)


def active_experts(logits: Array, n_active: int) -> BoolArray:
    """Return which experts are among the ``n_active`` largest logits; of equal logits the first wins."""
    order = np.argsort(-logits, axis=1, kind="stable")
    active = np.zeros(logits.shape, dtype=bool)
    np.put_along_axis(active, order[:, :n_active], True, axis=1)
    return active


ROUTINGS: dict[str, type[Routing]] = {routing.name: routing for routing in (SoftmaxRouting, EqualRouting)}
