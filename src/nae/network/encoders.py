"""Encoders: how a network reads the values of features, and how it starts."""

import math
from abc import ABC, abstractmethod

import numpy as np

from nae._typing import Array
from nae.encoding import Columns, Schema
from nae.network.inputs import piecewise_inputs, quantile_inputs

__all__ = ["ENCODERS", "Encoder", "KnotEncoder", "RowEncoder"]

_SMALL = 0.3  # experts start near zero, as a share of the usual scale


class Encoder(ABC):
    """The inputs of a network, the bounds of its first weights, and the work of a step."""

    has_exact_tables: bool
    """Whether tables hold exactly what the network computes between knots, too."""

    @abstractmethod
    def make_inputs(self, schema: Schema, columns: Columns, *, n_ramps: int, random: np.random.Generator) -> Array:
        """Return a vector per slot, (feature, slot, width)."""

    @abstractmethod
    def block_bounds(self, n_features: int, in_dim: int, out_dim: int) -> tuple[float, float]:
        """Return the bounds between which the weights and the biases of a block are drawn."""

    @abstractmethod
    def expert_bounds(self, n_features: int, hidden_dim: int, n_experts: int) -> tuple[float, float]:
        """Return the bounds between which the weights and the biases of the experts are drawn."""

    @abstractmethod
    def count_evaluated(self, *, n_slots: int, batch_size: int) -> int:
        """Return how often a step evaluates the blocks of one feature."""


class KnotEncoder(Encoder):
    """Piecewise-linear inputs, evaluated on knots: a table of the network is the network."""

    has_exact_tables = True

    def make_inputs(self, schema: Schema, columns: Columns, *, n_ramps: int, random: np.random.Generator) -> Array:
        return piecewise_inputs(schema, n_ramps)

    def block_bounds(self, n_features: int, in_dim: int, out_dim: int) -> tuple[float, float]:
        return math.sqrt(3 / in_dim), 1 / math.sqrt(in_dim)

    def expert_bounds(self, n_features: int, hidden_dim: int, n_experts: int) -> tuple[float, float]:
        return _SMALL * math.sqrt(3 / hidden_dim), 0.0

    def count_evaluated(self, *, n_slots: int, batch_size: int) -> int:
        return n_slots


class RowEncoder(Encoder):
    """Quantile-normal inputs and the paper's start, evaluated on rows; tables are exact on the knots alone."""

    has_exact_tables = False

    def make_inputs(self, schema: Schema, columns: Columns, *, n_ramps: int, random: np.random.Generator) -> Array:
        return quantile_inputs(schema, columns, random)

    def block_bounds(self, n_features: int, in_dim: int, out_dim: int) -> tuple[float, float]:
        # PAPER: with plain He scales the paper's architecture stops well short of its figures.
        return math.sqrt(6 / (in_dim * out_dim)), 1 / math.sqrt(n_features * in_dim)

    def expert_bounds(self, n_features: int, hidden_dim: int, n_experts: int) -> tuple[float, float]:
        return math.sqrt(6 / (hidden_dim * n_experts)), 1 / math.sqrt(n_features * hidden_dim)

    def count_evaluated(self, *, n_slots: int, batch_size: int) -> int:
        return batch_size


ENCODERS: dict[str, Encoder] = {"piecewise": KnotEncoder(), "mlp": RowEncoder()}
