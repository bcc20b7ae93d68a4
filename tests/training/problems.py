"""A small problem for the training loop: rows, and a network for them."""

from dataclasses import replace
from typing import Any

import numpy as np

from nae.encoding import Cells, Columns, Schema, build_schema, infer_kinds
from nae.network import Network, draw_network, piecewise_inputs
from nae.training import Job, TrainingConfig, TrainingRows, make_loss
from nae.training.assemble import padded_slots
from tests.configs import network_config, training_config

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
        cells = Cells(padded_slots(self.schema)[self.cells.slot], self.cells.fraction.copy())
        return TrainingRows(cells, self.target.copy(), np.ones(N_ROWS), None)

    def folded(self, fold: np.ndarray) -> TrainingRows:
        return replace(self.rows(), fold=np.asarray(fold, dtype=np.int64))

    def network(self, seed: int = 0, dtype: type[np.floating] = np.float64) -> Network:
        random = np.random.default_rng(seed)
        return draw_network(self.config, piecewise_inputs(self.schema, 4), 1, random=random, dtype=dtype)

    def job(
        self,
        rows: Any = None,
        validation: TrainingRows | None = None,
        *,
        network: Network | None = None,
        config: TrainingConfig | None = None,
        **options: Any,
    ) -> Job:
        """Return a training of the network on the rows, by the squared loss."""
        config = training_config() if config is None else config
        rows = self.rows() if rows is None else rows
        network = self.network() if network is None else network
        random = np.random.default_rng(0)
        return Job(network, rows, validation, make_loss("squared"), config, random, **options)
