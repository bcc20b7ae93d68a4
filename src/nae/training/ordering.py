"""Quantiles that cannot cross: what the tables allow, and the intercepts that keep to it.

Outputs share the gate, so where every expert of one output is at least that of another, so is every mixture of them.
Neighbouring outputs are therefore in order for any input if the difference of their intercepts, plus the least
difference of each feature's experts over slots and experts, averaged over the members, is not negative. Clamps keep
this where their ends are that far apart, too.
"""

from dataclasses import replace

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding import Schema
from nae.tables.model import TableModel

__all__ = ["in_order", "least_apart", "moved_apart", "ordered_start", "pool_violators"]

_ROUNDING = 16  # units in the last place of all contributions: what an evaluator in that precision may err by


def in_order(experts: Array) -> Array:
    """Return experts (T, K, O, M) with the outputs of each in ascending order."""
    return np.sort(experts, axis=2)


def ordered_start(start: Array, n_features: int) -> Array:
    """Return a start, (F * S + 1, O, M), whose outputs are in order: every effect, and the intercept in the last row.

    Effects of outputs come as near to their mean over the outputs as it takes. Then what an effect lies too low by is
    added to all its slots, and taken off the intercept.
    """
    intercept = np.sort(start[-1], axis=0)
    effects = start[:-1].reshape(n_features, -1, *start.shape[1:])  # (F, S, O, M)
    mean = effects.mean(axis=2, keepdims=True)
    least = _lacks(effects).sum(axis=0)  # (O - 1, M)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(least < 0, np.diff(intercept, axis=0) / -least, np.inf).min(axis=0)  # (M,)
    effects = mean + np.minimum(share, 1.0) * (effects - mean)
    lacks = _lacks(effects)
    lifted = -np.cumsum(np.concatenate([np.zeros_like(lacks[:, :1]), lacks], axis=1), axis=1)  # (F, O, M)
    effects = np.sort(effects + lifted[:, None], axis=2)  # rounding alone is sorted
    intercept = np.sort(intercept - lifted.sum(axis=0), axis=0)
    return np.concatenate([effects.reshape(start[:-1].shape), intercept[None]])


def _lacks(effects: Array) -> Array:
    """Return by how much each output is below the one before it, as a number up to 0, (F, O - 1, M)."""
    return np.asarray(np.minimum(np.diff(effects, axis=2).min(axis=1), 0.0))


def least_apart(model: TableModel) -> Array:
    """Return by how much each output is above the one before it, at least and for any input, (output - 1,).

    Rounding is taken off: what is left is kept by evaluators in single precision, too.
    """
    apart = np.diff(model.experts.astype(np.float64), axis=2)  # (T, K, O - 1, M)
    by_feature = np.stack([part.min(axis=(0, 1)).mean(axis=-1) for part in _by_feature(apart, model.schema)])
    if model.clamps is not None:
        for ends in (model.clamps.lower, model.clamps.upper):
            of_ends = [part.min(axis=0) for part in _by_feature(np.diff(ends.astype(np.float64), axis=1), model.schema)]
            by_feature = np.minimum(by_feature, of_ends)
    size = sum(float(np.abs(part).max()) for part in _by_feature(model.experts, model.schema))
    rounding = _ROUNDING * float(np.finfo(model.experts.dtype).eps) * size
    return np.asarray(np.diff(model.intercept) + by_feature.sum(axis=0) - rounding)


def moved_apart(model: TableModel) -> TableModel:
    """Return the model with its intercepts moved as little as it takes for its outputs never to cross."""
    apart = least_apart(model)
    wanted = np.cumsum(np.append(0.0, apart))
    block: IntArray = np.arange(len(wanted))
    while True:
        mean = np.bincount(block, wanted) / np.bincount(block)
        joined = pool_violators(block, mean)
        if joined[-1] == block[-1]:
            return replace(model, intercept=model.intercept + (mean[block] - wanted))
        block = joined


def pool_violators(block: IntArray, values: Array) -> IntArray:
    """Return the blocks with those joined whose values descend; ``block`` numbers them from 0, ``values`` has one each.

    Joined, and solved for together, until none descends, they have the least convex loss of all values that ascend.
    """
    is_new = np.append(True, np.diff(values) >= 0)
    return np.asarray((np.cumsum(is_new) - 1)[block])


def _by_feature(table: Array, schema: Schema) -> list[Array]:
    return [table[schema.slots(i)] for i in range(len(schema))]
