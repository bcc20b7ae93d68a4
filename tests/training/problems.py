"""A small problem for the training loop: rows, and a network for them."""

from dataclasses import replace

import numpy as np
import torch

from nae.encoding import Cells, Columns, Schema, build_schema, infer_kinds
from nae.network import Network, piecewise_inputs
from nae.network.cells import RowCells
from nae.training import TrainingRows
from nae.training.assemble import padded_slots
from tests.configs import network_config

__all__ = ["N_ROWS", "Problem"]

N_ROWS = 64


class Problem:
    """A product of two features, and a fresh network whenever it is asked for."""

    def __init__(self, *, n_members: int = 2, n_experts: int = 3, gate: str = "additive", dropout: float = 0.0) -> None:
        random = np.random.default_rng(0)
        x = random.uniform(-1, 1, (N_ROWS, 2))
        self.columns = Columns((x[:, 0], x[:, 1]), ("a", "b"))
        self.schema: Schema = build_schema(self.columns, infer_kinds(self.columns), np.ones(N_ROWS), n_knots=8)
        self.cells: Cells = self.schema.locate(self.columns)
        self.target = (x[:, 0] * np.sign(x[:, 1]))[:, None]
        self.config = network_config(
            n_experts=n_experts,
            n_active=n_experts,
            n_members=n_members,
            hidden_dim=8,
            gate=gate,
            gate_rank=4,
            expert_dropout=dropout,
        )

    def rows(self) -> TrainingRows:
        position = torch.as_tensor(padded_slots(self.schema)[self.cells.slot])
        cells = RowCells(position, torch.as_tensor(self.cells.fraction))
        weight = torch.ones(N_ROWS, dtype=torch.float64)
        return TrainingRows(cells, torch.as_tensor(self.target), weight, None)

    def folded(self, fold: np.ndarray) -> TrainingRows:
        return replace(self.rows(), fold=torch.as_tensor(fold))

    def network(self, seed: int = 0) -> Network:
        generator = torch.Generator().manual_seed(seed)
        return Network(self.config, piecewise_inputs(self.schema, 4), 1, generator=generator, dtype=torch.float64)
