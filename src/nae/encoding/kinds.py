"""Infer the kind of each column (number, boolean or category) and the reason for it."""

from collections.abc import Mapping, Sequence

import numpy as np

from nae._typing import AnyArray
from nae.encoding.columns import TEMPORAL, Columns, cannot_hold, is_missing, is_number_type
from nae.encoding.schema import GIVEN, Kind
from nae.errors import ConfigError, did_you_mean

__all__ = ["FeatureTypes", "infer_kinds"]

FeatureTypes = Mapping[str, str] | Sequence[str] | None

_NESTED = (Mapping, list, tuple, set, np.ndarray)
_GIVEN: dict[str, Kind] = {
    "number": "number",
    "continuous": "number",
    "boolean": "boolean",
    "category": "category",
    "nominal": "category",
}


def infer_kinds(columns: Columns, feature_types: FeatureTypes = None) -> list[tuple[Kind, str]]:
    """Return the kind of every column and the reason for it.

    ``feature_types`` maps names to 'number', 'boolean', 'category' or 'auto', or is a list with one of these words per
    column. 'auto' infers the kind from the values.
    """
    given = _given_kinds(columns, feature_types)
    names = columns.names or tuple(f"x{i}" for i in range(len(columns.arrays)))
    return [
        given[i] if i in given else _infer(array, names[i], is_categorical=i in columns.categorical)
        for i, array in enumerate(columns.arrays)
    ]


def _given_kinds(columns: Columns, feature_types: FeatureTypes) -> dict[int, tuple[Kind, str]]:
    if feature_types is None:
        return {}
    names = columns.names or tuple(f"x{i}" for i in range(len(columns.arrays)))
    if isinstance(feature_types, Mapping):
        unknown = [name for name in feature_types if name not in names]
        if unknown:
            raise ConfigError(
                f"feature_types names the column {unknown[0]!r}, which the table does not have."
                f"{did_you_mean(str(unknown[0]), names)}"
            )
        pairs = [(names.index(name), word) for name, word in feature_types.items()]
    elif isinstance(feature_types, str) or len(feature_types) != len(names):
        raise ConfigError(f"feature_types must have one word per column ({len(names)}); got {feature_types!r}.")
    else:
        pairs = list(enumerate(feature_types))
    given: dict[int, tuple[Kind, str]] = {}
    for i, word in pairs:
        if word == "auto":
            continue
        if word not in _GIVEN:
            raise ConfigError(
                f"feature_types must be 'auto', 'number', 'boolean' or 'category'; got {word!r} for {names[i]!r}."
                f"{did_you_mean(str(word), _GIVEN)}"
            )
        given[i] = (_GIVEN[word], GIVEN)
    return given


def _infer(array: AnyArray, name: str, *, is_categorical: bool) -> tuple[Kind, str]:
    if is_categorical:
        return "category", "the table calls it categorical"
    if array.dtype == np.bool_:
        return "boolean", "true or false"
    if array.dtype != object:
        return "number", "numeric column"
    present = array[~is_missing(array)]
    if len(present) == 0:
        return "number", "no value at all"
    types = {type(value) for value in present}
    if types <= {bool, np.bool_}:
        return "boolean", "true or false, with missing"
    if all(is_number_type(kind) or kind in (bool, np.bool_) for kind in types):
        return "number", "numbers in an object column"
    others = {kind for kind in types if not (is_number_type(kind) or issubclass(kind, (str, bool, np.bool_)))}
    if not others:
        return "category", "text"
    shown = min(others, key=lambda kind: kind.__name__)
    is_temporal, is_nested = issubclass(shown, TEMPORAL), issubclass(shown, _NESTED)
    raise cannot_hold(name, f"{shown.__name__} values", is_temporal=is_temporal, is_nested=is_nested)
