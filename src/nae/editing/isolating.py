"""A feature that changes the contribution of no other one: its gate terms become constant.

What its own gate made of its value goes into its experts: each is shifted, slot by slot, so that the contribution in
the mean context stays as it was. An additive gate keeps what the feature does to its own weights.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from nae._typing import Array
from nae.editing.part import Part
from nae.explanation.reference import MeanGate, mean_terms
from nae.tables.model import TableModel

__all__ = ["isolated", "mean_contribution", "ungated"]


def isolated(part: Part) -> Part:
    """Return the feature in a model in which it gates no other feature."""
    model = part.model
    if model.n_experts == 1 or not model.gate.sums_features:
        return part
    if model.gate.mix is not None:
        return ungated(part)
    terms = part.terms(part.slots)
    of_others = np.arange(terms.shape[1]) % model.n_features != part.at  # ordered (expert, feature)
    terms[:, of_others] = _mean(part, terms)[of_others]
    return part.with_terms(part.slots, terms)


def ungated(part: Part) -> Part:
    """Return the feature in a model in which it gates no feature, itself neither."""
    if part.model.n_experts == 1:
        return part
    terms = part.terms(part.slots)
    found = part.with_terms(part.slots, np.broadcast_to(_mean(part, terms), terms.shape))
    before, after = (mean_contribution(one.model, one.weight)[one.slots] for one in (part, found))
    return found.with_experts(part.slots, found.experts(part.slots) + (before - after)[:, None])


def mean_contribution(model: TableModel, weight: Array) -> Array:
    """Return the contribution at every slot while all other features have their mean gate terms, (T, O, M)."""
    gate: dict[str, Any] = {name: array.astype(np.float64) for name, array in model.gate.arrays.items()}
    exact = replace(
        model, experts=model.experts.astype(np.float64), gate=replace(model.gate, **gate), clamps=None, kernel=None
    )
    return MeanGate(exact, mean_terms(exact, weight)).slot_effects()


def _mean(part: Part, terms: Array) -> Array:
    """Return the mean of the terms over the slots, (width, M)."""
    weight = part.weight[part.slots]
    return np.asarray(np.tensordot(weight / weight.sum(), terms, axes=1))
