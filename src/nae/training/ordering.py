"""Quantiles that cannot cross: what the tables allow, and the intercepts that keep to it.

Outputs share the gate, so where every expert of one output is at least that of another, so is every mixture of them.
Neighbouring outputs are therefore in order for any input if the difference of their intercepts, plus the least
difference of each feature's experts over slots and experts, averaged over the members, is not negative.
"""

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding import Schema
from nae.tables.model import TableModel

__all__ = ["in_order", "least_apart", "pool_violators"]

_ROUNDING = 16  # units in the last place of all contributions: what an evaluator in that precision may err by


def in_order(experts: Array) -> Array:
    """Return experts (T, K, O, M) with the outputs of each in ascending order."""
    return np.sort(experts, axis=2)


def least_apart(model: TableModel) -> Array:
    """Return by how much each output is above the one before it, at least and for any input, (output - 1,).

    Rounding is taken off: what is left is kept by evaluators in single precision, too.
    """
    apart = np.diff(model.experts.astype(np.float64), axis=2)  # (T, K, O - 1, M)
    by_feature = [part.min(axis=(0, 1)) for part in _by_feature(apart, model.schema)]
    size = sum(float(np.abs(part).max()) for part in _by_feature(model.experts, model.schema))
    rounding = _ROUNDING * float(np.finfo(model.experts.dtype).eps) * size
    return np.asarray(np.diff(model.intercept) + np.sum(by_feature, axis=0).mean(axis=-1) - rounding)


def pool_violators(block: IntArray, values: Array) -> IntArray:
    """Return the blocks with those joined whose values descend; ``block`` numbers them from 0, ``values`` has one each.

    Joined, and solved for together, until none descends, they have the least convex loss of all values that ascend.
    """
    is_new = np.append(True, np.diff(values) >= 0)
    return np.asarray((np.cumsum(is_new) - 1)[block])


def _by_feature(table: Array, schema: Schema) -> list[Array]:
    return [table[schema.slots(i)] for i in range(len(schema))]
