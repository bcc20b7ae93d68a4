"""The order of a category's levels, where a direction is asked for: as the list says, or as the column's type does."""

from collections.abc import Mapping, Sequence
from typing import Any

from nae.encoding import Columns

__all__ = ["is_order", "read_orders"]


def is_order(way: Any) -> bool:
    """Return whether a direction is a list of levels, from the lowest score to the highest."""
    return isinstance(way, Sequence) and not isinstance(way, str)


def read_orders(monotonic_cst: Any, names: Sequence[str], columns: Columns | None = None) -> dict[str, tuple[str, ...]]:
    """Return the levels of every category with a direction, in their order."""
    if monotonic_cst is None:
        return {}
    by_name = dict(monotonic_cst) if isinstance(monotonic_cst, Mapping) else dict(enumerate(monotonic_cst))
    known = {} if columns is None else columns.orders
    found: dict[str, tuple[str, ...]] = {}
    for key, way in by_name.items():
        at = names.index(key) if key in names else key
        if is_order(way):
            found[names[at] if isinstance(at, int) and at < len(names) else str(key)] = tuple(map(str, way))
        elif at in known and way not in (0, None):
            found[names[at]] = known[at]
    return found
