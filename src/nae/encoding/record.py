"""Read one row from a mapping of names to values: the fast way to the cells of a record, without building columns."""

import math
import sys
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nae.encoding.cells import Cells
from nae.encoding.schema import Number, Schema

__all__ = ["RecordReader"]


@dataclass(frozen=True, eq=False)
class RecordReader:
    """The reader of records of plain values (numbers, booleans, text, None); it agrees with ``schema.locate``."""

    fields: tuple["_NumberField | _CategoryField", ...]

    @staticmethod
    def of(schema: Schema) -> "RecordReader":
        """Return the reader for a schema."""
        fields: list[_NumberField | _CategoryField] = []
        for feature, first in zip(schema.features, schema.offsets.tolist(), strict=False):
            missing = first + feature.n_values
            if isinstance(feature, Number):
                fields.append(_NumberField(feature.name, first, missing, tuple(feature.knots.tolist())))
            else:
                slots = {level: first + slot for slot, level in enumerate(feature.levels)}
                slots |= dict.fromkeys(feature.rare, first + len(feature.levels))
                fields.append(_CategoryField(feature.name, missing, slots))
        return RecordReader(tuple(fields))

    def read(self, record: Mapping[Any, Any], dtype: Any) -> Cells | None:
        """Return the cells of one row, or None if a value needs the general way through columns or is an error."""
        slots, fractions = [], []
        for one in self.fields:
            value = record.get(one.name, _ABSENT)
            found = (one.missing, 0.0) if value is None else one.read(value)
            if found is None:
                return None
            slots.append(found[0])
            fractions.append(found[1])
        slot, fraction = np.array([slots], dtype=np.int32), np.array([fractions], dtype=dtype)
        if fraction.max() >= 1:  # the fraction was rounded up to the next knot
            is_whole = fraction >= 1
            return Cells(slot + is_whole, np.where(is_whole, fraction.dtype.type(0), fraction))
        return Cells(slot, fraction)


@dataclass(frozen=True, eq=False)
class _NumberField:
    name: str
    first: int  # the slot of the first knot
    missing: int  # the slot of missing values
    knots: tuple[float, ...]

    def read(self, value: Any) -> tuple[int, float] | None:
        knots = self.knots
        if type(value) not in _PLAIN:
            return None
        if not -_LARGEST <= value <= _LARGEST and type(value) is int:
            return None  # the integer overflows a float
        if value <= knots[0]:
            return self.first, 0.0
        if value >= knots[-1]:
            return self.missing - 1, 0.0
        if type(value) is float and math.isnan(value):
            return self.missing, 0.0
        at = bisect_right(knots, value) - 1
        span = knots[at + 1] - knots[at]
        if span == math.inf:
            return None
        return self.first + at, (float(value) - knots[at]) / span


@dataclass(frozen=True, eq=False)
class _CategoryField:
    name: str
    missing: int
    slots: dict[str, int]  # by level

    def read(self, value: Any) -> tuple[int, float] | None:
        return (self.slots.get(value, self.missing + 1), 0.0) if type(value) is str else None


_ABSENT = object()
_LARGEST = sys.float_info.max
_PLAIN = (float, int, bool)
