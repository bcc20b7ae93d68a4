"""Layers of soft oblivious trees: NODE, and its additive kin NODE-GAM and NODE-GA²M.

An oblivious tree asks the same question of every row at a level: is a chosen value above a threshold. Its answers are
shares between 0 and 1, so that a leaf's weight is a product of shares. Inside, rows are the last axis: there are many
of them, which is what makes arithmetic on small trees fast.
"""

import torch
from torch import Tensor, nn

from benchmarks.models.networks.base import AdditiveNetwork, Network
from benchmarks.models.networks.sparse import entmax, entmoid

__all__ = ["NODE", "Forest", "NodeGAM"]

SHARPNESS = (1.0, 4.0)
"""Logarithms, from and to, of what the distance to a threshold is multiplied with at the start: from ramps nearly as
wide as the spread of a feature, which is 1, to steps."""
COLDEST = 0.02
"""Temperature of the choice of features before it is made for good."""


class NODE(Network):
    """Neural oblivious decision ensembles (Popov et al., 2020): a layer sees the features and all trees before it."""

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
    """NODE-GAM (Chang et al., 2022): a tree asks about one feature; in NODE-GA²M, about two in turn.

    A tree sees those of the layers before that have chosen the same features, in proportion to how much they agree. The
    choices start soft and get colder; after ``cooling`` of the training they are made for good, and from then on the
    network is a sum of terms exactly. Before, the terms are those of the features that each tree prefers.
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
    def keys(self) -> tuple[tuple[int, ...], ...]:  # type: ignore[override]  # here they are learnt
        """The features that some tree has chosen, and the pairs."""
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
        """Cool the choices, and make them for good after a share of the training."""
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
        for level in range(asked.shape[1]):  # each fold halves the leaves: a half for rows below, one for rows above
            below_half, above_half = values.chunk(2, dim=1)
            values = below_half + above[:, level, None] * (above_half - below_half)
        return values[:, 0]


def _agreement(own: Tensor, others: Tensor) -> Tensor:
    """Return how much trees (asked, tree, feature) choose what others do (tree, other), 1 for the same features."""
    if len(own) == 1:
        return own[0] @ others[0].T
    straight = (own[0] @ others[0].T) * (own[1] @ others[1].T)
    crossed = (own[0] @ others[1].T) * (own[1] @ others[0].T)
    return (straight + crossed).clamp(max=1)
