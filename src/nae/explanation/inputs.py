"""Write inputs and numbers of a proof: a value of every feature on given slots, and numbers that are rounded up."""

import math
from typing import Any

from nae._typing import IntArray
from nae.encoding.schema import Category, Number
from nae.tables.model import TableModel

__all__ = ["rounded_up", "shown_value", "values_on"]

_TINY = 1e-300  # below, a thousandth may be zero


def values_on(model: TableModel, slots: IntArray) -> tuple[Any, ...]:
    """Return a value of every feature that stands on the given slot."""
    return tuple(
        _value(feature, int(slot - first))
        for feature, slot, first in zip(model.schema.features, slots, model.schema.offsets, strict=False)
    )


def _value(feature: Number | Category, slot: int) -> Any:
    if slot == feature.n_values:
        return None
    if isinstance(feature, Number):
        return 1.0 if slot > feature.n_values else float(feature.knots[slot])
    known = (*feature.levels, *feature.rare[:1])
    if slot < len(known):
        return known[slot]
    unseen = "unseen"
    while unseen in (*feature.levels, *feature.rare):
        unseen += "?"
    return unseen


def shown_value(value: object) -> str:
    """Return a value as a sentence shows it."""
    if value is None:
        return "missing"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def rounded_up(value: float) -> str:
    """Return a number rounded up to four digits, so that a sentence with it remains true."""
    if abs(value) < _TINY or not math.isfinite(value):
        return f"{value:.4g}"
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 3)
    return f"{math.ceil(value / step) * step:.4g}"
