"""Neural additive models and neural basis models, each with or without pairs."""

from itertools import pairwise

import torch
from torch import Tensor, nn

from benchmarks.models.networks.base import AdditiveNetwork, Key, keys_of
from benchmarks.models.networks.dense import SideBySide

__all__ = ["NAM", "NBM"]


class NAM(AdditiveNetwork):
    """Neural additive model (Agarwal et al., 2021): a small network per feature. NA²M also has one per pair.

    Widths and activations (ReLU) are those in the comparison by Radenovic et al. (2022).
    """

    pair_index: Tensor

    def __init__(
        self,
        n_features: int,
        n_outputs: int,
        *,
        has_pairs: bool = False,
        hidden: tuple[int, ...] = (64, 64, 32),
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.keys = keys_of(n_features, has_pairs=has_pairs)
        self.register_buffer("pair_index", _index(self.keys[n_features:]))
        self.single = SideBySide(n_features, (1, *hidden, n_outputs), dropout=dropout)
        n_pairs = len(self.keys) - n_features
        self.pairs = SideBySide(n_pairs, (2, *hidden, n_outputs), dropout=dropout) if n_pairs else None
        self.intercept = nn.Parameter(torch.zeros(n_outputs))

    def terms(self, x: Tensor) -> Tensor:
        single: Tensor = self.single(x[:, :, None])
        if self.pairs is None:
            return single
        return torch.cat([single, self.pairs(x[:, self.pair_index])], dim=1)


class NBM(AdditiveNetwork):
    """Neural basis model (Radenovic et al., 2022): all features share the basis functions and mix them linearly.

    NB²M has a second basis, of two inputs, that all pairs share.
    """

    pair_index: Tensor

    def __init__(
        self,
        n_features: int,
        n_outputs: int,
        *,
        has_pairs: bool = False,
        n_bases: tuple[int, int] = (100, 200),
        hidden: tuple[int, ...] = (256, 128, 128),
        dropout: float = 0.0,
        basis_dropout: float = 0.05,
    ) -> None:
        super().__init__()
        self.keys = keys_of(n_features, has_pairs=has_pairs)
        self.register_buffer("pair_index", _index(self.keys[n_features:]))
        n_pairs = len(self.keys) - n_features
        self.single = _Basis(1, hidden, n_bases[0], dropout=dropout)
        self.mix_single = _mixture(n_features, n_bases[0], n_outputs)
        self.pairs = _Basis(2, hidden, n_bases[1], dropout=dropout) if n_pairs else None
        self.mix_pairs = _mixture(n_pairs, n_bases[1], n_outputs)
        self.drop = nn.Dropout(basis_dropout)
        self.intercept = nn.Parameter(torch.zeros(n_outputs))

    def terms(self, x: Tensor) -> Tensor:
        single = torch.einsum("btk,tko->bto", self.drop(self.single(x[:, :, None])), self.mix_single)
        if self.pairs is None:
            return single
        bases = self.drop(self.pairs(x[:, self.pair_index]))
        return torch.cat([single, torch.einsum("btk,tko->bto", bases, self.mix_pairs)], dim=1)


def _index(pairs: tuple[Key, ...]) -> Tensor:
    return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2)


class _Basis(nn.Module):
    """The functions that all terms of one kind share: (row, term, input) → (row, term, basis)."""

    def __init__(self, n_inputs: int, hidden: tuple[int, ...], n_bases: int, *, dropout: float) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for width, next_width in pairwise((n_inputs, *hidden)):
            layers += [nn.Linear(width, next_width), nn.BatchNorm1d(next_width), nn.Dropout(dropout), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.Linear(hidden[-1], n_bases))

    def forward(self, x: Tensor) -> Tensor:
        values: Tensor = self.layers(x.flatten(0, 1)).unflatten(0, x.shape[:2])
        return values


def _mixture(n_terms: int, n_bases: int, n_outputs: int) -> nn.Parameter:
    bound = n_bases**-0.5
    return nn.Parameter(torch.empty(n_terms, n_bases, n_outputs).uniform_(-bound, bound))
