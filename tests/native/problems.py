"""Problems of any shape, trained by both engines from the same start."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from nae.encoding import Columns, Schema, build_schema, infer_kinds
from nae.native import Values
from nae.network import Network, piecewise_inputs
from nae.network.cells import RowCells
from nae.training import TrainingConfig, TrainingRows, make_loss
from nae.training.assemble import padded_slots
from nae.training.engine import TorchEngine
from nae.training.native_engine import NativeEngine
from tests.configs import network_config, training_config

__all__ = ["NativeEngine", "Problem", "TorchEngine", "assert_same", "native_gradients", "torch_gradients"]

NUMBERS = ("squared", "absolute", "huber", "quantile")


@dataclass(frozen=True)
class Problem:
    """A table, a network for it, and how the network is trained."""

    n_features: int = 3
    n_rows: int = 70
    n_knots: int = 9
    n_outputs: int = 1
    n_categories: int = 0
    has_missing: bool = False
    has_constant: bool = False
    has_start: bool = False
    has_base: bool = False
    is_sparse: bool = False
    """Whether two thirds of the rows that knots were made for are not trained on: some slots have no row."""
    n_folds: int | None = None
    loss: str = "squared"
    is_double: bool = False
    network: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    seed: int = 0

    @property
    def dtype(self) -> torch.dtype:
        return torch.float64 if self.is_double else torch.float32

    def columns(self) -> Columns:
        """Return features of every kind."""
        random = np.random.default_rng(self.seed)
        arrays: list[np.ndarray] = []
        for i in range(self.n_features):
            if i < self.n_categories:
                arrays.append(np.array(list("abcdefg"), dtype=object)[random.integers(0, 7, self.n_rows)])
            else:
                arrays.append(random.normal(size=self.n_rows))
        if self.has_missing and self.n_categories < self.n_features:
            arrays[-1][:: max(2, self.n_rows // 7)] = np.nan
        if self.has_constant:
            arrays[0] = np.full(self.n_rows, 1.0)
        return Columns(tuple(arrays), tuple(f"x{i}" for i in range(self.n_features)))

    def schema(self) -> Schema:
        columns = self.columns()
        return build_schema(columns, infer_kinds(columns), np.ones(self.n_rows), n_knots=self.n_knots)

    def rows(self) -> TrainingRows:
        random = np.random.default_rng(self.seed + 1)
        schema = self.schema()
        cells = schema.locate(self.columns())
        weight = random.uniform(0.2, 2.0, self.n_rows)
        fold = None if self.n_folds is None else torch.as_tensor(random.integers(0, self.n_folds, self.n_rows))
        base = random.normal(size=(self.n_rows, self.n_outputs)) if self.has_base else None
        rows = TrainingRows(
            RowCells(
                torch.as_tensor(padded_slots(schema)[cells.slot]), torch.as_tensor(cells.fraction, dtype=self.dtype)
            ),
            self._target(random),
            torch.as_tensor(weight / weight.mean(), dtype=self.dtype),
            None if base is None else torch.as_tensor(base, dtype=self.dtype),
            fold,
        )
        return rows.take(torch.arange(0, self.n_rows, 3)) if self.is_sparse else rows

    def _target(self, random: np.random.Generator) -> torch.Tensor:
        if self.loss == "cross-entropy":
            return torch.as_tensor(random.integers(0, self.n_outputs, self.n_rows))
        values = random.normal(size=(self.n_rows, self.n_outputs))
        if self.loss not in NUMBERS:
            values = (values > 0).astype(float) if self.loss == "logistic" else np.exp(values)
        return torch.as_tensor(values, dtype=self.dtype)

    def make_network(self) -> Network:
        """Return the network; none of its parameters is zero or one."""
        generator = torch.Generator().manual_seed(self.seed)
        schema = self.schema()
        constant = np.array([feature.is_constant for feature in schema.features])
        config = network_config(**{"n_experts": 3, "n_active": 3, "hidden_dim": 8, "gate_rank": 5} | self.network)
        inputs = piecewise_inputs(schema, 5)
        made = Network(config, inputs, self.n_outputs, generator=generator, dtype=self.dtype, constant=constant)
        spread = 0.2 * min(1.0, (8 / self.n_features) ** 0.5)  # so that no score grows with the number of features
        with torch.no_grad():
            for each in made.parameters():
                each.add_(spread * torch.randn(each.shape, generator=generator, dtype=self.dtype))
        if self.has_start:
            shape = (len(schema) * inputs.shape[1] + 1, self.n_outputs, config.n_members)
            made.begin_at(5 * spread * torch.randn(shape, generator=generator, dtype=self.dtype))
        return made

    def config(self) -> TrainingConfig:
        return training_config(**{"batch_size": 23, "n_folds": self.n_folds} | self.training)

    def engine(self, kind: type[Any], *, validation: TrainingRows | None = None, **options: Any) -> Any:
        """Return an engine of a kind, at the start."""
        generator = torch.Generator().manual_seed(self.seed)
        loss = make_loss(self.loss)
        return kind(self.make_network(), self.rows(), validation, loss, self.config(), generator=generator, **options)

    def engines(self, *, validation: TrainingRows | None = None) -> tuple[TorchEngine, NativeEngine]:
        return self.engine(TorchEngine, validation=validation), self.engine(NativeEngine, validation=validation)

    def but(self, **changes: Any) -> "Problem":
        return replace(self, **changes)


def torch_gradients(engine: TorchEngine, part: torch.Tensor) -> tuple[float, dict[str, torch.Tensor]]:
    """Return the loss of some rows and the gradients of all parameters."""
    engine.network.train()
    value, objective = engine.objective(engine.rows.window.take(part))
    engine.optimiser.forget_gradients()
    objective.backward()
    named = engine.network.named_parameters()
    return float(value), {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in named}


def native_gradients(engine: NativeEngine, part: torch.Tensor) -> tuple[float, dict[str, torch.Tensor]]:
    losses = engine.core.gradients(engine._table, part.numpy()[None], noise=engine.noise)
    return float(losses.mean()), engine.parameters.values(Values.GRADIENTS)


def assert_same(found: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor], *, tolerance: float) -> None:
    """Compare tensors by name; differences are measured by the largest number of each, or a hundredth of all."""
    assert found.keys() == wanted.keys()
    sizes = {name: float(tensor.abs().max()) if tensor.numel() else 0.0 for name, tensor in wanted.items()}
    least = 1e-2 * max(sizes.values())
    for name, size in sizes.items():
        apart = float((found[name] - wanted[name]).abs().max()) if wanted[name].numel() else 0.0
        assert apart <= tolerance * max(size, least), f"{name}: {apart:.3g} of {size:.3g}"
