"""Links: from the score (a sum of contributions) to the prediction, and back.

A score has shape (row, output), and ``inverse`` keeps the shape. The single score of a binary classifier becomes the
probability of the second class.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nae._typing import Array
from nae.errors import ConfigError, did_you_mean

__all__ = ["LINKS", "Identity", "Link", "Log", "Logit", "Softmax", "link_named"]


class Link(ABC):
    """A monotone map between the mean of the target and the score."""

    name: ClassVar[str]

    @abstractmethod
    def inverse(self, score: Array) -> Array:
        """Return the prediction of a score."""

    @abstractmethod
    def link(self, mean: Array) -> Array:
        """Return the score of a prediction."""


@dataclass(frozen=True)
class Identity(Link):
    """The score is the prediction."""

    name: ClassVar[str] = "identity"

    def inverse(self, score: Array) -> Array:
        return score

    def link(self, mean: Array) -> Array:
        return mean


@dataclass(frozen=True)
class Log(Link):
    """The score is the logarithm of a positive prediction, so contributions multiply."""

    name: ClassVar[str] = "log"

    def inverse(self, score: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.exp(score)

    def link(self, mean: Array) -> Array:
        return np.log(mean)


@dataclass(frozen=True)
class Logit(Link):
    """The score is the log-odds of the second of two classes."""

    name: ClassVar[str] = "logit"

    def inverse(self, score: Array) -> Array:
        small = np.exp(-np.abs(score))  # never overflows
        return np.where(score >= 0, 1 / (1 + small), small / (1 + small))

    def link(self, mean: Array) -> Array:
        return np.log(mean) - np.log1p(-mean)


@dataclass(frozen=True)
class Softmax(Link):
    """The scores of the classes, up to a constant, are the logarithms of their probabilities."""

    name: ClassVar[str] = "softmax"

    def inverse(self, score: Array) -> Array:
        raised = np.exp(score - score.max(axis=-1, keepdims=True))
        return np.asarray(raised / raised.sum(axis=-1, keepdims=True))

    def link(self, mean: Array) -> Array:
        logs = np.log(mean)
        return np.asarray(logs - logs.mean(axis=-1, keepdims=True))


LINKS: dict[str, Link] = {link.name: link for link in (Identity(), Log(), Logit(), Softmax())}


def link_named(name: str) -> Link:
    """Return the link called ``name``."""
    if name not in LINKS:
        hint = did_you_mean(name, LINKS, is_listed=True)
        raise ConfigError(f"link must be one of {sorted(LINKS)}; got {name!r}.{hint}")
    return LINKS[name]
