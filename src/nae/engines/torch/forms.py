"""Forms in torch: raw experts and gate terms on slots become what a fit promises (:mod:`nae.network.forms`)."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from nae.network import Forms

__all__ = ["TorchForms"]


Change = Callable[[Tensor, Tensor], Tensor]
"""From the values of some features, and the numbers of these, to other values."""


class TorchForms(nn.Module):
    """The forms of all features as tensors, so that they move to the device of the network."""

    way: Tensor  # (F, 1), 1 for curves that rise, -1 for those that fall
    is_ordered: Tensor  # (F, S)
    anchor: Tensor  # (F,), the slot that stays where it is
    softness: Tensor  # (F, 1)
    caps: Tensor  # (F, O)
    allows: Tensor  # (M, F, F)
    is_straight: Tensor  # (F,)
    widths: Tensor  # (F, S - 1), between ordered slots
    # The numbers of the features that each form is for.
    rising: Tensor
    leading: Tensor
    single: Tensor
    capped: Tensor
    ordered: Tensor

    def __init__(self, forms: Forms, *, dtype: np.dtype) -> None:
        super().__init__()
        self.forms = forms
        n_features, n_slots = forms.places.shape
        numbers = {
            "way": forms.rises[:, None],
            "softness": np.array([[forms.softness(i)] for i in range(n_features)]),
            "caps": forms.caps,
            "allows": forms.allows,
            "is_straight": forms.bends == 0,
            "widths": np.diff(forms.places, axis=1),
        }
        chosen = {
            "rising": (forms.rises != 0) & (forms.bends == 0),
            "leading": forms.leads,
            "single": forms.is_single,
            "capped": forms.has_caps,
            "ordered": forms.is_sorted,
        }
        buffers = {name: array.astype(dtype) for name, array in numbers.items()}
        buffers |= {name: np.flatnonzero(mask) for name, mask in chosen.items()}
        buffers |= {"is_ordered": np.arange(n_slots) < forms.n_ordered[:, None], "anchor": forms.n_ordered // 2}
        for name, array in buffers.items():
            self.register_buffer(name, torch.tensor(array), persistent=False)

    def shape_experts(self, experts: Tensor) -> Tensor:
        """Return experts (F, S, K, O, M) in their forms."""
        experts = _replace(experts, self.rising, self._rise)
        for feature in np.flatnonzero(self.forms.bends).tolist():
            bent = self._bend(experts[feature], feature)
            experts = torch.cat([experts[:feature], bent.unsqueeze(0), experts[feature + 1 :]])
        experts = _replace(experts, self.single, lambda own, _: own.mean(dim=2, keepdim=True).expand_as(own))
        experts = _replace(experts, self.capped, self._cap)
        if self.forms.sorts_outputs:
            experts = experts.sort(dim=3).values
        return _replace(experts, self.ordered, lambda own, _: own.sort(dim=2).values)

    def shape_terms(self, terms: Tensor, *, n_experts: int) -> Tensor:
        """Return gate terms (M, F, S, W) in their forms."""
        if len(self.leading):
            change = self._feed if self.forms.n_leading else partial(self._lead, n_experts=n_experts)
            terms = _replace(terms.transpose(0, 1), self.leading, change).transpose(0, 1)
        if not self.forms.has_mask:
            return terms
        allowed = self.allows.unsqueeze(2)  # (M or 1, F, 1, target)
        if self.forms.is_whole:
            return terms * allowed[..., :1]
        by_expert = terms.unflatten(-1, (n_experts, -1))
        if by_expert.shape[-1] == 1:  # a diagonal gate: terms are a feature's own
            allowed = self.allows.diagonal(dim1=1, dim2=2)[:, :, None, None]
        masked: Tensor = (by_expert * allowed.unsqueeze(3)).flatten(-2)
        return masked

    def shape_mix(self, mix: Tensor, *, n_experts: int) -> Tensor:
        """Return the matrix from terms to logits, (M, W, K * F), whose first rows ascend with the experts."""
        n = self.forms.n_leading
        if not n:
            return mix
        by_expert = mix.unflatten(-1, (n_experts, -1))
        first = by_expert[:, :n]
        softness = first.new_tensor(self.forms.mix_softness(n_experts))
        steps = _positive(first.diff(dim=2), softness)
        first = torch.cat([first[:, :, :1], first[:, :, :1] + steps.cumsum(dim=2)], dim=2) * self.is_straight
        return torch.cat([first, by_expert[:, n:]], dim=1).flatten(-2)

    def _feed(self, terms: Tensor, at: Tensor) -> Tensor:
        n = self.forms.n_leading
        by_slot = terms.movedim(1, 2)  # (f, S, M, W)
        fed = torch.cat([self._rise(by_slot[..., :n], at), torch.zeros_like(by_slot[..., n:])], dim=-1)
        return fed.movedim(2, 1)

    def _rise(self, values: Tensor, at: Tensor) -> Tensor:
        """Return values (f, S, ...) whose steps between ordered slots have the sign that the features ask for."""
        ones = [1] * (values.dim() - 2)
        way, softness = (each[at].view(-1, 1, *ones) for each in (self.way, self.softness))
        steps = way * _positive(way * values.diff(dim=1), softness)
        sums = _sums(steps, dim=1)
        each = torch.arange(len(at), device=values.device)
        risen = sums + (values[each, self.anchor[at]] - sums[each, self.anchor[at]]).unsqueeze(1)
        return torch.where(self.is_ordered[at].view(*risen.shape[:2], *ones), risen, values)

    def _bend(self, values: Tensor, feature: int) -> Tensor:
        """Return the curves (S, ...) of one feature, whose slopes grow or shrink; see :meth:`Forms._bend`."""
        forms, n = self.forms, int(self.forms.n_ordered[feature])
        if n < 2:
            return values
        sign, rise = int(forms.bends[feature]), int(forms.rises[feature])
        raw, widths = values[:n].detach().double().flatten(1), self.widths[feature, : n - 1, None].double()
        slopes = sign * _ascending(sign * raw.diff(dim=0), widths)
        if rise:
            slopes = rise * (rise * slopes).clamp(min=0)
        bent = _sums(slopes * widths, dim=0)
        change = (bent + (raw.mean(dim=0) - bent.mean(dim=0)) - raw).view_as(values[:n]).to(values.dtype)
        return torch.cat([values[:n] + change, values[n:]])

    def _cap(self, values: Tensor, at: Tensor) -> Tensor:
        cap = self.caps[at][:, None, None, :, None]
        share = values / cap.clamp(min=1.0)
        capped: Tensor = cap * share * torch.rsqrt(1 + share**2)
        return capped

    def _lead(self, terms: Tensor, at: Tensor, n_experts: int) -> Tensor:
        by_expert = terms.unflatten(-1, (n_experts, -1)).movedim(1, 2)  # (f, S, M, K, target)
        apart = by_expert.diff(dim=3, prepend=torch.zeros_like(by_expert[:, :, :, :1]))
        return self._rise(apart, at).cumsum(dim=3).movedim(2, 1).flatten(-2)


def _positive(values: Tensor, softness: Tensor) -> Tensor:
    found: Tensor = (values + (values**2 + softness**2).sqrt()) / 2
    return found


_NARROWEST = 1e-6  # differences of sums of squares tell no narrower steps apart from those of the whole range


def _ascending(steps: Tensor, widths: Tensor) -> Tensor:
    """Return slopes (n, columns) that ascend, such that slopes times widths are as near to the steps as they can be.

    The slope at i is the largest, over a up to i, of the smallest, over b from i on, of the slopes that fit a to b.
    """
    n, widths = len(steps), widths.clamp(min=_NARROWEST)
    products, squares = _sums(steps * widths, dim=0), _sums(widths**2, dim=0)
    fitted = (products[None, 1:] - products[:-1, None]) / (squares[None, 1:] - squares[:-1, None])  # (a, b, columns)
    is_before = torch.ones(n, n, dtype=torch.bool, device=steps.device).tril(-1)[:, :, None]
    least = fitted.masked_fill(is_before, torch.inf).flip(1).cummin(dim=1).values.flip(1)
    return least.masked_fill(is_before, -torch.inf).cummax(dim=0).values.diagonal().T


def _sums(steps: Tensor, *, dim: int) -> Tensor:
    """Return the running sums of steps, from zero on."""
    return torch.cat([torch.zeros_like(steps.narrow(dim, 0, 1)), steps.cumsum(dim=dim)], dim=dim)


def _replace(values: Tensor, at: Tensor, change: Change) -> Tensor:
    """Return values with those of some features changed."""
    if len(at) == 0:
        return values
    return change(values, at) if len(at) == len(values) else values.index_copy(0, at, change(values[at], at))
