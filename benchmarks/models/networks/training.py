"""The training of all networks: AdamW, a cosine schedule, and early stopping on the validation rows."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmarks.models.networks.base import AdditiveNetwork, Network
from benchmarks.models.recipe import Recipe

__all__ = ["Rows", "Trained", "evaluate", "evaluate_terms", "run_epoch", "seeded", "train"]

EVALUATED = 2**18
"""Number of terms (or of features, if there are no terms) that are computed at once without gradients."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Features (row, feature) and targets: standardised numbers (row,) or the codes of classes (row,)."""

    x: Tensor
    y: Tensor

    def to(self, device: torch.device) -> "Rows":
        """Return the rows on a device."""
        return Rows(self.x.to(device), self.y.to(device))


@dataclass(frozen=True)
class Trained:
    """The result of training."""

    best_epoch: int
    n_epochs: int
    validation_loss: float


def train(network: Network, train_rows: Rows, validation: Rows, recipe: Recipe, *, shuffle: torch.Generator) -> Trained:
    """Train in place. The network ends with the weights of the best validation loss."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    best_loss, best_epoch, best_state = math.inf, -1, deepcopy(network.state_dict())
    epoch = 0
    for epoch in range(recipe.max_epochs):
        progress = epoch / recipe.max_epochs
        is_settled = network.settle((epoch + 1) / recipe.max_epochs)
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate * (1 + math.cos(math.pi * progress)) / 2
        run_epoch(network, train_rows, optimizer, recipe, shuffle)
        if not is_settled:
            continue
        loss = float(_loss(evaluate(network, validation.x), validation.y))
        if loss < best_loss:
            best_loss, best_epoch, best_state = loss, epoch, deepcopy(network.state_dict())
        if epoch - best_epoch >= recipe.patience and best_epoch >= 0:
            break
    network.load_state_dict(best_state)
    return Trained(best_epoch, epoch + 1, best_loss)


def run_epoch(
    network: Network, rows: Rows, optimizer: torch.optim.Optimizer, recipe: Recipe, shuffle: torch.Generator
) -> None:
    """Take one pass over the rows in a new random order."""
    network.train()
    order = torch.randperm(len(rows.y), generator=shuffle).to(rows.y.device)
    n_batches = max(1, round(len(order) / recipe.batch_size))
    for batch in order.tensor_split(n_batches):
        x, y = rows.x[batch], rows.y[batch]
        if isinstance(network, AdditiveNetwork) and recipe.output_penalty:
            terms = network.terms(x)
            loss = _loss(terms.sum(dim=1) + network.intercept, y) + recipe.output_penalty * terms.square().mean()
        else:
            loss = _loss(network(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), recipe.clip_norm)
        optimizer.step()


@torch.no_grad()
def evaluate(network: Network, x: Tensor) -> Tensor:
    """Return the scores (row, output) of a network in evaluation mode."""
    network.eval()
    return torch.cat([network(part) for part in _parts(network, x)])


@torch.no_grad()
def evaluate_terms(network: AdditiveNetwork, x: Tensor) -> Tensor:
    """Return the terms (row, term, output) of a network in evaluation mode."""
    network.eval()
    return torch.cat([network.terms(part) for part in _parts(network, x)])


def _parts(network: Network, x: Tensor) -> tuple[Tensor, ...]:
    n_terms = len(network.keys) if isinstance(network, AdditiveNetwork) else x.shape[1]
    parts: tuple[Tensor, ...] = x.split(max(1, EVALUATED // n_terms))
    return parts


def _loss(scores: Tensor, y: Tensor) -> Tensor:
    if scores.shape[1] > 1:
        return nn.functional.cross_entropy(scores, y)
    if y.is_floating_point():
        return nn.functional.mse_loss(scores[:, 0], y)
    return nn.functional.binary_cross_entropy_with_logits(scores[:, 0], y.to(scores.dtype))


@contextmanager
def seeded(seed: int, *, threads: int, device: torch.device) -> Iterator[torch.Generator]:
    """Seed torch and set its threads within a block, and restore both. Yield a generator for shuffling."""
    before = torch.get_num_threads()
    with torch.random.fork_rng(devices=[device.index or 0] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        torch.set_num_threads(threads)
        try:
            yield torch.Generator().manual_seed(seed)
        finally:
            torch.set_num_threads(before)
