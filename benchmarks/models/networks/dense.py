"""Dense networks: one network of all features, and many networks of equal shape that are evaluated together."""

from itertools import pairwise

import torch
from torch import Tensor, nn

from benchmarks.models.networks.base import Network

__all__ = ["MLP", "SideBySide"]


class MLP(Network):
    """A plain multi-layer perceptron."""

    def __init__(
        self, n_features: int, n_outputs: int, *, hidden: tuple[int, ...] = (256, 256, 128), dropout: float = 0.1
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for width, next_width in pairwise((n_features, *hidden)):
            layers += [nn.Linear(width, next_width), nn.ReLU(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers, nn.Linear(hidden[-1], n_outputs))

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.layers(x)
        return scores


class SideBySide(nn.Module):
    """One perceptron per term, evaluated with one matrix product per layer."""

    def __init__(self, n_terms: int, widths: tuple[int, ...], *, dropout: float) -> None:
        super().__init__()
        shapes = list(pairwise(widths))
        self.weights = nn.ParameterList([_uniform(n_terms, *shape, fan_in=shape[0]) for shape in shapes])
        self.biases = nn.ParameterList([_uniform(n_terms, 1, shape[1], fan_in=shape[0]) for shape in shapes])
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        """Return (row, term, last width) from (row, term, first width)."""
        values = x.transpose(0, 1)
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if i:
                values = nn.functional.dropout(values.relu(), self.dropout, self.training)
            values = torch.baddbmm(bias, values, weight)
        return values.transpose(0, 1)


def _uniform(*shape: int, fan_in: int) -> nn.Parameter:
    """Return weights with the initialisation of ``nn.Linear``."""
    bound = fan_in**-0.5
    return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))
