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

_SHORT = 1e-3  # a distance of scores below which a mean slope is that in the middle; it differs by less than 1e-7 of it
_PART = 4.0  # the longest part of a way between scores on which 16 points compute a mean slope to the last digits
_MOST_PARTS = 4096
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2


class Link(ABC):
    """A monotone map between the mean of the target and the score."""

    name: ClassVar[str]

    @abstractmethod
    def inverse(self, score: Array) -> Array:
        """Return the prediction of a score."""

    @abstractmethod
    def link(self, mean: Array) -> Array:
        """Return the score of a prediction."""

    @abstractmethod
    def mean_slope(self, start: Array, end: Array) -> Array:
        """Return the mean derivative of every prediction by every score on the straight way between scores.

        Scores are (row, output); the result is (row, prediction, score). Multiplied by the difference of the scores,
        it gives the difference of the predictions.
        """


@dataclass(frozen=True)
class Identity(Link):
    """The score is the prediction."""

    name: ClassVar[str] = "identity"

    def inverse(self, score: Array) -> Array:
        return score

    def link(self, mean: Array) -> Array:
        return mean

    def mean_slope(self, start: Array, end: Array) -> Array:
        return _diagonal(np.ones(start.shape))


@dataclass(frozen=True)
class Log(Link):
    """The score is the logarithm of a positive prediction, so contributions multiply."""

    name: ClassVar[str] = "log"

    def inverse(self, score: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.exp(score)

    def link(self, mean: Array) -> Array:
        return np.log(mean)

    def mean_slope(self, start: Array, end: Array) -> Array:
        return _diagonal(_chord(self, self.inverse((start + end) / 2), start, end))


@dataclass(frozen=True)
class Logit(Link):
    """The score is the log-odds of the second of two classes."""

    name: ClassVar[str] = "logit"

    def inverse(self, score: Array) -> Array:
        small = np.exp(-np.abs(score))  # never overflows
        return np.where(score >= 0, 1 / (1 + small), small / (1 + small))

    def link(self, mean: Array) -> Array:
        return np.log(mean) - np.log1p(-mean)

    def mean_slope(self, start: Array, end: Array) -> Array:
        middle = self.inverse((start + end) / 2)
        return _diagonal(_chord(self, middle * (1 - middle), start, end))


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

    def mean_slope(self, start: Array, end: Array) -> Array:
        way, unit = end - start, np.eye(start.shape[1])
        n_parts = int(np.clip(np.ceil(np.ptp(way, axis=1).max(initial=0.0) / _PART), 1, _MOST_PARTS))
        total = np.zeros((*start.shape, start.shape[1]))
        for part in range(n_parts):
            for node, weight in zip(_NODES, _WEIGHTS, strict=True):
                mean = self.inverse(start + way * ((part + node) / n_parts))
                total += (weight / n_parts) * mean[:, :, None] * (unit - mean[:, None])
        return total


LINKS: dict[str, Link] = {link.name: link for link in (Identity(), Log(), Logit(), Softmax())}


def link_named(name: str) -> Link:
    """Return the link called ``name``."""
    if name not in LINKS:
        hint = did_you_mean(name, LINKS, is_listed=True)
        raise ConfigError(f"link must be one of {sorted(LINKS)}; got {name!r}.{hint}")
    return LINKS[name]


def _chord(link: Link, middle: Array, start: Array, end: Array) -> Array:
    """Return the slope of the line between two scores; if they are near, ``middle``, which is that between them."""
    way = end - start
    is_short = np.abs(way) < _SHORT
    with np.errstate(invalid="ignore"):  # both predictions may be infinite
        rise = link.inverse(end) - link.inverse(start)
    return np.where(is_short, middle, rise / np.where(is_short, 1.0, way))


def _diagonal(slopes: Array) -> Array:
    """Return slopes (row, output) as (row, output, output): every prediction has a score of its own."""
    return np.asarray(slopes[:, :, None] * np.eye(slopes.shape[1]))
