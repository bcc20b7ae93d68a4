"""Problems of any shape, trained by both engines from the same start."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from nae._typing import AnyArray, IntArray
from nae.encoding import Cells, Columns, Schema, build_schema, infer_kinds
from nae.engines.native import NativeEngine
from nae.engines.torch import TorchEngine
from nae.engines.torch.rows import TensorRows
from nae.native import Values
from nae.network import Network, Roughness, draw_network, piecewise_inputs
from nae.training import Job, TrainingConfig, TrainingRows, make_loss
from nae.training.assemble import padded_slots
from tests.configs import network_config, training_config
from tests.engines.forms import draw_forms

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
    has_forms: bool = False
    """Whether experts and gate terms are made to be something."""
    n_folds: int | None = None
    loss: str = "squared"
    options: dict[str, Any] = field(default_factory=dict)
    is_double: bool = False
    network: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    seed: int = 0

    @property
    def dtype(self) -> type[np.floating]:
        return np.float64 if self.is_double else np.float32

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
        fold = None if self.n_folds is None else random.integers(0, self.n_folds, self.n_rows)
        base = random.normal(size=(self.n_rows, self.n_outputs)) if self.has_base else None
        rows = TrainingRows(
            Cells(padded_slots(schema)[cells.slot], cells.fraction.astype(self.dtype)),
            self._target(random),
            (weight / weight.mean()).astype(self.dtype),
            None if base is None else base.astype(self.dtype),
            fold,
        )
        return rows.take(np.arange(0, self.n_rows, 3)) if self.is_sparse else rows

    def _target(self, random: np.random.Generator) -> AnyArray:
        if self.loss == "cross-entropy":
            return random.integers(0, self.n_outputs, self.n_rows)
        values = random.normal(size=(self.n_rows, self.n_outputs))
        if self.loss not in NUMBERS:
            values = (values > 0).astype(float) if self.loss == "logistic" else np.exp(values)
        return values.astype(self.dtype)

    def make_network(self) -> Network:
        """Return the network; none of its parameters is zero or one."""
        random = np.random.default_rng(self.seed)
        schema = self.schema()
        constant = np.array([feature.is_constant for feature in schema.features])
        config = network_config(**{"n_experts": 3, "n_active": 3, "hidden_dim": 8, "gate_rank": 5} | self.network)
        inputs = piecewise_inputs(schema, 5)
        drawn = draw_network(config, inputs, self.n_outputs, random=random, dtype=self.dtype, constant=constant)
        spread = 0.2 * min(1.0, (8 / self.n_features) ** 0.5)  # so that no score grows with the number of features
        made = drawn.with_arrays(
            {name: array + spread * random.normal(size=array.shape) for name, array in drawn.arrays.items()}
        )
        if self.has_forms:
            forms = draw_forms(made, schema, seed=self.seed)
            smoothness = random.uniform(0, 100, self.n_features) * (random.random(self.n_features) < 0.5)
            rough = Roughness.of(smoothness, forms.places, forms.n_ordered)
            made = replace(made, forms=forms, roughness=rough)
        if self.has_start:
            shape = (len(schema) * inputs.shape[1] + 1, self.n_outputs, config.n_members)
            made = made.begin_at(5 * spread * random.normal(size=shape))
        return made

    def config(self) -> TrainingConfig:
        return training_config(**{"batch_size": 23, "n_folds": self.n_folds} | self.training)

    def engine(self, kind: type[Any], *, validation: TrainingRows | None = None, **options: Any) -> Any:
        """Return an engine of a kind, at the start."""
        return kind(self.job(validation), **options)

    def job(self, validation: TrainingRows | None = None, *, n_threads: int | None = 1, **changes: Any) -> Job:
        """Return what an engine is to train."""
        random, loss = np.random.default_rng(self.seed), make_loss(self.loss, **self.options)
        job = Job(self.make_network(), self.rows(), validation, loss, self.config(), random, n_threads=n_threads)
        return replace(job, **changes)

    def engines(self, *, validation: TrainingRows | None = None) -> tuple[TorchEngine, NativeEngine]:
        with closing(self.engine(TorchEngine, validation=validation)) as one:
            return one, self.engine(NativeEngine, validation=validation)

    def but(self, **changes: Any) -> "Problem":
        return replace(self, **changes)


def torch_gradients(engine: TorchEngine, rows: TrainingRows) -> tuple[float, dict[str, AnyArray]]:
    """Return the loss of some rows and the gradients of all parameters."""
    engine.module.train()
    value, objective = engine.objective(TensorRows.of(rows))
    engine.optimiser.forget_gradients()
    objective.backward()
    found = {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in engine.module.named_parameters()}
    return float(value), {name: gradient.numpy() for name, gradient in found.items()}


def native_gradients(engine: NativeEngine, part: IntArray) -> tuple[float, dict[str, AnyArray]]:
    losses = engine.core.gradients(engine._table, part[None], noise=engine.noise)
    return float(losses.mean()), engine.parameters.values(Values.GRADIENTS)


def assert_same(found: Mapping[str, AnyArray], wanted: Mapping[str, AnyArray], *, tolerance: float) -> None:
    """Compare arrays by name; differences are measured by the largest number of each, or a hundredth of all."""
    assert found.keys() == wanted.keys()
    sizes = {name: float(np.abs(array).max()) if array.size else 0.0 for name, array in wanted.items()}
    least = 1e-2 * max(sizes.values())
    for name, size in sizes.items():
        apart = float(np.abs(found[name] - wanted[name]).max()) if wanted[name].size else 0.0
        assert apart <= tolerance * max(size, least), f"{name}: {apart:.3g} of {size:.3g}"
