"""Print results: a title line, and a short table of their largest entries."""

from collections.abc import Mapping, Sequence

import numpy as np

__all__ = ["MOST_LINES", "digest"]

MOST_LINES = 10  # of a printed table; data frames hold everything


def digest(title: str, columns: Mapping[str, Sequence[str] | Sequence[float]], more: str) -> str:
    """Return a title and an aligned table: texts are left-aligned, numbers right-aligned.

    Longer tables end after ten lines, and ``more`` says how to get the other lines.
    """
    blocks = []
    for name, column in columns.items():
        is_text = all(isinstance(item, str) for item in column)
        shown = list(map(str, column[:MOST_LINES])) if is_text else _numbers(column[:MOST_LINES])
        width = max(len(text) for text in (name, *shown))
        blocks.append([text.ljust(width) if is_text else text.rjust(width) for text in (name, *shown)])
    lines = [f"  {'  '.join(line).rstrip()}" for line in zip(*blocks, strict=True)]
    n_left = max(len(column) for column in columns.values()) - MOST_LINES
    return "\n".join([title, *lines, *([f"  … {n_left:,} more: {more}"] if n_left > 0 else [])])


def _numbers(column: Sequence[str] | Sequence[float]) -> list[str]:
    """Return numbers with the same number of decimals, so that the largest one has four significant digits."""
    values = np.asarray(column, dtype=np.float64)
    largest = np.abs(values).max()
    if largest == 0 or not 1e-6 < largest < 1e9:
        return [f"{value:.4g}" for value in values]
    decimals = max(0, 3 - int(np.floor(np.log10(largest))))
    return [f"{round(value, decimals) + 0.0:,.{decimals}f}" for value in values]  # no minus sign before a zero
