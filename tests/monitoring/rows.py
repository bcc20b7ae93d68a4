"""Rows of one population: numbers with a long tail, numbers with few values, missing values and rare levels."""

from typing import Any

import numpy as np

__all__ = ["draw_rows"]


def draw_rows(random: np.random.Generator, n_rows: int, *, shift: float = 0.0) -> dict[str, Any]:
    """Return rows; a shift moves the mean of ``age`` by so many standard deviations."""
    income = np.exp(random.normal(size=n_rows))
    income[random.uniform(size=n_rows) < 0.1] = np.nan
    town = np.minimum(random.geometric(0.3, size=n_rows), 40)
    return {
        "age": 40 + 10 * random.normal(loc=shift, size=n_rows),
        "income": income,
        "rooms": random.integers(1, 5, size=n_rows).astype(float),
        "town": np.array([f"town {number}" for number in town]),
        "is_new": random.uniform(size=n_rows) < 0.02,
    }
