"""Texts of a table: labels of bins, and CSV."""

import csv
import io
from collections.abc import Mapping

import numpy as np

from nae.decisions.scorecards.groups import Group
from nae.encoding.schema import Category, Feature
from nae.explanation.serial import Column

__all__ = ["as_csv", "label_of", "levels_of"]


def levels_of(feature: Feature, group: Group) -> tuple[str, ...]:
    """Return the levels of a group, rare ones included; none for a number."""
    if not isinstance(feature, Category) or group.role != "value":
        return ()
    levels = [(feature.levels[slot],) if slot < len(feature.levels) else feature.rare for slot in group.slots]
    return tuple(level for part in levels for level in part)


def label_of(feature: Feature, group: Group) -> str:
    """Return the name of a group."""
    if group.role != "value" or isinstance(feature, Category) or feature.is_boolean:
        return ", ".join(feature.labels[slot] for slot in group.slots)
    if feature.integral and group.low % 1 and group.high % 1:
        return _integers(group.low, group.high)
    return _interval(group.low, group.high)


def as_csv(columns: Mapping[str, Column]) -> str:
    """Return columns as CSV; numbers that are absent are empty."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow("" if isinstance(item, float) and np.isnan(item) else item for item in row)
    return sink.getvalue()


def _integers(low: float, high: float) -> str:
    """Return the label of integers between two halves."""
    first, last = np.ceil(low), np.floor(high)
    if not np.isfinite(low):
        return "all" if not np.isfinite(high) else f"up to {last:.12g}"
    if not np.isfinite(high):
        return f"{first:.12g} and more"
    return f"{first:.12g}" if first == last else f"{first:.12g} to {last:.12g}"


def _interval(low: float, high: float) -> str:
    if not np.isfinite(low):
        return "all" if not np.isfinite(high) else f"below {high:.12g}"
    return f"{low:.12g} and more" if not np.isfinite(high) else f"{low:.12g} to below {high:.12g}"
