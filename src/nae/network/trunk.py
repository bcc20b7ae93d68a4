"""Trunks: for each feature and member, a small network from the input of a slot to hidden units."""

from collections.abc import Callable

import torch
import torch.nn.functional as fn
from torch import Tensor, nn

from nae.network.groups import Groups
from nae.network.tensors import uniform

__all__ = ["Block", "Bounds", "Trunk"]

Bounds = Callable[[int, int, int], tuple[float, float]]
"""From features, inputs and outputs of a block to the bounds between which its weights and biases are drawn."""


class Block(nn.Module):
    """A linear map, a norm with a scale and a shift per feature, and a ReLU; for all members and features at once."""

    weight: Tensor  # (M, F, in, out)
    bias: Tensor  # (M, F, 1, out)

    def __init__(
        self,
        n_members: int,
        n_features: int,
        in_dim: int,
        out_dim: int,
        *,
        norm: str,
        bounds: Bounds,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        shape = (n_members, n_features)
        bound, bias_bound = bounds(n_features, in_dim, out_dim)
        self.weight = uniform(*shape, in_dim, out_dim, bound=bound, generator=generator)
        self.bias = uniform(*shape, 1, out_dim, bound=bias_bound, generator=generator)
        self.scale = nn.Parameter(torch.ones(*shape, 1, out_dim))
        self.shift = nn.Parameter(torch.zeros(*shape, 1, out_dim))
        self.is_batch_norm = norm == "batch"
        if self.is_batch_norm:
            self.register_buffer("running_mean", torch.zeros(*shape, 1, out_dim))
            self.register_buffer("running_var", torch.ones(*shape, 1, out_dim))

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

    def __init__(
        self,
        n_members: int,
        n_features: int,
        in_dim: int,
        *,
        hidden_dim: int,
        n_blocks: int,
        norm: str,
        dropout: float,
        bounds: Bounds,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.blocks = nn.ModuleList(
            Block(
                n_members,
                n_features,
                in_dim if depth == 0 else hidden_dim,
                hidden_dim,
                norm=norm,
                bounds=bounds,
                generator=generator,
            )
            for depth in range(n_blocks)
        )

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
