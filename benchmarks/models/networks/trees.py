"""Layers of soft oblivious trees: NODE, and its additive variants NODE-GAM and NODE-GA²M.

At each level, an oblivious tree asks the same question about every row: is a chosen value above a threshold? Answers
are shares between 0 and 1, so the weight of a leaf is a product of shares. In these modules, rows are the last axis: it
is the longest, which makes arithmetic on small trees fast.
"""

import torch
from torch import Tensor, nn

from benchmarks.models.networks.base import AdditiveNetwork, Network
from benchmarks.models.networks.sparse import entmax, entmoid

__all__ = ["NODE", "Forest", "NodeGAM"]

SHARPNESS = (1.0, 4.0)
"""Range of the logarithm of the initial slope at a threshold: from ramps that are nearly as wide as the spread of a
feature, which is 1, to steps."""
COLDEST = 0.02
"""Temperature of the choice of features before the choice is final."""


class NODE(Network):
    """Neural oblivious decision ensembles (Popov et al., 2020): a layer sees the features and all earlier trees."""

    def __init__(
        self, n_features: int, n_outputs: int, *, n_layers: int = 2, n_trees: int = 128, depth: int = 5
    ) -> None:
        super().__init__()
        widths = [n_features + i * n_trees for i in range(n_layers)]
        self.choices = nn.ParameterList([nn.Parameter(torch.rand(n_trees, depth, width)) for width in widths])
        self.forests = nn.ModuleList([Forest(n_trees, depth) for _ in widths])
        self.head = nn.Linear(n_layers * n_trees, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        seen = x.T
        for choice, forest in zip(self.choices, self.forests, strict=True):
            seen = torch.cat([seen, forest(entmax(choice) @ seen)])
        scores: Tensor = self.head(seen[x.shape[1] :].T)
        return scores


class NodeGAM(AdditiveNetwork):
    """NODE-GAM (Chang et al., 2022): a tree asks about one feature, or in NODE-GA²M about two in turn.

    A tree also sees trees of earlier layers that have chosen the same features, in proportion to their agreement. The
    choices start soft, and their temperature falls. After the share ``cooling`` of the training they are final, and the
    network is exactly a sum of terms. Before, the terms are those of the features that each tree prefers.
    """

    turns: Tensor

    def __init__(
        self,
        n_features: int,
        n_outputs: int,
        *,
        has_pairs: bool = False,
        n_layers: int = 3,
        n_trees: int = 128,
        depth: int = 4,
        dropout: float = 0.1,
        cooling: float = 0.4,
    ) -> None:
        super().__init__()
        self.n_features, self.n_trees, self.cooling = n_features, n_trees, cooling
        n_asked = 2 if has_pairs else 1
        self.choices = nn.Parameter(torch.rand(n_layers, n_asked, n_trees, n_features))
        self.forests = nn.ModuleList([Forest(n_trees, depth) for _ in range(n_layers)])
        self.register_buffer("turns", torch.arange(depth) % n_asked)
        self.temperature, self.is_hard = 1.0, False
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Parameter(torch.randn(n_layers * n_trees, n_outputs) * (n_layers * n_trees) ** -0.5)
        self.intercept = nn.Parameter(torch.zeros(n_outputs))

    @property
    def keys(self) -> tuple[tuple[int, ...], ...]:  # type: ignore[override]  # here they are learned
        """The features and the pairs that some tree has chosen."""
        return tuple(sorted(set(self._key_of_trees()), key=lambda key: (len(key), key)))

    def forward(self, x: Tensor) -> Tensor:
        kept: Tensor = self.dropout(self._trees(x))
        return kept @ self.head + self.intercept

    def terms(self, x: Tensor) -> Tensor:
        keys, trees = self.keys, self._trees(x)
        place = torch.tensor([keys.index(key) for key in self._key_of_trees()], device=x.device)
        found = x.new_zeros(len(x), len(keys), self.head.shape[1])
        return found.index_add(1, place, trees[:, :, None] * self.head)

    def settle(self, progress: float) -> bool:
        """Lower the temperature of the choices, and make them final after a share of the training."""
        share = min(1.0, progress / self.cooling)
        self.temperature, self.is_hard = COLDEST**share, share == 1.0
        return self.is_hard

    def _trees(self, x: Tensor) -> Tensor:
        """Return the answers of all trees (row, tree), layer by layer."""
        shares = self._shares()  # (layer, asked, tree, feature)
        answers: list[Tensor] = []
        for i, forest in enumerate(self.forests):
            asked = (shares[i] @ x.T).transpose(0, 1)[:, self.turns]  # (tree, level, row)
            if answers:
                before = shares[:i].transpose(0, 1).flatten(1, 2)  # (asked, tree before, feature)
                agreement = _agreement(shares[i], before)
                agreement = agreement / agreement.sum(dim=1, keepdim=True).clamp(min=1)
                asked = asked + (agreement @ torch.cat(answers))[:, None]
            answers.append(forest(asked))
        return torch.cat(answers).T

    def _shares(self) -> Tensor:
        if self.is_hard:
            return nn.functional.one_hot(self.choices.argmax(dim=-1), self.n_features).to(self.choices.dtype)
        return entmax(self.choices / self.temperature)

    def _key_of_trees(self) -> list[tuple[int, ...]]:
        chosen = self.choices.argmax(dim=-1).transpose(1, 2).flatten(0, 1)
        return [tuple(sorted(set(features))) for features in chosen.tolist()]


class Forest(nn.Module):
    """Trees with thresholds and leaves of their own: the values asked about (tree, level, row) → (tree, row)."""

    def __init__(self, n_trees: int, depth: int) -> None:
        super().__init__()
        self.thresholds = nn.Parameter(torch.randn(n_trees, depth, 1))
        self.sharpness = nn.Parameter(torch.empty(n_trees, depth, 1).uniform_(*SHARPNESS))
        self.leaves = nn.Parameter(torch.randn(n_trees, 2**depth, 1))

    def forward(self, asked: Tensor) -> Tensor:
        above = entmoid((asked - self.thresholds) * self.sharpness.exp())
        values: Tensor = self.leaves
        for level in range(asked.shape[1]):  # halves the leaves: rows below, rows above
            below_half, above_half = values.chunk(2, dim=1)
            values = below_half + above[:, level, None] * (above_half - below_half)
        return values[:, 0]


def _agreement(own: Tensor, others: Tensor) -> Tensor:
    """Return how far trees (asked, tree, feature) choose the same features as others, (tree, other); 1 if equal."""
    if len(own) == 1:
        return own[0] @ others[0].T
    straight = (own[0] @ others[0].T) * (own[1] @ others[1].T)
    crossed = (own[0] @ others[1].T) * (own[1] @ others[0].T)
    return (straight + crossed).clamp(max=1)
