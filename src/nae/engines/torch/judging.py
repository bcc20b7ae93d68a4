"""Judges in torch: the rows that a network is judged by, and what it loses on them.

Rows for validation are given, or every member holds out a fold of the training rows, or there are none.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor

from nae.engines.torch.dial import measured_additivity
from nae.engines.torch.encoders import Evaluation
from nae.engines.torch.losses import PerRow
from nae.engines.torch.network import TorchNetwork
from nae.engines.torch.rows import TensorRows
from nae.training.data import RowSource, TrainingRows
from nae.training.judging import EVALUATED, Verdict, measured_rows, values_per_row
from nae.training.workers import Workers

__all__ = ["GivenRows", "HeldOutFolds", "Judge", "NoRows", "make_judge"]


class Judge(ABC):
    """Who says how good a network is."""

    has_rows: ClassVar[bool] = True

    @abstractmethod
    def judge(self, network: TorchNetwork, per_row: PerRow, workers: Workers) -> Verdict | None:
        """Return what the network loses; None where there are no rows to judge by."""

    @abstractmethod
    def additivity(self, network: TorchNetwork) -> float | None:
        """Return the additivity on the rows; None where there are none."""


class NoRows(Judge):
    """There is nothing to tell which epoch is better."""

    has_rows = False

    def judge(self, network: TorchNetwork, per_row: PerRow, workers: Workers) -> None:
        return None

    def additivity(self, network: TorchNetwork) -> None:
        return None


class _Rows(Judge):
    """What judges with rows have in common."""

    rows: TensorRows
    repeats: float

    @abstractmethod
    def evaluate(self, network: TorchNetwork) -> Evaluation:
        """Return what the rows are scored by."""

    @abstractmethod
    def scores(self, network: TorchNetwork) -> Iterator[tuple[Tensor, TensorRows]]:
        """Yield scores (B, O, 1) with their rows, a few rows at a time."""

    @torch.no_grad()
    def judge(self, network: TorchNetwork, per_row: PerRow, workers: Workers) -> Verdict:
        network.eval()
        losses, weights = [], []
        for score, rows in self.scores(network):
            losses.append(per_row(rows.shifted(score), rows.target)[:, 0])
            weights.append(rows.weight)
        return Verdict(torch.cat(losses).cpu().numpy(), torch.cat(weights).cpu().numpy(), self.repeats, workers)

    @torch.no_grad()
    def additivity(self, network: TorchNetwork) -> float | None:
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

    def __init__(self, rows: TensorRows, slot_weight: Tensor) -> None:
        self.rows, self.slot_weight = rows, slot_weight

    def evaluate(self, network: TorchNetwork) -> Evaluation:
        return network.evaluate().filled(self.slot_weight)

    def scores(self, network: TorchNetwork) -> Iterator[tuple[Tensor, TensorRows]]:
        evaluation = self.evaluate(network)
        for few in _chunks(self.rows, EVALUATED // (values_per_row(network) * network.config.n_members)):
            yield evaluation.route(few.cells).score.mean(dim=-1, keepdim=True), few


class HeldOutFolds(_Rows):
    """Training rows, each scored by the members that hold it out: those whose own fold it is in."""

    def __init__(self, rows: TensorRows, own_fold: Tensor) -> None:
        self.rows = rows
        self.repeats = len(own_fold) / len(own_fold.unique())
        self.by_member = [rows.take(torch.nonzero(rows.fold == fold).flatten()) for fold in own_fold.tolist()]

    def evaluate(self, network: TorchNetwork) -> Evaluation:
        return network.evaluate()

    def scores(self, network: TorchNetwork) -> Iterator[tuple[Tensor, TensorRows]]:
        evaluation = self.evaluate(network)
        for member, rows in enumerate(self.by_member):
            for few in _chunks(rows, EVALUATED // values_per_row(network)):
                yield evaluation.score_member(member, few.cells), few


def make_judge(rows: RowSource, validation: TrainingRows | None, *, own_fold: Tensor, slot_weight: Tensor) -> Judge:
    """Return the judge: by ``validation`` if it is given, else by the folds that members hold out of ``rows``."""
    device = slot_weight.device
    if validation is not None:
        return GivenRows(TensorRows.of(validation, device), slot_weight)
    held_out = rows.held_out(len(own_fold))
    if held_out is None or held_out.fold is None:
        return NoRows()
    return HeldOutFolds(TensorRows.of(held_out, device), own_fold)


def _chunks(rows: TensorRows, size: int) -> Iterator[TensorRows]:
    """Yield the rows, so many at a time; of no rows, one empty part."""
    for part in torch.arange(len(rows), device=rows.weight.device).split(max(1, size)):
        yield rows.take(part)
