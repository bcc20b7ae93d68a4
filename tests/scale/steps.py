"""Training steps by one process or by one of several: what every worker ends with."""

from contextlib import closing
from dataclasses import replace

import numpy as np
import torch.distributed as dist

from nae.encoding import Cells
from nae.engines.torch import TorchEngine
from nae.engines.torch.rows import TensorRows
from nae.engines.torch.together import Together
from nae.training import TrainingRows
from nae.training.schedule import Cosine
from nae.training.workers import ALONE, Workers
from tests.configs import training_config
from tests.training.problems import Problem

__all__ = ["take_steps", "take_steps_together"]

_BATCH = 32


def take_steps(n_steps: int, workers: Workers = ALONE, **config: object) -> dict[str, np.ndarray]:
    """Return network and dial after some steps; several workers share the rows of every batch."""
    problem = Problem(gate="low-rank")
    network, rows = problem.network(dtype=np.float32), _weighted(problem.rows())
    settings = training_config(batch_size=_BATCH, warmup_steps=1, **config)
    order = np.random.default_rng(0)
    with closing(TorchEngine(problem.job(rows, network=network, config=settings, workers=workers))) as engine:
        schedule = Cosine(settings, engine.n_batches)
        for number in range(n_steps):
            batch = order.permutation(len(rows))[:_BATCH]
            engine.optimiser.set_rate(settings.learning_rate * schedule.rate(number))
            engine.step(TensorRows.of(rows.take(batch[workers.rank :: workers.count])))
        found = engine.module.arrays()
        if engine.dial is not None:
            found |= engine.dial.arrays()
    return found


def take_steps_together(rank: int, port: int, n_steps: int, config: dict[str, object]) -> dict[str, np.ndarray]:
    """Return the same as one of two processes."""
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    try:
        return take_steps(n_steps, Together(), **config)
    finally:
        dist.destroy_process_group()


def _weighted(rows: TrainingRows) -> TrainingRows:
    weight = np.linspace(0.5, 1.5, len(rows), dtype=np.float32)
    fold = np.arange(len(rows)) % 4
    cells = Cells(rows.cells.slot, rows.cells.fraction.astype(np.float32))
    return replace(rows, cells=cells, target=rows.target.astype(np.float32), weight=weight, fold=fold)
