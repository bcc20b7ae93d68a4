"""Families: how a row pulls at its score, by the loss of the fit."""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array

__all__ = ["Family", "family_of"]

_MOST = 30.0  # of a score under a log or logit link
_LEAST = 1e-6  # of a row's weight, beside the largest
_POWERS = {"poisson": 1.0, "gamma": 2.0}


@dataclass(frozen=True)
class Family:
    """The reweighted squares that stand for a loss: a weight and a residual for every row."""

    link: str
    power: float = 0.0  # the variance of a target with a log link is its mean to this power, times a constant

    @property
    def is_linear(self) -> bool:
        """Whether weights and goals do not depend on the score."""
        return self.link == "identity"

    @property
    def precision(self) -> float:
        """How little the effect of a node may be: one over the variance of a weak prior, where rows say nothing.

        Odds or means that differ by a factor of 12 are one standard deviation. So classes that a value separates have
        finite effects.
        """
        return 0.0 if self.is_linear else 0.16

    @property
    def has_known_noise(self) -> bool:
        """Whether the variance of the target follows from its mean."""
        return self.link == "logit"

    def pull(self, truth: Array, score: Array) -> tuple[Array, Array]:
        """Return the weight of every row, and by how much its score should move."""
        if self.link == "identity":
            return np.ones_like(score), truth - score
        at = np.clip(score, -_MOST, _MOST)
        if self.link == "logit":
            chance = 1 / (1 + np.exp(-at))
            weight = np.maximum(chance * (1 - chance), _LEAST)
            return weight, (truth - chance) / weight
        mean = np.exp(at)
        return mean ** (2 - self.power), truth / mean - 1


def family_of(loss: str | None, power: float | None) -> Family | None:
    """Return the family of a loss; None for one that has none."""
    if loss == "squared":
        return Family("identity")
    if loss in ("logistic", "cross-entropy"):  # of one class against the others
        return Family("logit")
    if loss in _POWERS:
        return Family("log", _POWERS[loss])
    return Family("log", power) if loss == "tweedie" and power is not None else None
