"""The schema: the features of a model, and the slots of their tables.

The table of a feature has one slot per knot or level, then one for *missing* and one for *unseen*. The tables of all
features are stacked; ``Schema.offsets`` holds the first slot of each feature.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from nae._typing import AnyArray, Array, IntArray
from nae.encoding.cells import Cells
from nae.encoding.columns import (
    Columns,
    category_keys,
    check_values,
    is_missing,
    named_row,
    numbers,
    rounded_number,
)
from nae.encoding.knots import place_knots
from nae.errors import ConfigError, DataError, FormatError, did_you_mean, listed

__all__ = [
    "GIVEN",
    "IN_ORDER",
    "MISSING",
    "UNSEEN",
    "Category",
    "Feature",
    "Number",
    "Schema",
    "build_schema",
    "check_numbers",
    "in_order",
    "rank_levels",
    "rounded_numbers",
]

MISSING, UNSEEN, OTHER = "missing", "unseen", "other"
GIVEN = "given by feature_types"  # the reason of a kind that the user chose
IN_ORDER = "levels in the order of monotonic_cst"  # the reason of a category with an order
Kind = Literal["number", "boolean", "category"]


@dataclass(frozen=True, eq=False)
class Number:
    """A number or a boolean: its effect is linear between the knots and constant beyond the first and last knot."""

    name: str
    knots: Array  # (knot,), ascending, finite
    is_boolean: bool = False
    has_missing: bool = False  # whether there were missing values in training
    reason: str = ""
    integral: bool = False  # whether all values in training were integers

    @property
    def kind(self) -> Kind:
        return "boolean" if self.is_boolean else "number"

    @property
    def n_values(self) -> int:
        return len(self.knots)

    @property
    def n_slots(self) -> int:
        return self.n_values + 2

    @property
    def is_constant(self) -> bool:
        """Whether all training values were the same; missing counts as a value."""
        return self.n_values == 1 and (self.is_empty or not self.has_missing)

    @property
    def is_empty(self) -> bool:
        """Whether all training values were missing, so that the kind is unknown."""
        return self.has_missing and not self.integral and not self.knots.any()  # a column of zeros would be integral

    @property
    def labels(self) -> tuple[str, ...]:
        """One text per slot."""
        if self.is_boolean:
            shown = ["True" if knot else "False" for knot in self.knots]
        else:
            shown = [f"{knot:.12g}" for knot in self.knots]
        return (*shown, MISSING, UNSEEN)

    def locate(self, column: AnyArray) -> tuple[IntArray, Array]:
        """Return the slot (counted within the feature) and the fraction of every value."""
        if self.is_empty:  # every present value is unseen, even text
            return self.n_values + 1 - is_missing(column).astype(np.int64), np.zeros(len(column))
        values, knots = numbers(column, self.name), self.knots
        missing = np.isnan(values)
        inside = np.clip(np.where(missing, knots[0], values), knots[0], knots[-1])
        slot = np.searchsorted(knots, inside, side="right") - 1
        fraction = np.zeros(len(values))
        between = slot < len(knots) - 1
        fraction[between] = _fractions(inside[between], knots[slot[between]], knots[slot[between] + 1])
        slot[missing], fraction[missing] = self.n_values, 0.0
        return slot, fraction


@dataclass(frozen=True, eq=False)
class Category:
    """A category with one slot per level. Rare levels share the slot *other*, which is trained too."""

    name: str
    levels: tuple[str, ...]
    rare: tuple[str, ...] = ()
    has_missing: bool = False
    reason: str = ""

    kind: ClassVar[Kind] = "category"

    @property
    def n_values(self) -> int:
        return len(self.levels) + bool(self.rare)

    @property
    def n_slots(self) -> int:
        return self.n_values + 2

    @property
    def is_given(self) -> bool:
        """Whether the user chose the kind, instead of the kind being inferred."""
        return self.reason in (GIVEN, IN_ORDER)

    @property
    def is_ordered(self) -> bool:
        """Whether the levels stand in the order that a direction is about; no level is rare then."""
        return self.reason == IN_ORDER

    @property
    def is_constant(self) -> bool:
        """Whether all training values were the same; missing counts as a value."""
        return self.n_values + self.has_missing <= 1

    @property
    def labels(self) -> tuple[str, ...]:
        """One text per slot. If a level is called *other*, the shared slot is called *(other)*."""
        shared = (OTHER,) if self.rare else ()
        return (*self.levels, *(_apart(name, self.levels) for name in (*shared, MISSING, UNSEEN)))

    @cached_property
    def _slots(self) -> dict[str | None, int]:
        slots: dict[str | None, int] = {level: slot for slot, level in enumerate(self.levels)}
        slots.update(dict.fromkeys(self.rare, len(self.levels)))
        slots[None] = self.n_values
        return slots

    def locate(self, column: AnyArray) -> tuple[IntArray, Array]:
        """Return the slot (counted within the feature) and the fraction (always zero) of every value."""
        slots, unseen = self._slots, self.n_values + 1
        found = [slots.get(key, unseen) for key in category_keys(column)]
        return np.array(found, dtype=np.int64), np.zeros(len(found))


def _apart(name: str, levels: tuple[str, ...]) -> str:
    while name in levels:
        name = f"({name})"
    return name


Feature = Number | Category


def _fractions(values: Array, low: Array, high: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        span = high - low
        halves = (values / 2 - low / 2) / (high / 2 - low / 2)
        return np.where(np.isfinite(span), (values - low) / span, halves)  # the span may overflow


@dataclass(frozen=True, eq=False)
class Schema:
    """The features of a model, in the order of their tables."""

    features: tuple[Feature, ...]
    has_names: bool = True  # whether the training table had column names
    offsets: IntArray = field(init=False)  # (feature + 1,), the first slot of each feature, and the number of slots

    def __post_init__(self) -> None:
        sizes = [feature.n_slots for feature in self.features]
        object.__setattr__(self, "offsets", np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    def __len__(self) -> int:
        return len(self.features)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)

    @property
    def n_slots(self) -> int:
        return int(self.offsets[-1])

    def slots(self, feature: int) -> slice:
        """Return the slots of one feature; the last two are *missing* and *unseen*."""
        return slice(int(self.offsets[feature]), int(self.offsets[feature + 1]))

    def index(self, feature: str | int) -> int:
        """Return the position of a feature that is given by name or position."""
        if isinstance(feature, str):
            if feature not in self.names:
                raise ConfigError(f"No feature is called {feature!r}.{did_you_mean(feature, self.names)}")
            return self.names.index(feature)
        if not -len(self) <= feature < len(self):
            raise ConfigError(f"A feature's position must be in [0, {len(self) - 1}]; got {feature}.")
        return int(feature) % len(self)

    def locate(self, columns: Columns, *, dtype: Any = np.float64) -> Cells:
        """Return the cells of a table with the columns in the order of the schema."""
        if len(columns.arrays) != len(self):
            raise DataError(
                f"The table must have the {len(self)} columns the model was trained on; got {len(columns.arrays)}."
            )
        n_rows = columns.n_rows
        slot = np.empty((n_rows, len(self)), dtype=np.int32)
        fraction = np.empty((n_rows, len(self)), dtype=dtype)
        for i, (feature, column) in enumerate(zip(self.features, columns.arrays, strict=True)):
            within, part = feature.locate(column)
            slot[:, i] = within + self.offsets[i]
            fraction[:, i] = part
        is_whole = fraction >= 1  # the fraction was rounded up to the next knot
        return Cells(slot + is_whole, np.where(is_whole, fraction.dtype.type(0), fraction))

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as JSON values, without the knots, which are stored as an array."""
        rows: list[dict[str, Any]] = []
        for feature in self.features:
            row: dict[str, Any] = {"name": feature.name, "kind": feature.kind, "reason": feature.reason}
            row["has_missing"] = feature.has_missing
            if isinstance(feature, Category):
                row |= {"levels": list(feature.levels), "rare": list(feature.rare)}
            else:
                row |= {"n_knots": len(feature.knots), "integral": feature.integral}
            rows.append(row)
        return {"features": rows, "has_names": self.has_names}

    @property
    def knots(self) -> Array:
        """The knots of all numbers, concatenated in the order of the features."""
        found = [feature.knots for feature in self.features if isinstance(feature, Number)]
        return np.concatenate(found) if found else np.empty(0)

    @staticmethod
    def from_dict(content: dict[str, Any], knots: Array) -> "Schema":
        """Rebuild a schema from the results of :meth:`to_dict` and :attr:`knots`."""
        features: list[Feature] = []
        start = 0
        for row in content["features"]:
            shared = {"name": row["name"], "has_missing": row["has_missing"], "reason": row["reason"]}
            if row["kind"] == "category":
                features.append(Category(levels=tuple(row["levels"]), rare=tuple(row["rare"]), **shared))
                continue
            end = start + row["n_knots"]
            own = knots[start:end]
            if len(own) != row["n_knots"] or len(own) == 0 or not np.all(np.isfinite(own)):
                raise FormatError(f"The knots of {row['name']!r} must be {row['n_knots']} finite numbers.")
            if np.any(own[1:] <= own[:-1]):
                raise FormatError(f"The knots of {row['name']!r} must ascend.")
            features.append(Number(knots=own, is_boolean=row["kind"] == "boolean", integral=row["integral"], **shared))
            start = end
        if start != len(knots):
            raise FormatError(f"The file must hold {start} knots; got {len(knots)}.")
        return Schema(tuple(features), has_names=bool(content["has_names"]))


def build_schema(
    columns: Columns,
    kinds: Sequence[tuple[Kind, str]],
    weights: Array,
    *,
    n_knots: int,
    n_levels: int | None = None,
    least_share: float = 0.0,
    counts: Array | None = None,
    orders: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Schema:
    """Learn knots and levels from the rows of positive weight. Levels with less than ``least_share`` of them are rare.

    ``counts`` are the row multiplicities, if the weights include class weights. ``orders`` are the levels, by name, of
    categories with an order; none of them is rare.
    """
    counts = weights if counts is None else counts
    names = columns.names or tuple(f"x{i}" for i in range(len(columns.arrays)))
    features: list[Feature] = []
    for name, array, (kind, reason) in zip(names, columns.arrays, kinds, strict=True):
        if kind == "category":
            limit, least = n_levels or n_knots, least_share * float(counts.sum())
            own = _build_category(name, array, counts, limit=limit, least=least, reason=reason)
            features.append(in_order(own, orders[name]) if name in orders else own)
        else:
            features.append(_build_number(name, array, weights, limit=n_knots, kind=kind, reason=reason))
    return Schema(tuple(features), has_names=columns.names is not None)


def check_numbers(columns: Columns, kinds: Sequence[tuple[Kind, str]], rows: IntArray) -> None:
    """Check the columns that are fitted as numbers and booleans. ``rows`` holds the row numbers for errors."""
    names = columns.names or tuple(f"x{i}" for i in range(len(columns.arrays)))
    for name, array, (kind, _) in zip(names, columns.arrays, kinds, strict=True):
        if kind != "category":
            _checked_numbers(name, array, kind, lambda row: named_row(int(rows[row])))


def rounded_numbers(features: Sequence[Feature], columns: Columns) -> dict[str, int]:
    """Return, for each column of numbers with integers that have no exact float, the first such integer."""
    pairs = zip(features, columns.arrays, strict=True)
    found = {one.name: rounded_number(array) for one, array in pairs if isinstance(one, Number)}
    return {name: value for name, value in found.items() if value is not None}


def _checked_numbers(name: str, array: AnyArray, kind: Kind, where: Callable[[int], str]) -> Array:
    values = numbers(array, name, where=where)
    check_values(values, name, is_boolean=kind == "boolean", where=where)
    return values


def _build_number(name: str, array: AnyArray, weights: Array, *, limit: int, kind: Kind, reason: str) -> Number:
    values = _checked_numbers(name, array, kind, named_row)
    present = ~np.isnan(values)
    knots = place_knots(values[present], weights[present], limit) + 0.0  # -0.0 becomes 0.0
    integral = bool(np.all(np.mod(values[present], 1) == 0)) and bool(present.any())
    return Number(
        name=name,
        knots=knots if len(knots) else np.zeros(1),  # if all values are missing, one knot that no row uses
        is_boolean=kind == "boolean",
        has_missing=not bool(present.all()),
        reason=reason,
        integral=integral,
    )


def _build_category(name: str, array: AnyArray, weights: Array, *, limit: int, least: float, reason: str) -> Category:
    keys = category_keys(array)
    counts: dict[str, float] = {}
    for key, weight in zip(keys, weights, strict=True):
        if key is not None:
            counts[key] = counts.get(key, 0.0) + float(weight)
    levels, rare = rank_levels(counts, limit, least=least)
    return Category(name=name, levels=levels, rare=rare, has_missing=bool(is_missing(keys).any()), reason=reason)


def in_order(feature: Category, order: Sequence[str]) -> Category:
    """Return the category with its levels in an order, which must name them all."""
    seen = {*feature.levels, *feature.rare}
    others = [level for level in (*feature.levels, *feature.rare) if level not in order]
    if others:
        raise ConfigError(
            f"An order must name all levels; {feature.name!r} also has {listed(others)}. Add them to the list."
        )
    return replace(feature, levels=tuple(level for level in order if level in seen), rare=(), reason=IN_ORDER)


def rank_levels(
    counts: Mapping[str, float], limit: int, *, least: float = 0.0
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the levels that keep their own slot, most frequent first, and the rare levels, which share one slot.

    A level is rare if its count is less than ``least``, or if there are more than ``limit`` levels and it is among the
    rarest. A single rare level keeps its own slot.
    """
    levels = sorted(counts, key=lambda level: (-counts[level], level))  # by frequency, ties by name
    n_kept = sum(counts[level] >= least * (1 - 1e-9) for level in levels)  # rounding must not make an equal count less
    if n_kept >= len(levels) - 1:
        n_kept = len(levels)
    if n_kept > limit or limit == n_kept < len(levels):
        n_kept = limit - 1
    return tuple(levels[:n_kept]), tuple(sorted(levels[n_kept:]))
