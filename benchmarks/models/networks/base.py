"""The interface of a network: a module from normalised features to scores, possibly as a sum of terms."""

from abc import ABC, abstractmethod
from itertools import combinations

from torch import Tensor, nn

__all__ = ["AdditiveNetwork", "Key", "Network", "keys_of"]

Key = tuple[int, ...]
"""The positions of the features that a term depends on."""


class Network(nn.Module, ABC):
    """A module from features (row, feature) to scores (row, output)."""

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (row, output)."""

    def settle(self, progress: float) -> bool:
        """Receive the elapsed share of training. Return whether the network has reached its final form."""
        return progress >= 0


class AdditiveNetwork(Network):
    """A network whose scores are an intercept plus a sum of terms of one or two features each."""

    keys: tuple[Key, ...]
    intercept: nn.Parameter

    @abstractmethod
    def terms(self, x: Tensor) -> Tensor:
        """Return the terms (row, term, output), in the order of ``keys``."""

    def forward(self, x: Tensor) -> Tensor:
        return self.terms(x).sum(dim=1) + self.intercept


def keys_of(n_features: int, *, has_pairs: bool) -> tuple[Key, ...]:
    """Return the keys of all features, followed by those of all pairs."""
    single: list[Key] = [(i,) for i in range(n_features)]
    return tuple(single + (list(combinations(range(n_features), 2)) if has_pairs else []))
