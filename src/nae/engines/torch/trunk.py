"""Trunks: for each feature and member, a small network from the input of a slot to hidden units."""

from collections.abc import Mapping

import torch
import torch.nn.functional as fn
from torch import Tensor, nn

from nae._typing import AnyArray
from nae.engines.torch.groups import Groups
from nae.engines.torch.tensors import parameter
from nae.network import below

__all__ = ["Block", "Trunk"]


class Block(nn.Module):
    """A linear map, a norm with a scale and a shift per feature, and a ReLU; for all members and features at once."""

    weight: Tensor  # (M, F, in, out)
    bias: Tensor  # (M, F, 1, out)
    scale: Tensor
    shift: Tensor

    def __init__(self, arrays: Mapping[str, AnyArray], *, norm: str) -> None:
        super().__init__()
        for name in ("weight", "bias", "scale", "shift"):
            self.register_parameter(name, parameter(arrays[name]))
        self.is_batch_norm = norm == "batch"
        if self.is_batch_norm:
            self.register_buffer("running_mean", torch.tensor(arrays["running_mean"]))
            self.register_buffer("running_var", torch.tensor(arrays["running_var"]))

    def forward(self, hidden: Tensor) -> Tensor:
        """Return (M, F, N, out) for inputs (M, F, N, in), or (1, F, N, in) if all members have the same ones."""
        return self._apply_to(hidden, (self.weight, self.bias, self.scale, self.shift))

    def forward_groups(self, hidden: list[Tensor], groups: Groups) -> list[Tensor]:
        """Return the outputs of every group of features; the inputs may be only those columns that a group uses."""
        parts = zip(*(groups.split(each, 1) for each in (self.weight, self.bias, self.scale, self.shift)), strict=True)
        found = []
        for own, columns, (weight, *rest) in zip(hidden, groups.columns, parts, strict=True):
            cut = weight if own.shape[3] == weight.shape[2] else weight.index_select(2, columns)
            found.append(self._apply_to(own, (cut, *rest)))
        return found

    def _apply_to(self, hidden: Tensor, parameters: tuple[Tensor, ...]) -> Tensor:
        weight, bias, scale, shift = parameters
        n_members, n_features, in_dim, out_dim = weight.shape
        n_inputs = hidden.shape[2]
        flat = hidden.expand(n_members, -1, -1, -1).reshape(-1, n_inputs, in_dim)
        linear = torch.baddbmm(bias.flatten(0, 1), flat, weight.flatten(0, 1))
        linear = linear.view(n_members, n_features, n_inputs, out_dim)
        return torch.addcmul(shift, self._normalise(linear), scale).relu_()

    def _normalise(self, linear: Tensor) -> Tensor:
        if not self.is_batch_norm:
            return fn.layer_norm(linear, (linear.shape[-1],))
        if self.training:
            var, mean = torch.var_mean(linear, dim=2, keepdim=True, correction=0)
            with torch.no_grad():
                self.running_mean.lerp_(mean, 0.1)  # type: ignore[operator]
                self.running_var.lerp_(var, 0.1)  # type: ignore[operator]
        else:
            mean, var = self.running_mean, self.running_var  # type: ignore[assignment]
        return (linear - mean) * torch.rsqrt(var + 1e-5)


class Trunk(nn.Module):
    """Several blocks, one after another."""

    def __init__(self, arrays: Mapping[str, AnyArray], *, n_blocks: int, norm: str, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.blocks = nn.ModuleList(Block(below(f"blocks.{depth}.", arrays), norm=norm) for depth in range(n_blocks))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return hidden units: (F, N, in) -> (M, F, N, hidden)."""
        hidden = inputs.unsqueeze(0)
        for block in self.blocks:
            hidden = block(hidden)
            if self.dropout and self.training:
                hidden = fn.dropout(hidden, self.dropout)
        return hidden

    def forward_groups(self, inputs: Tensor, groups: Groups) -> list[Tensor]:
        """Return the hidden units of every group, (M, features, slots, hidden), on slots, where nothing is dropped."""
        hidden = groups.inputs(inputs)
        for block in self.blocks:
            hidden = block.forward_groups(hidden, groups)  # type: ignore[operator]
        return hidden
