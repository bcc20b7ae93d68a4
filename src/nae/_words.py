"""Write numbers in sentences."""

from collections.abc import Sequence

__all__ = ["counted", "quantiles", "sized"]


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 row, 1,000 rows."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def quantiles(levels: Sequence[float]) -> str:
    """Return the name of several quantiles: 5 %, 50 % and 95 % quantiles."""
    *first, last = (f"{100 * level:g} %" for level in levels)
    return f"{', '.join(first)} and {last} quantiles"


def sized(n_bytes: int) -> str:
    """Return the size of a file: 12 kB, 1.4 MB."""
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 1e5 else f"{max(1, round(n_bytes / 1e3))} kB"
