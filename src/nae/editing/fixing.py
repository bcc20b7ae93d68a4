"""Edits that leave one effect whatever the value is: pin, drop; and the effect of one level."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nae._typing import Array
from nae.editing.part import Part
from nae.encoding.cells import Cells
from nae.encoding.schema import Category, Number
from nae.errors import ConfigError, did_you_mean
from nae.tables.lookup import interpolate

__all__ = ["dropped", "level_set", "pinned"]


def pinned(part: Part, *, at: Any) -> Part:
    """Return the feature in a model that answers as though the feature always had one value; None is missing."""
    cells = _cells(part, at)

    def there(table: Array) -> Array:
        return np.asarray(interpolate(table, cells)[0, 0])

    found = part.with_experts(part.slots, there(part.model.experts)).with_terms(
        part.slots, there(part.model.gate.terms)
    )
    clamps = part.model.clamps
    if clamps is None:
        return found
    ends = iter((there(clamps.lower), there(clamps.upper)))
    return found.with_clamps(part.slots, lambda own: np.broadcast_to(next(ends), own.shape))


def dropped(part: Part) -> Part:
    """Return the feature in a model to which it adds nothing, and in which it gates nothing.

    The gates of the other features see the mean of its gate terms.
    """
    terms, weight = part.terms(part.slots), part.weight[part.slots]
    mean = np.tensordot(weight / weight.sum(), terms, axes=1)
    found = part.with_experts(part.slots, np.zeros(1)).with_terms(part.slots, mean)
    return found.with_clamps(part.slots, np.zeros_like)


def level_set(part: Part, *, level: Any, value: float | Sequence[float]) -> Part:
    """Return the feature with one contribution at a level, whatever the other features are; None is missing."""
    wanted = np.asarray(value, dtype=np.float64)
    if wanted.shape not in ((), (part.model.n_outputs,)) or not np.isfinite(wanted).all():
        raise ConfigError(
            f"The value of a level must be a finite number, or one per output ({part.model.n_outputs}); got {value!r}."
        )
    slot = part.slots.start + _slot(part, level)
    slots, each = slice(slot, slot + 1), np.broadcast_to(wanted, (part.model.n_outputs,))
    return part.with_experts(slots, each[:, None]).with_clamps(slots, lambda own: np.broadcast_to(each, own.shape))


def _cells(part: Part, at: Any) -> Cells:
    """Return where a value of the feature lies."""
    feature = part.feature
    first = part.slots.start
    if isinstance(feature, Category) or at is None:
        return Cells(np.array([[first + _slot(part, at, may_share=True)]]), np.zeros((1, 1)))
    slot, fraction = feature.locate(np.array([_number(feature.name, at)]))
    return Cells(slot[:, None] + first, fraction[:, None])


def _number(name: str, at: Any) -> float:
    try:
        value = float(at)
    except (TypeError, ValueError):
        value = np.nan
    if not np.isfinite(value):
        raise ConfigError(f"{name!r} is pinned at a finite number, or at None for missing; got {at!r}.")
    return value


def _slot(part: Part, level: Any, *, may_share: bool = False) -> int:
    """Return the slot of a level, or of what a label names, counted within the feature."""
    feature, name, labels = part.feature, part.feature.name, part.feature.labels
    if level is None:
        return feature.n_values
    if isinstance(feature, Number) and not feature.is_boolean:
        labels = labels[feature.n_values : feature.n_values + 1]
        if str(level) not in labels:
            raise ConfigError(
                f"Only missing values of a number have an effect of their own; got {level!r} for {name!r}."
            )
        return feature.n_values
    if isinstance(feature, Category) and str(level) in feature.rare:
        if may_share:
            return feature.n_values - 1
        raise ConfigError(
            f"A level must have a slot of its own; {str(level)!r} of {name!r} shares that of {len(feature.rare)} rare "
            f"levels. Name it {labels[feature.n_values - 1]!r} to set the effect of all of them."
        )
    if str(level) not in labels:
        raise ConfigError(f"{name!r} has no level {str(level)!r}.{did_you_mean(str(level), labels)}")
    return labels.index(str(level))
