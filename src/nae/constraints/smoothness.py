"""The parameter ``smoothness``: one number for all curves, numbers by name, or 'auto'."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from nae._typing import Array
from nae.constraints.forms import count_ordered, place_knots
from nae.encoding import Category, Schema
from nae.errors import ConfigError, did_you_mean
from nae.network import Roughness

__all__ = ["make_roughness", "read_smoothness"]


def read_smoothness(given: Any, schema: Schema) -> Array:
    """Return the smoothness of every feature; 0 for those without, and for categories."""
    if isinstance(given, Mapping):
        found = np.zeros(len(schema))
        for name, value in given.items():
            if name not in schema.names:
                raise ConfigError(
                    f"smoothness must name features of the table; {name!r} is none.{did_you_mean(name, schema.names)}"
                )
            feature = schema.features[schema.names.index(name)]
            if isinstance(feature, Category):
                raise ConfigError(
                    f"smoothness needs features with an order; {name!r} is a category of {len(feature.levels)} levels. "
                    "Leave it out."
                )
            found[schema.names.index(name)] = _number(value, f" for {name!r}")
        return found
    return np.full(len(schema), _number(given, ""))


def make_roughness(smoothness: Array, schema: Schema, n_slots: int) -> Roughness:
    """Return the weights of the penalty on rough curves of numbers."""
    n_ordered = np.array([count_ordered(feature) for feature in schema.features])
    return Roughness.of(smoothness, place_knots(schema, n_slots), n_ordered)


def _number(value: Any, where: str) -> float:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not 0 <= float(value) < np.inf:
        raise ConfigError(
            f"smoothness must be a number of at least 0, a dict by name, or 'auto'; got {value!r}{where}."
        )
    return float(value)
