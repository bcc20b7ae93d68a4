"""Arguments of edits, checked."""

import math
from typing import Any

import numpy as np

from nae.editing.directions import DIRECTIONS
from nae.errors import ConfigError

__all__ = ["finite_number", "read_direction", "read_text"]


def finite_number(value: Any, rule: str, *, least: float = 0.0, may_equal: bool = True) -> float:
    """Return a finite number that is at least, or above, ``least``; ``rule`` begins the sentence of an error."""
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < least or (value == least and not may_equal):
        raise ConfigError(f"{rule}; got {value!r}.")
    return float(value)


def read_direction(way: Any, name: str) -> int:
    """Return 1 for a direction that never lowers the score, -1 for one that never raises it."""
    is_word = isinstance(way, (str, int, np.integer)) and not isinstance(way, bool)
    if not is_word or way not in DIRECTIONS:
        raise ConfigError(f"A direction must be 'increasing' (+) or 'decreasing' (-); got {way!r} for {name!r}.")
    return DIRECTIONS[way]


def read_text(value: Any, role: str, example: str) -> str:
    """Return a text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"An edit is recorded with {role}; got {value!r}. Pass {role}={example!r}.")
    return value.strip()
