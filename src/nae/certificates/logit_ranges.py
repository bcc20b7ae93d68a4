"""The range of every logit of a feature, for any values of the other features: interval arithmetic over the tables.

The weights of the experts depend on differences of logits alone, so all logits are taken from their mean over the
experts. What the feature itself adds is linear between two neighbouring slots; of every other feature, the least and
the largest term of all its slots count.

Shapes: T slots, K experts, F features, H gate width, M members; n pairs of neighbouring slots of one feature.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nae._typing import Array, IntArray
from nae.certificates.proofs import Tables
from nae.tables.model import TableModel

__all__ = ["LogitRange", "Range", "logit_ranges"]

Range = tuple[Array, Array]  # the least and the largest values


class LogitRange(Protocol):
    """The range of the logits of one feature."""

    def between(self, feature: int, left: IntArray, right: IntArray) -> Range:
        """Return the range between slots of the feature, (n, K, M) each; ``left`` and ``right`` are (n,)."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the features of terms that are linear between slots, for every target that the sums belong to."""

    terms: Array  # (T, unit, M), of the feature that a slot belongs to; what it adds to its own sums
    rest: Range  # (target, unit, M), the bias and the terms of all other features

    def between(self, feature: int, left: IntArray, right: IntArray) -> Range:
        """Return the range of the sums of a feature between its slots, (n, unit, M) each."""
        one, other = self.terms[left], self.terms[right]
        return np.minimum(one, other) + self.rest[0][feature], np.maximum(one, other) + self.rest[1][feature]


@dataclass(frozen=True, eq=False)
class Hidden:
    """Logits behind the ReLU of a deep gate."""

    sums: Sums  # unit: H
    mix: Array  # (M, H, K, F), centred
    bias: Array  # (K, F, M), centred

    def active(self, feature: int, left: IntArray, right: IntArray) -> Range:
        """Return the range of the hidden units, (n, H, M) each."""
        least, most = self.sums.between(feature, left, right)
        return np.maximum(least, 0.0), np.maximum(most, 0.0)

    def between(self, feature: int, left: IntArray, right: IntArray) -> Range:
        least, most = multiplied(self.active(feature, left, right), self.mix[..., feature])
        return least + self.bias[:, feature], most + self.bias[:, feature]


@dataclass(frozen=True, eq=False)
class HiddenChange:
    """The change of the logits between two deep gates of the same width."""

    first: Hidden
    second: Hidden
    sums: Sums  # of the change, unit: H

    def between(self, feature: int, left: IntArray, right: IntArray) -> Range:
        place = (feature, left, right)
        old, new = self.first.active(*place), self.second.active(*place)
        least, most = self.sums.between(*place)
        moved = (  # a ReLU passes between none and all of a change
            np.maximum(np.minimum(least, 0.0), new[0] - old[1]),
            np.minimum(np.maximum(most, 0.0), new[1] - old[0]),
        )
        by_units = multiplied(moved, self.first.mix[..., feature])
        by_mix = multiplied(new, (self.second.mix - self.first.mix)[..., feature])
        shift = (self.second.bias - self.first.bias)[:, feature]
        return by_units[0] + by_mix[0] + shift, by_units[1] + by_mix[1] + shift


def multiplied(values: Range, matrix: Array) -> Range:
    """Return the range of the product with a matrix (M, H, K) of values in a range (n, H, M)."""
    (least, most), up, down = values, np.maximum(matrix, 0.0), np.minimum(matrix, 0.0)
    low, high = (part.transpose(2, 0, 1) for part in (least, most))  # (M, n, H)
    return (low @ up + high @ down).transpose(1, 2, 0), (high @ up + low @ down).transpose(1, 2, 0)


def logit_ranges(first: Tables, second: Tables) -> tuple[LogitRange, LogitRange, LogitRange | None]:
    """Return the ranges of the logits of two models over one schema, and of the change from the first to the second.

    Experts and members correspond by position. The change is None if they do not, or if only one gate has a ReLU.
    """
    models = [first.model, second.model]
    is_paired = len({(model.n_experts, model.n_members) for model in models}) == 1
    if all(model.gate.is_additive for model in models):
        return _linear(first, second, is_paired=is_paired)
    each = [
        _hidden(one) if not one.model.gate.is_additive else _linear(one, one, is_paired=False)[0]
        for one in (first, second)
    ]
    old, new = each
    if is_paired and isinstance(old, Hidden) and isinstance(new, Hidden):
        gates = [model.gate for model in models]
        if gates[0].terms.shape == gates[1].terms.shape:
            change = _sums(first, gates[1].terms.astype(np.float64) - gates[0].terms, gates[1].bias - gates[0].bias)
            return old, new, HiddenChange(old, new, change)
    return old, new, None


def _linear(first: Tables, second: Tables, *, is_paired: bool) -> tuple[Sums, Sums, Sums | None]:
    """Return the logits of two gates without ReLU, and their change."""
    one, other = first.model, second.model
    old, new = _started(one, _bias(one)), _started(other, _bias(other))
    moved = _started(one, _bias(other) - _bias(one)) if is_paired else None
    is_alike = is_paired and one.gate.kind == other.gate.kind and np.array_equal(_mix(one), _mix(other))
    for i, reached in enumerate(first.reachable):
        slots = np.arange(one.schema.slots(i).start, one.schema.slots(i).stop)
        place = (i, slots, reached - slots[0])
        terms = _logit_terms(one, slots, i)
        if is_alike and np.array_equal(one.gate.terms[slots], other.gate.terms[slots]):
            _add([old, new], terms, *place)
            continue
        others = _logit_terms(other, slots, i)
        _add([old], terms, *place)
        _add([new], others, *place)
        if moved is not None:
            _add([moved], others - terms, *place)
    return old, new, moved


def _started(model: TableModel, bias: Array) -> Sums:
    """Return the sums of a bias (K, F, M) alone."""
    own = np.zeros((model.schema.n_slots, model.n_experts, model.n_members))
    centred = _centred(bias, axis=0).transpose(1, 0, 2)
    return Sums(own, (centred.copy(), centred.copy()))


def _add(sums: list[Sums], terms: Array, feature: int, slots: IntArray, reached: IntArray) -> None:
    """Add the terms (n, K, F, M) of a feature, at its slots, to one or more sums."""
    terms = _centred(terms, axis=1)
    is_other = (np.arange(terms.shape[2]) != feature)[:, None, None]
    lowest, highest = (is_other * extreme(terms[reached], axis=0).transpose(1, 0, 2) for extreme in (np.min, np.max))
    for one in sums:
        one.terms[slots] = terms[:, :, feature]
        least, most = one.rest
        least += lowest
        most += highest


def _mix(model: TableModel) -> Array:
    return np.zeros(0) if model.gate.mix is None else model.gate.mix


def _logit_terms(model: TableModel, slots: IntArray, feature: int) -> Array:
    """Return what a feature adds to all logits at its slots, (n, K, F, M)."""
    gate, terms = model.gate, model.gate.terms[slots].astype(np.float64)
    shape = (len(slots), model.n_experts, model.n_features, model.n_members)
    if not gate.sums_features:
        out = np.zeros(shape)
        out[:, :, feature] = terms
        return out
    if gate.mix is None:
        return terms.reshape(shape)
    return (terms.transpose(2, 0, 1) @ gate.mix).transpose(1, 2, 0).reshape(shape)


def _bias(model: TableModel) -> Array:
    """Return the bias of the logits of a gate without ReLU, (K, F, M)."""
    gate, shape = model.gate, (model.n_experts, model.n_features, model.n_members)
    if gate.mix is None or gate.mix_bias is None:
        return gate.bias.reshape(shape)
    return np.asarray((np.einsum("hm,mhl->lm", gate.bias, gate.mix) + gate.mix_bias).reshape(shape))


def _hidden(tables: Tables) -> Hidden:
    model, gate = tables.model, tables.model.gate
    if gate.mix is None or gate.mix_bias is None:
        raise TypeError(f"A {gate.kind} gate has no matrix.")
    mix = gate.mix.reshape(model.n_members, -1, model.n_experts, model.n_features)
    bias = gate.mix_bias.reshape(model.n_experts, model.n_features, model.n_members)
    return Hidden(
        _sums(tables, gate.terms.astype(np.float64), gate.bias), _centred(mix, axis=2), _centred(bias, axis=0)
    )


def _sums(tables: Tables, terms: Array, bias: Array) -> Sums:
    """Return the sums of terms (T, H, M) that all targets share."""
    least, most = (np.stack([extreme(terms[own], axis=0) for own in tables.reachable]) for extreme in (np.min, np.max))
    return Sums(terms, (bias + _others(least), bias + _others(most)))


def _others(values: Array) -> Array:
    """Return for every feature the sum over all others; nothing is subtracted, so that zeros remain zeros."""
    before, after = np.cumsum(values, axis=0), np.cumsum(values[::-1], axis=0)[::-1]
    found = np.zeros_like(values)
    found[1:] += before[:-1]
    found[:-1] += after[1:]
    return found


def _centred(values: Array, *, axis: int) -> Array:
    """Return values minus their mean over the experts; equal values become exactly zero."""
    first = np.take(values, [0], axis=axis)
    moved = values - first
    return np.asarray(moved - moved.mean(axis=axis, keepdims=True))
