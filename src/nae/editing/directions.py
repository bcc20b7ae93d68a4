"""A direction: a higher value never lowers the score, or never raises it, whatever the other features are.

Two projections make a model keep it; docs/guarantees.md proves that they do.

* *Alone.* The feature gates nothing, and each of its experts becomes isotonic.
* *Together.* The feature still changes the weights of some features. For each of them, experts get one order at every
  value, and the differences of neighbouring gate terms become isotonic: a higher value moves weight to higher experts
  only.

Whatever the gate of a feature loses goes into its experts, so that its contribution in the mean context stays.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from nae._typing import Array, IntArray
from nae.editing.isolating import mean_contribution, ungated
from nae.editing.ordering import are_apart, expert_order, in_order, pooled
from nae.editing.part import Part
from nae.tables.gates import GateTables
from nae.tables.isotonic import isotonic
from nae.tables.model import TableModel

__all__ = ["DIRECTIONS", "can_interact", "monotone_alone", "monotone_together"]

DIRECTIONS = {"increasing": 1, "+": 1, 1: 1, "decreasing": -1, "-": -1, -1: -1}
_MOST_TERMS = 20_000_000  # numbers of a gate that is written out for every logit


def monotone_alone(part: Part, *, sign: int) -> Part:
    """Return the feature in a model in which it gates nothing and its experts never fall, or never rise."""
    return _with_monotone_experts(ungated(part), sign)


def monotone_together(part: Part, *, sign: int, targets: Collection[int] | None = None) -> Part:
    """Return the feature in a model in which it still changes the effects of others, always in one direction.

    ``targets`` are the features that it still gates; if None, all that it gates now.
    """
    found = replace(part, model=_written_out(part.model))
    before, gated = mean_contribution(found.model, part.weight), _gated(found)
    kept = {one: expert_order(_experts(found, one)) for one in gated if targets is None or one in targets}
    for target in gated:
        found = _ordered(found, target, kept[target], sign) if target in kept else _cut(found, target)
    moved = before - mean_contribution(found.model, part.weight)
    for target in gated:
        found = _shifted(found, target, moved)
    found = _with_monotone_experts(found, sign)
    if part.at in kept:  # rounding may have exchanged experts
        found = found.with_experts(part.slots, in_order(found.experts(part.slots), kept[part.at]))
    return found


def can_interact(model: TableModel) -> bool:
    """Return whether a feature can keep a direction and still change how others count, in tables of moderate size."""
    size = model.schema.n_slots * model.n_experts * model.n_features * model.n_members
    return model.n_experts > 1 and model.gate.sums_features and model.gate.is_additive and size <= _MOST_TERMS


def _with_monotone_experts(part: Part, sign: int) -> Part:
    """Return the feature with experts, and clamps, that never fall from knot to knot (``sign`` 1), or never rise."""
    slots = part.knots
    weight = part.weight[slots][::sign]

    def turned(table: Array) -> Array:
        return isotonic(table[::sign], weight)[::sign]

    return part.with_experts(slots, turned(part.experts(slots))).with_clamps(slots, turned)


def _written_out(model: TableModel) -> TableModel:
    """Return the model with a gate that has a term for every logit, in place of one that multiplies."""
    gate = model.gate
    if gate.mix is None or gate.mix_bias is None:
        return model
    mix, dtype = gate.mix.astype(np.float64), gate.terms.dtype
    terms = (gate.terms.transpose(2, 0, 1).astype(np.float64) @ mix).transpose(1, 2, 0)
    bias = np.einsum("hm,mhl->lm", gate.bias.astype(np.float64), mix) + gate.mix_bias
    return replace(model, gate=GateTables("additive", terms.astype(dtype), bias.astype(dtype)), kernel=None)


def _gated(part: Part) -> list[int]:
    """Return the features whose weights depend on this one; their logits have a term each."""
    terms = _by_target(part)
    terms = terms - terms[:, :1]
    return np.flatnonzero(np.ptp(terms, axis=0).any(axis=(0, 2))).tolist()


def _by_target(part: Part) -> Array:
    """Return the gate terms of the feature, (n, K, F, M)."""
    model = part.model
    return part.terms(part.slots).reshape(-1, model.n_experts, model.n_features, model.n_members)


def _experts(part: Part, target: int) -> Array:
    return part.experts(part.model.schema.slots(target))


def _ordered(part: Part, target: int, order: IntArray, sign: int) -> Part:
    """Return the feature in a model whose target has experts in an order, and gets gate terms that keep a direction."""
    slots, knots = part.model.schema.slots(target), part.knots
    experts = pooled(_experts(part, target), order)
    found = part.with_experts(slots, experts)
    terms = _by_target(part)
    own = terms[: knots.stop - knots.start, :, target]
    steps = np.diff(np.take_along_axis(own, order[None], axis=1), axis=1)[::sign]
    steps = isotonic(steps, part.weight[knots][::sign])[::sign] * are_apart(experts, order)
    level = (own - _sums(steps)).mean(axis=1, keepdims=True)
    unit = _grid(np.abs(_sums(np.abs(steps))).max() + np.abs(level).max(), part.model.gate.terms.dtype)
    kept = _sums(np.rint(steps / unit) * unit) + np.rint(level / unit) * unit
    np.put_along_axis(own, np.broadcast_to(order[None], own.shape), kept, axis=1)
    return found.with_terms(part.slots, terms.reshape(len(terms), -1, terms.shape[-1]))


def _cut(part: Part, target: int) -> Part:
    """Return the feature in a model in which it does not gate a target."""
    terms, weight = _by_target(part), part.weight[part.slots]
    terms[:, :, target] = np.tensordot(weight / weight.sum(), terms[:, :, target], axes=1)
    return part.with_terms(part.slots, terms.reshape(len(terms), -1, terms.shape[-1]))


def _sums(steps: Array) -> Array:
    """Return the sums of steps along the experts, from zero: (n, K - 1, M) -> (n, K, M)."""
    return np.concatenate([np.zeros_like(steps[:, :1]), np.cumsum(steps, axis=1)], axis=1)


def _grid(size: float, dtype: "np.dtype[Any]") -> float:
    """Return a power of two of which numbers up to a size are exact multiples: their sums are not rounded."""
    exponent = np.frexp(max(size, 1e-300))[1]
    return float(np.ldexp(1.0, int(exponent) - np.finfo(dtype).nmant + 2))


def _shifted(part: Part, target: int, moved: Array) -> Part:
    """Return the feature in a model whose target has experts shifted by what its contribution lost in the mean."""
    slots = part.model.schema.slots(target)
    return part.with_experts(slots, _experts(part, target) + moved[slots][:, None])
