"""Verdicts: what a network loses on the rows by which an epoch is better than another one."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nae._typing import AnyArray, Array, IntArray
from nae.network import NetworkConfig
from nae.training.workers import Workers

__all__ = ["EVALUATED", "Sized", "Verdict", "measured_rows", "values_per_row"]

EVALUATED = 2**22  # expert values evaluated at once: 16 MB, about what a cache holds
_MEASURED = 2048  # rows that additivity is measured on, at most
_OVERFLOWING = np.errstate(over="ignore", invalid="ignore")  # a loss may be infinite; it is no better than another


@dataclass(frozen=True, eq=False)
class Verdict:
    """The validation loss of every row, and how sure their mean is."""

    losses: AnyArray  # (N,)
    weight: AnyArray  # (N,)
    repeats: float
    """How often a row is among them: members that share a fold hold out the same rows."""
    workers: Workers

    @property
    @_OVERFLOWING
    def loss(self) -> float:
        """The mean over the rows of all workers."""
        return float(self._mean())

    @property
    @_OVERFLOWING
    def standard_error(self) -> float:
        """The standard error of the mean; a row that is there twice does not count twice."""
        share = self._weight / self.workers.total(self._weight.sum())
        spread = self.workers.total(((self.losses - self._mean()) ** 2 * share**2).sum())
        return math.sqrt(self.repeats * float(spread))

    def _mean(self) -> Array:
        losses = np.asarray(self.losses, dtype=np.float64)
        total = self.workers.total((losses * self._weight).sum()) / self.workers.total(self._weight.sum())
        return np.asarray(total)

    @property
    def _weight(self) -> Array:
        return np.asarray(self.weight, dtype=np.float64)


class Sized(Protocol):
    """What has the sizes of a network."""

    @property
    def config(self) -> NetworkConfig: ...

    @property
    def n_features(self) -> int: ...

    @property
    def n_outputs(self) -> int: ...


def measured_rows(n_rows: int, network: Sized) -> IntArray:
    """Return which rows of so many additivity is measured on."""
    at_once = 4 * EVALUATED // (values_per_row(network) * network.config.n_members)
    return np.arange(0, n_rows, -(-n_rows // max(1, min(_MEASURED, at_once))))


def values_per_row(network: Sized) -> int:
    """Return how many expert values a row has, of one member."""
    return network.config.n_experts * network.n_outputs * network.n_features
