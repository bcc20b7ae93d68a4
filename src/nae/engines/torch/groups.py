"""Groups of features with about as many slots, which are evaluated together.

A boolean has a few slots and a number has a hundred. A boolean that is padded to a hundred slots is mostly wasted work.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nae._typing import Array, IntArray

__all__ = ["Groups", "group_features"]

_SIZES = (8, 32)  # features of at most so many slots share a group; the rest are another
_WORTH_IT = 0.7  # groups must leave at most this much of the work


@dataclass(frozen=True)
class Groups:
    """The groups of features, and the part of the padded inputs that each group uses."""

    order: Tensor  # (F,), the features, group after group
    sizes: tuple[int, ...]  # features of every group
    n_slots: tuple[int, ...]
    columns: tuple[Tensor, ...]  # positions of inputs that are not zero everywhere

    def split(self, tensor: Tensor, dim: int) -> tuple[Tensor, ...]:
        """Return a tensor's part for each group. This is a single gather, and so is its gradient."""
        parts: tuple[Tensor, ...] = tensor.index_select(dim, self.order).split(self.sizes, dim)
        return parts

    def inputs(self, padded: Tensor) -> list[Tensor]:
        """(F, S, width) -> (1, features, slots, columns) of every group."""
        parts = zip(self.split(padded, 0), self.n_slots, self.columns, strict=True)
        return [own[:, :n_slots].index_select(2, columns).unsqueeze(0) for own, n_slots, columns in parts]

    def join(self, parts: list[Tensor], n_slots: int) -> Tensor:
        """Put the groups' parts (M, features, slots, C) together, padded with zeros: (M, F, S, C)."""
        joined: Tensor = _Join.apply(self, n_slots, *parts)  # type: ignore[no-untyped-call]
        return joined

    @property
    def features(self) -> tuple[Tensor, ...]:
        """The features of every group."""
        found: tuple[Tensor, ...] = self.order.split(self.sizes)
        return found


class _Join(torch.autograd.Function):
    """Put parts together. Assigning slices would do, but its gradient copies the whole tensor for every slice."""

    @staticmethod
    def forward(ctx: Any, groups: Groups, n_slots: int, *parts: Tensor) -> Tensor:
        ctx.groups = groups
        joined = parts[0].new_zeros(parts[0].shape[0], len(groups.order), n_slots, parts[0].shape[3])
        for features, part in zip(groups.features, parts, strict=True):
            joined[:, features, : part.shape[2]] = part
        return joined

    @staticmethod
    def backward(ctx: Any, d_joined: Tensor) -> tuple[Tensor | None, ...]:
        slots = zip(ctx.groups.features, ctx.groups.n_slots, strict=True)
        return None, None, *(d_joined[:, :, :most].index_select(1, features) for features, most in slots)


def group_features(inputs: Array) -> Groups | None:
    """Return the groups of features for inputs (feature, slot, width), or None if groups would save little.

    A group leaves out the last slots of its features if their inputs are zero. Nothing trains these: they are padding,
    *unseen*, or *missing* in a feature without missing values.
    """
    is_used = np.abs(inputs).max(axis=2) > 0
    last = is_used.shape[1] - is_used[:, ::-1].argmax(axis=1)
    counts = np.where(is_used.any(axis=1), last, 1)
    sizes = np.searchsorted(_SIZES, counts)
    members = [np.flatnonzero(sizes == size) for size in np.unique(sizes)]
    n_slots = tuple(int(counts[own].max()) for own in members)
    columns = tuple(_columns(inputs, own, most) for own, most in zip(members, n_slots, strict=True))
    work = sum(len(own) * most * len(used) for own, most, used in zip(members, n_slots, columns, strict=True))
    if work > _WORTH_IT * inputs.size:
        return None
    order = torch.as_tensor(np.concatenate(members))
    return Groups(order, tuple(len(own) for own in members), n_slots, columns)


def _columns(inputs: Array, features: IntArray, n_slots: int) -> Tensor:
    found = np.flatnonzero(np.abs(inputs[features, :n_slots]).max(axis=(0, 1)) > 0)
    return torch.as_tensor(found if len(found) else np.zeros(1, dtype=np.int64))  # of constants, any column
