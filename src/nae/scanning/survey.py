"""The first pass over a scan: summaries of the columns and the target, and the number of rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from nae._typing import AnyArray, Array
from nae.encoding import Category, Columns, Feature, Number, Schema, infer_kinds
from nae.encoding.columns import category_keys, check_values, is_missing, numbers, rounded_number
from nae.encoding.kinds import FeatureTypes
from nae.encoding.knots import place_knots
from nae.encoding.schema import Kind, in_order, rank_levels
from nae.encoding.target import LARGEST, TargetMoments, check_labels, floats
from nae.errors import DataError
from nae.links import Link
from nae.quality import Baseline
from nae.scanning.bad_rows import BadRows
from nae.scanning.chunks import Chunk, Roles, read_chunks
from nae.scanning.scan import Scan
from nae.scanning.sketches import EXACT, LevelSketch, ValueSketch

__all__ = ["ColumnSurvey", "Findings", "Survey", "survey_rows"]

_MOST_CLASSES = 10_000


class ColumnSurvey:
    """The summary of one column. Summaries of two parts of a table can be merged."""

    def __init__(self, name: str, kind: Kind, reason: str, *, exact: int = EXACT, unit: float = 1.0) -> None:
        self.name, self.kind, self.reason = name, kind, reason
        self.has_missing, self.is_integral = False, True
        self.rounded: int | None = None  # the first integer that has no exact float
        self.values = ValueSketch(exact=exact, unit=unit)
        self.levels = LevelSketch(exact=exact)

    def update(self, array: AnyArray, weight: Array | None, chunk: Chunk) -> None:
        """Add the column of a chunk."""
        if self.kind == "category":
            keys = category_keys(array)
            self.has_missing = self.has_missing or bool(is_missing(keys).any())
            self.levels.update(keys, weight)
            return
        values = numbers(array, self.name, where=chunk.where)
        check_values(values, self.name, is_boolean=self.kind == "boolean", where=chunk.where)
        if self.rounded is None:
            self.rounded = rounded_number(array)
        present = ~np.isnan(values)
        self.has_missing = self.has_missing or not bool(present.all())
        values = values[present]
        self.is_integral = self.is_integral and bool(np.all(np.mod(values, 1) == 0))
        self.values.update(values, None if weight is None else weight[present])

    def merge(self, other: "ColumnSurvey") -> None:
        """Add the survey of the same column in other rows."""
        self.has_missing = self.has_missing or other.has_missing
        self.is_integral = self.is_integral and other.is_integral
        self.rounded = other.rounded if self.rounded is None else self.rounded
        self.values.merge(other.values)
        self.levels.merge(other.levels)

    def feature(self, *, n_knots: int, n_levels: int, least: float = 0.0) -> Feature:
        """Return the feature, with knots or levels for the values seen."""
        counts = self.levels.counts()
        if self.kind == "category" and counts:
            levels, rare = rank_levels(counts, n_levels, least=least)
            return Category(self.name, levels, rare, has_missing=self.has_missing, reason=self.reason)
        values, weights = self.values.distribution()
        knots = place_knots(values, weights, n_knots) + 0.0  # -0.0 becomes 0.0
        reason = self.reason
        if self.kind == "category":
            reason = "no value at all"
        elif reason == "true or false" and self.has_missing:
            reason = "true or false, with missing"
        return Number(
            name=self.name,
            knots=knots if len(knots) else np.zeros(1),  # if all values are missing, one knot that no row uses
            is_boolean=self.kind == "boolean",
            has_missing=self.has_missing,
            reason=reason,
            integral=self.is_integral and len(values) > 0,
        )


@dataclass(frozen=True, eq=False)
class Survey:
    """The result of the first pass."""

    columns: tuple[ColumnSurvey, ...]
    n_rows: int  # number of rows of positive weight
    weight: float  # total weight of all rows
    is_whole: bool  # whether all weights are whole numbers
    target: TargetMoments | None  # moments of a regression target
    target_values: tuple[ValueSketch, ...]  # sketches of target minus offset per output, if requested
    least: float  # smallest target of a regression
    classes: AnyArray  # class labels in ascending order; empty for a regression
    class_weight: Array  # weight of every class
    bad_rows: BadRows

    def baseline(self, link: Link) -> Baseline:
        """Return the baseline that knows only the target: its mean, or the shares of its classes."""
        return Baseline.of_shares(self.class_weight) if self.target is None else Baseline.of_moments(self.target, link)

    def schema(
        self,
        *,
        n_knots: int,
        n_levels: int,
        least_share: float = 0.0,
        orders: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> Schema:
        """Return the features with their knots and levels; ``orders`` are the levels of categories with an order."""
        least = least_share * self.weight
        found = [one.feature(n_knots=n_knots, n_levels=n_levels, least=least) for one in self.columns]
        in_turn = [
            in_order(one, orders[one.name]) if isinstance(one, Category) and one.name in orders else one
            for one in found
        ]
        return Schema(tuple(in_turn))


class Findings:
    """The findings in some of the rows. Findings in two parts of a table can be merged, also across processes."""

    def __init__(self, *, has_values: bool = False) -> None:
        self.has_values = has_values  # whether to sketch the target, and not only its moments
        self.target_values: tuple[ValueSketch, ...] = ()
        self.columns: list[ColumnSurvey] = []
        self.bad_rows = BadRows()
        self.n_rows, self.weight, self.is_whole = 0, 0.0, True
        self.moments: TargetMoments | None = None
        self.least = np.inf
        self.classes: dict[object, float] = {}
        self.labels: list[AnyArray] = []

    def update(self, chunk: Chunk, roles: Roles, *, is_classes: bool) -> None:
        self.n_rows += len(chunk)
        self.weight += float(chunk.weight.sum())
        self.is_whole = self.is_whole and bool(np.all(chunk.weight == np.rint(chunk.weight)))
        if is_classes:
            self._count_classes(chunk, roles.target[0])
            return
        values = number_target(chunk, roles)
        base = np.zeros_like(values) if chunk.offset is None else np.broadcast_to(chunk.offset, values.shape)
        moments = TargetMoments.of(values, base, chunk.weight)
        self.moments = moments if self.moments is None else self.moments.merge(moments)
        self.least = min(self.least, float(values.min()))
        if self.has_values:
            self._sketch_target(values - base, None if roles.weight is None else chunk.weight)

    def merge(self, other: "Findings") -> None:
        """Add the findings in other rows of the same table."""
        if not self.columns:
            self.columns = other.columns
        elif other.columns:
            for own, more in zip(self.columns, other.columns, strict=True):
                own.merge(more)
        self.n_rows += other.n_rows
        self.weight += other.weight
        self.is_whole = self.is_whole and other.is_whole
        if self.moments is None or other.moments is None:
            self.moments = self.moments or other.moments
        else:
            self.moments = self.moments.merge(other.moments)
        self.least = min(self.least, other.least)
        if not self.target_values:
            self.target_values = other.target_values
        elif other.target_values:
            for mine, theirs in zip(self.target_values, other.target_values, strict=True):
                mine.merge(theirs)
        for label, weight in other.classes.items():
            self.classes[label] = self.classes.get(label, 0.0) + weight
        self.labels += other.labels
        for bad in other.bad_rows.first:
            self.bad_rows.add(bad)
        self.bad_rows.count += other.bad_rows.count - len(other.bad_rows.first)
        self.bad_rows.n_unknown += other.bad_rows.n_unknown

    def survey(self, *, is_classes: bool) -> Survey:
        """Return the survey of all rows."""
        if self.n_rows == 0:
            raise DataError("A scan must have rows of positive weight; this one has none.")
        classes = _sorted_classes(self) if is_classes else np.empty(0)
        return Survey(
            tuple(self.columns),
            self.n_rows,
            self.weight,
            self.is_whole,
            self.moments,
            self.target_values,
            self.least,
            classes,
            np.array([self.classes[label] for label in classes.tolist()]),
            self.bad_rows,
        )

    def _sketch_target(self, values: Array, weight: Array | None) -> None:
        unit = 1.0 if weight is None else float(weight.mean())
        self.target_values = self.target_values or tuple(ValueSketch(unit=unit) for _ in values.T)
        for sketch, column in zip(self.target_values, values.T, strict=True):
            sketch.update(column, weight)

    def _count_classes(self, chunk: Chunk, name: str) -> None:
        labels = chunk.target[0]
        missing = is_missing(labels)
        if missing.any():
            row = int(np.flatnonzero(missing)[0])
            raise DataError(f"The target {name!r} must hold a class in every row; {chunk.where(row)} has none.")
        check_labels(labels, where=chunk.where)
        found, codes = np.unique(labels, return_inverse=True)
        for label, weight in zip(found.tolist(), np.bincount(codes, chunk.weight).tolist(), strict=True):
            self.classes[label] = self.classes.get(label, 0.0) + weight
        if len(self.classes) > _MOST_CLASSES:
            raise DataError(f"The target {name!r} must hold classes; it holds more than {_MOST_CLASSES:,} values.")
        self.labels.append(found[:1])  # keeps the type


def survey_rows(
    scan: Scan, roles: Roles, *, is_classes: bool, feature_types: FeatureTypes, has_values: bool = False
) -> Findings:
    """Read all rows once and return the findings. The target is summarised by moments, and by sketches if requested."""
    kinds = _kinds(scan, roles.features, feature_types)
    found = Findings(has_values=has_values)
    for chunk in read_chunks(scan, roles, "surveying", bad_rows=found.bad_rows):
        weight = None if roles.weight is None else chunk.weight
        if not found.columns:
            unit = 1.0 if weight is None else float(weight.mean())
            found.columns = [
                ColumnSurvey(name, kind, reason, unit=unit)
                for name, (kind, reason) in zip(roles.features, kinds, strict=True)
            ]
        found.update(chunk, roles, is_classes=is_classes)
        for column, array in zip(found.columns, chunk.columns.arrays, strict=True):
            column.update(array, weight, chunk)
    return found


def number_target(chunk: Chunk, roles: Roles) -> Array:
    """Return the target of a regression, (row, output), checked."""
    columns = []
    for name, array in zip(roles.target, chunk.target, strict=True):
        values = floats(array, f"The target {name!r}", where=chunk.where)
        wrong = np.flatnonzero(~np.isfinite(values) | (np.abs(values) > LARGEST))
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"The target {name!r} must hold numbers within ±{LARGEST:g}; {chunk.where(row)} holds {values[row]}. "
                "Drop such rows, for example with scan.where_known(…)."
            )
        columns.append(values)
    return np.column_stack(columns)


def _sorted_classes(found: Findings) -> AnyArray:
    try:
        labels = np.array(sorted(found.classes), dtype=np.concatenate(found.labels).dtype)  # type: ignore[type-var]
    except TypeError:
        raise DataError("Classes must be of one type; got a mixture such as text and numbers.") from None
    if len(labels) < 2:
        raise DataError(f"A classifier needs at least 2 classes; got one class ({labels.tolist()[0]!r}).")
    return labels


def _kinds(scan: Scan, features: Sequence[str], feature_types: FeatureTypes) -> list[tuple[Kind, str]]:
    """Return the kinds of the columns, inferred from their types alone."""
    arrays: list[AnyArray] = []
    categorical = set()
    for i, kind in enumerate(scan.files.types(features)):
        if pa.types.is_dictionary(kind):
            categorical.add(i)
        is_text = pa.types.is_dictionary(kind) or str(kind) in ("string", "large_string", "string_view")
        example = np.array(["a"], dtype=object) if is_text else np.ones(1)
        arrays.append(np.ones(1, dtype=bool) if pa.types.is_boolean(kind) else example)
    return infer_kinds(Columns(tuple(arrays), tuple(features), frozenset(categorical)), feature_types)
