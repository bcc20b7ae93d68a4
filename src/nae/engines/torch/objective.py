"""What a step lowers: the loss, and the penalties that were asked for.

A penalty is one line of :data:`PENALTIES`: a function that returns it, or None if the configuration does not ask for
it. Members' objectives are added up and never mixed, so that each is trained as if it were alone.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from nae.engines.torch.dial import Dial, context_share
from nae.engines.torch.encoders import Evaluation
from nae.engines.torch.losses import loss_per_row
from nae.engines.torch.network import TorchNetwork
from nae.engines.torch.penalties import output_penalty, roughness_penalty, variation_penalty, weighted_mean
from nae.engines.torch.routed import Routed
from nae.engines.torch.rows import TensorRows
from nae.network import Roughness
from nae.training.config import TrainingConfig
from nae.training.dial import make_dial
from nae.training.losses import Loss
from nae.training.workers import ALONE, Workers

__all__ = ["PENALTIES", "Objective", "Penalty", "Request", "Step"]


@dataclass(frozen=True, eq=False)
class Step:
    """A batch, and what the network makes of it."""

    batch: TensorRows
    evaluation: Evaluation
    routed: Routed
    workers: Workers

    def own_effect(self) -> Tensor:
        """Return each contribution with its feature's mean routing, over the rows of all workers."""
        mean_routing = self.workers.mean(self.routed.mean_routing)
        return self.evaluation.own_effect(self.routed, mean_routing, self.batch.cells)


@dataclass(frozen=True, eq=False)
class Request:
    """What a training asks for, from which penalties are made."""

    config: TrainingConfig
    has_experts: bool
    """Whether a feature has several experts."""
    slot_weight: Tensor  # (F * S,), how much of the training rows lies at each padded slot, with mean one
    dial: Dial | None
    roughness: Roughness | None
    """What a penalty on rough curves weighs."""


Penalty = Callable[[Step], Tensor]
"""From a step to a number per member, (M,)."""


def _variation(asked: Request) -> Penalty | None:
    strength = asked.config.variation_penalty
    if not strength or not asked.has_experts:
        return None

    def penalty(step: Step) -> Tensor:
        sample = step.evaluation.sample_experts(step.routed, step.batch.weight, asked.slot_weight)
        workers = step.workers if sample.is_local else ALONE
        return strength * variation_penalty(sample.values, sample.weight, workers)

    return penalty


def _output(asked: Request) -> Penalty | None:
    strength = asked.config.output_penalty
    if not strength:
        return None
    return lambda step: strength * output_penalty(step.routed, step.batch.weight, step.workers)


def _steered_context(asked: Request) -> Penalty | None:
    dial = asked.dial
    if dial is None:
        return None
    return lambda step: dial.penalty(step.routed.contributions, step.own_effect(), step.batch.weight, step.workers)


def _context(asked: Request) -> Penalty | None:
    strength = asked.config.context_penalty
    if asked.dial is not None or not strength or not asked.has_experts:
        return None

    def penalty(step: Step) -> Tensor:
        own = step.own_effect()
        return strength * context_share(step.routed.contributions, own, step.batch.weight, step.workers)

    return penalty


def _roughness(asked: Request) -> Penalty | None:
    if asked.roughness is None:
        return None
    like = asked.slot_weight
    left, weight = (torch.tensor(each, device=like.device, dtype=like.dtype) for each in asked.roughness.arrays)

    def penalty(step: Step) -> Tensor:
        parts = [roughness_penalty(curves, left, weight) for curves in step.evaluation.curves()]
        return torch.stack(parts).sum(dim=0)

    return penalty


PENALTIES: tuple[Callable[[Request], Penalty | None], ...] = (
    _variation,
    _output,
    _steered_context,
    _context,
    _roughness,
)


class Objective:
    """The loss of a batch and its penalties."""

    def __init__(
        self,
        network: TorchNetwork,
        loss: Loss,
        config: TrainingConfig,
        *,
        own_fold: Tensor,
        slot_weight: Tensor,
        workers: Workers = ALONE,
    ) -> None:
        self.network, self.own_fold, self.workers = network, own_fold, workers
        self.per_row = loss_per_row(loss)
        intercept, asked_for = network.intercept, make_dial(network.config, config)
        self.dial = None
        if asked_for is not None:
            self.dial = Dial(asked_for, device=intercept.device, dtype=intercept.dtype)
        asked = Request(config, network.config.n_experts > 1, slot_weight, self.dial, network.roughness)
        self.penalties = [made for make in PENALTIES if (made := make(asked)) is not None]

    def __call__(self, batch: TensorRows) -> tuple[Tensor, Tensor]:
        """Return the mean loss (detached) and what is minimised."""
        evaluation = self.network.evaluate()
        routed = evaluation.route(batch.cells, batch.weight)
        per_row = self.per_row(batch.shifted(routed.score), batch.target)  # (B, M)
        held_out = batch.is_held_out(self.own_fold)
        if held_out is not None:
            per_row = per_row * ~held_out
        objective = weighted_mean(per_row, batch.weight, self.workers)  # (M,)
        value = objective.detach().mean()
        step = Step(batch, evaluation, routed, self.workers)
        for penalty in self.penalties:
            objective = objective + penalty(step)
        return value, objective.sum()
