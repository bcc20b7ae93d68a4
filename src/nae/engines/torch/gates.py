"""Gates in torch: from a row's summed terms to the logits of every feature's experts.

A gate has the weights that turn hidden units into terms, (F, hidden, width, M), a bias, and all that follows the sum.
"""

from collections.abc import Mapping
from typing import ClassVar

import torch
import torch.nn.functional as fn
from torch import Tensor, nn

from nae._typing import AnyArray
from nae.engines.torch.cells import RowCells
from nae.engines.torch.forms import TorchForms
from nae.engines.torch.interpolation import interpolate, interpolate_sum
from nae.engines.torch.tensors import parameter, project

__all__ = ["TORCH_GATES", "AdditiveGate", "DeepGate", "DiagonalGate", "LowRankGate", "TorchGate"]


class TorchGate(nn.Module):
    """What all gates have in common. A final class says what follows the sum of the terms."""

    weight: Tensor
    bias: Tensor
    sums_features: ClassVar[bool] = True
    """Whether the terms of all features are added up."""

    def __init__(self, arrays: Mapping[str, AnyArray], *, n_experts: int, forms: TorchForms | None = None) -> None:
        super().__init__()
        for name, array in arrays.items():
            self.register_parameter(name, parameter(array))
        self.n_experts, self.forms = n_experts, forms

    def on_slots(self, hidden: Tensor) -> Tensor:
        """Return the terms of hidden units: (M, F, S, hidden) -> (M, F, S, width)."""
        return project(hidden, self.weight)

    def at_cells(self, terms: Tensor, cells: RowCells) -> Tensor:
        """Return the summed terms of rows from those on slots: (M, F * S, width) -> (M, B, width)."""
        return interpolate_sum(terms, cells)

    def at_rows(self, hidden: Tensor) -> Tensor:
        """Return the summed terms of rows from their hidden units: (M, F, B, hidden) -> (M, B, width)."""
        # (M, B, F * hidden) @ (M, F * hidden, width): the features are summed by the product itself.
        units = hidden.permute(0, 2, 1, 3).flatten(2)
        return torch.bmm(units, self.weight.permute(3, 0, 1, 2).flatten(1, 2))

    def logits(self, hidden: Tensor, members: slice = slice(None)) -> tuple[Tensor, Tensor]:
        """Return logits (M, B, K * F) of summed terms (M, B, width), and a bias (M, 1, K * F) to be added.

        ``members`` are those that ``hidden`` belongs to.
        """
        return hidden, self._bias(members)

    def _bias(self, members: slice) -> Tensor:
        return self.bias[:, members].T.unsqueeze(1)


class AdditiveGate(TorchGate):
    """Every feature adds terms to every logit: Eq. (3) of the paper."""


class DiagonalGate(TorchGate):
    """The terms of a feature go to its own logits alone (NAE-D)."""

    sums_features = False

    def at_cells(self, terms: Tensor, cells: RowCells) -> Tensor:
        return self._own(interpolate(terms.permute(1, 2, 0).flatten(1), cells))

    def at_rows(self, hidden: Tensor) -> Tensor:
        return self._own(self.on_slots(hidden).permute(2, 1, 3, 0).flatten(2))

    def _own(self, terms: Tensor) -> Tensor:
        """Return the terms as logits: (B, F, K * M) -> (M, B, K * F)."""
        own: Tensor = terms.unflatten(-1, (self.n_experts, -1)).permute(3, 0, 2, 1).flatten(2)
        return own


class LowRankGate(TorchGate):
    """The terms are summed as ``rank`` numbers, and a linear map gives the logits: weights grow with the features.

    The weights of an additive gate grow with the square of the features.
    """

    mix: Tensor
    mix_bias: Tensor
    is_deep: ClassVar[bool] = False

    def logits(self, hidden: Tensor, members: slice = slice(None)) -> tuple[Tensor, Tensor]:
        total = hidden + self._bias(members)
        mix = self.mix if self.forms is None else self.forms.shape_mix(self.mix, n_experts=self.n_experts)
        return torch.bmm(fn.relu(total) if self.is_deep else total, mix[members]), self.mix_bias[members]


class DeepGate(LowRankGate):
    """A low-rank gate with a ReLU before the map: for interactions of many features."""

    is_deep = True


TORCH_GATES: dict[str, type[TorchGate]] = {
    "additive": AdditiveGate,
    "low-rank": LowRankGate,
    "deep": DeepGate,
    "diagonal": DiagonalGate,
}
