"""The values that training rows support.

A level is supported if at least a share of the training rows has it. A number is supported between the values that
this share of the rows lies below and above. Where two neighbouring knots lie farther apart than a tenth of that range,
rows are known at the knots alone, so values in between are not supported. Whole numbers stay whole.
"""

import math

import numpy as np

from nae._typing import Array, BoolArray
from nae.decisions.recourse.asked import Asked
from nae.decisions.recourse.ranks import Ranks, shares
from nae.encoding.cells import Cells
from nae.encoding.schema import Category, Number
from nae.ranges import Domain
from nae.tables.model import TableModel

__all__ = ["supported"]

_GAP = 0.1  # of the range of a number
_MOST_WHOLE = 256  # whole numbers that are looked at one by one


def supported(model: TableModel, i: int, row: Cells, asked: Asked) -> Domain | None:
    """Return the values that a feature of a row may take instead of its own, or None."""
    kind, first = model.schema.features[i], int(model.schema.offsets[i])
    here = float(row.slot[0, i] - first + row.fraction[0, i])
    if isinstance(kind, Category):
        place, joined = _levels(model, i, kind, here, asked)
    elif kind.is_empty:
        return None
    else:
        place, joined = _numbers(model, i, kind, here, asked)
    if i in asked.may_miss and here != kind.n_values:
        place, joined = np.append(place, float(kind.n_values)), np.append(joined, False)[: len(place)]
    if len(place) == 0:
        return None
    slot = np.floor(place).astype(np.int64)
    return Domain(i, slot + first, place - slot, joined)


def _levels(model: TableModel, i: int, kind: Category, here: float, asked: Asked) -> tuple[Array, BoolArray]:
    own = shares(model, i)[: len(kind.levels)]
    slots = np.flatnonzero(own >= asked.support)
    way = asked.direction.get(i, 0) if here < kind.n_values else 0
    slots = slots[(slots != here) & (way * (slots - here) >= 0)]
    mean = model.experts[model.schema.offsets[i] + slots].mean(axis=(1, 2, 3))
    slots = slots[np.argsort(mean, kind="stable")]  # neighbours are alike
    return slots.astype(np.float64), np.zeros(max(len(slots) - 1, 0), dtype=bool)


def _numbers(model: TableModel, i: int, kind: Number, here: float, asked: Asked) -> tuple[Array, BoolArray]:
    """Return the places, counted in knots, that a number may take, and which of them are joined with the next."""
    own, ranks, is_known = shares(model, i)[: kind.n_values], Ranks.of(model, i), here < kind.n_values
    low, high = ranks.place(asked.support), ranks.place(1 - asked.support)
    knots = np.arange(kind.n_values, dtype=np.float64)
    far = _GAP * float(np.diff(np.interp([low, high], knots, kind.knots))[0]) if asked.support else math.inf
    is_open = (np.diff(kind.knots) <= far) & (not kind.is_boolean)
    inside = (knots >= low) & (knots <= high)
    places = knots[inside | (own >= max(asked.support, 1e-12))]
    whole = _whole_numbers(kind, low, high, is_open)
    if whole is not None:
        places = np.union1d(places, whole)
        is_open = np.zeros_like(is_open)
    ends = [end for end in (low, high, *([here] if is_known else [])) if low <= end <= high and _within(end, is_open)]
    places = np.union1d(places, ends)
    way = asked.direction.get(i, 0) if is_known else 0
    keep = way * (places - here) >= 0
    if is_known:
        keep &= (places != here) | _within(here, is_open)
    places = places[keep]
    left, right = places[:-1], places[1:]
    segment = np.minimum(np.floor(left), kind.n_values - 2).astype(np.int64)
    if not len(is_open):
        return places, np.zeros(len(left), dtype=bool)
    return places, is_open[segment] & (right <= segment + 1) & (left >= low) & (right <= high)


def _within(place: float, is_open: BoolArray) -> bool:
    """Return whether a place lies in, or at the end of, an interval whose values are supported."""
    at = [segment for segment in {math.floor(place), math.ceil(place) - 1} if 0 <= segment < len(is_open)]
    return any(bool(is_open[segment]) for segment in at)


def _whole_numbers(kind: Number, low: float, high: float, is_open: BoolArray) -> Array | None:
    """Return the places of whole numbers, or None where values are not looked at one by one."""
    ends = np.interp([low, high], np.arange(kind.n_values), kind.knots)
    if not kind.integral or kind.is_boolean or ends[1] - ends[0] > _MOST_WHOLE:
        return None
    values = np.arange(math.ceil(ends[0]), math.floor(ends[1]) + 1, dtype=np.float64)
    slot, fraction = kind.locate(values)
    places = slot + fraction
    segment = np.minimum(slot, len(is_open) - 1)
    return np.asarray(places[(fraction == 0) | is_open[segment]] if len(is_open) else places)
