"""Judges: the rows by which an epoch is better than another one, and what a network loses on them.

Rows for validation are given, or every member holds out a fold of the training rows, or there are none.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from nae._typing import IntArray
from nae.network import Evaluation, Network
from nae.training.data import RowSource, TrainingRows
from nae.training.dial import measured_additivity
from nae.training.losses import Loss
from nae.training.workers import Workers

__all__ = ["GivenRows", "HeldOutFolds", "Judge", "NoRows", "Verdict", "make_judge", "measured_rows"]

_EVALUATED = 2**22  # expert values evaluated at once: 16 MB, about what a cache holds
_MEASURED = 2048  # rows that additivity is measured on, at most


@dataclass(frozen=True, eq=False)
class Verdict:
    """The validation loss of every row, and how sure their mean is."""

    losses: Tensor  # (N,)
    weight: Tensor  # (N,)
    repeats: float
    """How often a row is among them: members that share a fold hold out the same rows."""
    workers: Workers

    @property
    def loss(self) -> float:
        """The mean over the rows of all workers."""
        return float(self._mean())

    @property
    def standard_error(self) -> float:
        """The standard error of the mean; a row that is there twice does not count twice."""
        share = self.weight / self.workers.total(self.weight.sum())
        spread = self.workers.total(((self.losses - self._mean()) ** 2 * share**2).sum())
        return math.sqrt(self.repeats * float(spread))

    def _mean(self) -> Tensor:
        return self.workers.total((self.losses * self.weight).sum()) / self.workers.total(self.weight.sum())


class Judge(ABC):
    """Who says how good a network is."""

    has_rows: ClassVar[bool] = True

    @abstractmethod
    def judge(self, network: Network, loss: Loss, workers: Workers) -> Verdict | None:
        """Return what the network loses; None where there are no rows to judge by."""

    @abstractmethod
    def additivity(self, network: Network) -> float | None:
        """Return the additivity on the rows; None where there are none."""


class NoRows(Judge):
    """There is nothing to tell which epoch is better."""

    has_rows = False

    def judge(self, network: Network, loss: Loss, workers: Workers) -> None:
        return None

    def additivity(self, network: Network) -> None:
        return None


class _Rows(Judge):
    """What judges with rows have in common."""

    rows: TrainingRows
    repeats: float

    @abstractmethod
    def evaluate(self, network: Network) -> Evaluation:
        """Return what the rows are scored by."""

    @abstractmethod
    def scores(self, network: Network) -> Iterator[tuple[Tensor, TrainingRows]]:
        """Yield scores (B, O, 1) with their rows, a few rows at a time."""

    @torch.no_grad()
    def judge(self, network: Network, loss: Loss, workers: Workers) -> Verdict:
        network.eval()
        losses, weights = [], []
        for score, rows in self.scores(network):
            losses.append(loss.per_row(rows.shifted(score), rows.target)[:, 0])
            weights.append(rows.weight)
        return Verdict(torch.cat(losses), torch.cat(weights), self.repeats, workers)

    @torch.no_grad()
    def additivity(self, network: Network) -> float | None:
        if len(self.rows) == 0:
            return None
        network.eval()
        measured = torch.as_tensor(measured_rows(len(self.rows), network), device=self.rows.weight.device)
        some = self.rows.take(measured)
        weight = some.weight / some.weight.mean()
        evaluation = self.evaluate(network)
        routed = evaluation.route(some.cells, weight)
        own = evaluation.own_effect(routed, routed.mean_routing, some.cells)
        return float(measured_additivity(routed.contributions, own, weight))


class GivenRows(_Rows):
    """Rows beside the training rows, scored by the mean of the members: that is what users get.

    They may hold what no training row does: new levels, or the first missing value. ``slot_weight`` says how much of
    the training rows lies at each padded slot.
    """

    repeats = 1.0

    def __init__(self, rows: TrainingRows, slot_weight: Tensor) -> None:
        self.rows, self.slot_weight = rows, slot_weight

    def evaluate(self, network: Network) -> Evaluation:
        return network.evaluate().filled(self.slot_weight)

    def scores(self, network: Network) -> Iterator[tuple[Tensor, TrainingRows]]:
        evaluation = self.evaluate(network)
        for few in _chunks(self.rows, _EVALUATED // (_values_per_row(network) * network.config.n_members)):
            yield evaluation.route(few.cells).score.mean(dim=-1, keepdim=True), few


class HeldOutFolds(_Rows):
    """Training rows, each scored by the members that hold it out: those whose own fold it is in."""

    def __init__(self, rows: TrainingRows, own_fold: Tensor) -> None:
        self.rows = rows
        self.repeats = len(own_fold) / len(own_fold.unique())
        self.by_member = [rows.take(torch.nonzero(rows.fold == fold).flatten()) for fold in own_fold.tolist()]

    def evaluate(self, network: Network) -> Evaluation:
        return network.evaluate()

    def scores(self, network: Network) -> Iterator[tuple[Tensor, TrainingRows]]:
        evaluation = self.evaluate(network)
        for member, rows in enumerate(self.by_member):
            for few in _chunks(rows, _EVALUATED // _values_per_row(network)):
                yield evaluation.score_member(member, few.cells), few


def make_judge(rows: RowSource, validation: TrainingRows | None, *, own_fold: Tensor, slot_weight: Tensor) -> Judge:
    """Return the judge: by ``validation`` if it is given, else by the folds that members hold out of ``rows``."""
    if validation is not None:
        return GivenRows(validation, slot_weight)
    held_out = rows.held_out(len(own_fold))
    return NoRows() if held_out is None or held_out.fold is None else HeldOutFolds(held_out, own_fold)


def measured_rows(n_rows: int, network: Network) -> IntArray:
    """Return which rows of so many additivity is measured on."""
    at_once = 4 * _EVALUATED // (_values_per_row(network) * network.config.n_members)
    return np.arange(0, n_rows, -(-n_rows // max(1, min(_MEASURED, at_once))))


def _values_per_row(network: Network) -> int:
    """Return how many expert values a row has, of one member."""
    n_values: int = network.config.n_experts * network.n_outputs * network.n_features
    return n_values


def _chunks(rows: TrainingRows, size: int) -> Iterator[TrainingRows]:
    """Yield the rows, so many at a time; of no rows, one empty part."""
    for part in torch.arange(len(rows), device=rows.weight.device).split(max(1, size)):
        yield rows.take(part)
