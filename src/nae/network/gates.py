"""Gates: how many terms a feature adds, the weights at the start, and the tables of the finished model.

A gate turns the hidden units of every feature into terms by weights (F, hidden, width, M). The terms of all features
are added up, with a bias, and lead to the logits of every feature's experts.
"""

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from nae._typing import AnyArray, Array
from nae.network.draws import Random, normal
from nae.network.forms import Forms
from nae.tables.gates import GateTables

__all__ = ["GATES", "AdditiveGate", "DeepGate", "DiagonalGate", "Gate", "LowRankGate"]


class Gate:
    """What all gates have in common: every feature adds terms to every logit, Eq. (3) of the paper."""

    name: ClassVar[str]
    sums_features: ClassVar[bool] = True
    """Whether the terms of all features are added up."""

    @staticmethod
    def width(n_features: int, n_experts: int, rank: int) -> int:
        """Return how many terms a feature has."""
        return n_experts * n_features

    @staticmethod
    def work(n_experts: int, rank: int) -> int:
        """Return how many terms of a feature an estimate of work counts."""
        return n_experts

    @classmethod
    def draw(
        cls, random: Random, *, n_members: int, n_features: int, n_experts: int, hidden_dim: int, rank: int
    ) -> dict[str, Array]:
        """Return the weights at the start, by name."""
        width = cls.width(n_features, n_experts, rank)
        fan = (n_features if cls.sums_features else 1) * hidden_dim + width
        return {
            "weight": normal(random, n_features, hidden_dim, width, n_members, deviation=math.sqrt(2 / fan)),
            "bias": np.zeros((width if cls.sums_features else n_experts * n_features, n_members)),
        }

    @classmethod
    def to_tables(cls, terms: Array, arrays: Mapping[str, AnyArray], *, forms: Forms | None = None) -> GateTables:
        """Return the gate of the finished model from terms (slot, width, M) and its other weights."""
        return GateTables(kind=cls.name, terms=terms, bias=np.asarray(arrays["bias"], dtype=np.float64))


class AdditiveGate(Gate):
    """Every feature adds terms to every logit."""

    name = "additive"


class DiagonalGate(Gate):
    """The terms of a feature go to its own logits alone (NAE-D)."""

    name = "diagonal"
    sums_features = False

    @staticmethod
    def width(n_features: int, n_experts: int, rank: int) -> int:
        return n_experts


class LowRankGate(Gate):
    """The terms are summed as ``rank`` numbers, and a linear map gives the logits: weights grow with the features.

    The weights of an additive gate grow with the square of the features.
    """

    name = "low-rank"

    @staticmethod
    def width(n_features: int, n_experts: int, rank: int) -> int:
        return rank

    @staticmethod
    def work(n_experts: int, rank: int) -> int:
        return rank

    @classmethod
    def draw(
        cls, random: Random, *, n_members: int, n_features: int, n_experts: int, hidden_dim: int, rank: int
    ) -> dict[str, Array]:
        sizes = {"n_members": n_members, "n_features": n_features, "n_experts": n_experts, "hidden_dim": hidden_dim}
        n_logits = n_experts * n_features
        return {
            **super().draw(random, **sizes, rank=rank),
            "mix": normal(random, n_members, rank, n_logits, deviation=1 / math.sqrt(rank)),
            "mix_bias": np.zeros((n_members, 1, n_logits)),
        }

    @classmethod
    def to_tables(cls, terms: Array, arrays: Mapping[str, AnyArray], *, forms: Forms | None = None) -> GateTables:
        bias, mix, mix_bias = (np.asarray(arrays[name], dtype=np.float64) for name in ("bias", "mix", "mix_bias"))
        n_experts = 1 if forms is None else mix.shape[2] // len(forms.rises)
        shaped = mix if forms is None else forms.shape_mix(mix, n_experts=n_experts)
        return GateTables(kind=cls.name, terms=terms, bias=bias, mix=shaped, mix_bias=mix_bias[:, 0].T)


class DeepGate(LowRankGate):
    """A low-rank gate with a ReLU before the map: for interactions of many features."""

    name = "deep"


GATES: dict[str, type[Gate]] = {gate.name: gate for gate in (AdditiveGate, LowRankGate, DeepGate, DiagonalGate)}
