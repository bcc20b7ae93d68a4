"""Training steps by one process or by one of several: what every worker ends with."""

from dataclasses import replace

import numpy as np
import torch
import torch.distributed as dist

from nae.engines.torch.cells import RowCells
from nae.training import TrainingRows, make_loss
from nae.training.engine import TorchEngine
from nae.training.schedule import Cosine
from nae.training.workers import ALONE, Together, Workers
from tests.configs import training_config
from tests.training.problems import Problem

__all__ = ["take_steps", "take_steps_together"]

_BATCH = 32


def take_steps(n_steps: int, workers: Workers = ALONE, **config: object) -> dict[str, np.ndarray]:
    """Return network and dial after some steps; several workers share the rows of every batch."""
    problem = Problem(gate="low-rank")
    network, rows = problem.network().float(), _weighted(problem.rows())
    settings = training_config(batch_size=_BATCH, warmup_steps=1, **config)
    order = torch.Generator().manual_seed(0)
    engine = TorchEngine(network, rows, None, make_loss("squared"), settings, generator=order, workers=workers)
    schedule = Cosine(settings, engine.n_batches)
    for number in range(n_steps):
        batch = torch.randperm(len(rows), generator=order)[:_BATCH]
        engine.optimiser.set_rate(settings.learning_rate * schedule.rate(number))
        engine.step(rows.take(batch[workers.rank :: workers.count]))
    found = {name: tensor.detach().numpy().copy() for name, tensor in network.state_dict().items()}
    if engine.dial is not None:
        found |= {name: tensor.numpy() for name, tensor in engine.dial.tensors().items()}
    return found


def take_steps_together(rank: int, port: int, n_steps: int, config: dict[str, object]) -> dict[str, np.ndarray]:
    """Return the same as one of two processes."""
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    try:
        return take_steps(n_steps, Together(), **config)
    finally:
        dist.destroy_process_group()


def _weighted(rows: TrainingRows) -> TrainingRows:
    weight = torch.linspace(0.5, 1.5, len(rows))
    fold = torch.arange(len(rows)) % 4
    cells = RowCells(rows.cells.slot, rows.cells.fraction.float())
    return replace(rows, cells=cells, target=rows.target.float(), weight=weight, fold=fold)
