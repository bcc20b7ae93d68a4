"""References: the contributions that those of a row are compared with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding.columns import Columns
from nae.encoding.schema import Number
from nae.errors import ConfigError, DataError
from nae.explanation.members import member_contributions
from nae.explanation.own import own_effects
from nae.explanation.reference import MeanGate, mean_contributions, require_statistics
from nae.tables.model import TableModel

__all__ = ["Reference", "centred_members", "read_reference"]


@dataclass(frozen=True, eq=False)
class Reference:
    """The contributions of a reference, in the model and in each member. The members' mean is that of the model."""

    name: str
    values: Array  # (feature, output)
    own: Array  # (feature, output), the own effects
    members: Array  # (feature, output, member)


def read_reference(model: TableModel, given: Any, read: Callable[[Any], Columns], direction: Array) -> Reference:
    """Return the average row, the values that speak least for the outcome of a direction, or a row of one's own."""
    if isinstance(given, str):
        if given == "mean":
            return _average(model)
        if given == "best":
            return _best(model, direction)
        raise ConfigError(f"reference must be 'mean', 'best' or a row; got {given!r}.")
    return _of_row(model, read(given))


def centred_members(members: Array, values: Array) -> Array:
    """Return the members' contributions (..., member), moved together so that their mean is the model's contribution.

    A clamp holds for the mean of the members; it moves all of them by the same amount.
    """
    return np.asarray(members + (values - members.mean(axis=-1))[..., None])


def _average(model: TableModel) -> Reference:
    statistics, effects = require_statistics(model), MeanGate(model, require_statistics(model).gate_mean).slot_effects()
    means = []
    for i in range(model.n_features):
        slots = model.schema.slots(i)
        weight = statistics.weight[slots]
        means.append(np.tensordot(weight / weight.sum(), effects[slots], axes=1))
    values = mean_contributions(model)
    return Reference("the average row", values, values, centred_members(np.stack(means), values))


def _best(model: TableModel, direction: Array) -> Reference:
    """Return the seen value of every feature whose mean contribution is lowest in a direction."""
    statistics = require_statistics(model)
    at = np.array([_lowest(model, i, statistics.mean @ direction) for i in range(model.n_features)])
    values = statistics.mean[at]
    members = MeanGate(model, statistics.gate_mean).slot_effects()[at]
    return Reference("the best values", values, values, centred_members(members, values))


def _lowest(model: TableModel, feature: int, score: Array) -> IntArray:
    """Return the slot of a feature with the lowest score, of the values that training rows have."""
    weight, own = require_statistics(model).weight, model.schema.slots(feature)
    kind = model.schema.features[feature]
    slots = np.arange(own.start, own.start + kind.n_values)
    if isinstance(kind, Number) and kind.is_empty:
        slots = np.arange(own.start, own.stop)
    seen = slots[weight[slots] > 0] if weight[slots].any() else slots
    return np.asarray(seen[np.argmin(score[seen])])


def _of_row(model: TableModel, columns: Columns) -> Reference:
    cells = model.schema.locate(columns, dtype=model.experts.dtype)
    if len(cells) != 1:
        raise DataError(f"A reference must be a single row; got {len(cells)}.")
    shape = (1, model.n_features, model.n_outputs)
    values = model.contributions(cells).values.reshape(shape)
    own = own_effects(model, cells, values, require_statistics(model).mean)
    return Reference("the given row", values[0], own[0], centred_members(member_contributions(model, cells), values)[0])
