"""The smallest set that has a member in common with each of some sets."""

from collections.abc import Sequence

__all__ = ["smallest_hitting"]

_MOST_STEPS = 20_000


def smallest_hitting(
    sets: Sequence[frozenset[int]], order: Sequence[int], most: int
) -> tuple[frozenset[int] | None, bool]:
    """Return a smallest set of at most ``most`` members that meets all sets, or None, and whether this is certain.

    Members that stand first in the order are preferred. A search that would take too long is given up.
    """
    ranks = {member: rank for rank, member in enumerate(order)}
    ordered = sorted((sorted(one, key=ranks.__getitem__) for one in sets), key=len)
    steps = [_MOST_STEPS]
    for size in range(most + 1):
        found = _extended(ordered, frozenset(), size, steps)
        if found is not None or steps[0] <= 0:
            return found, steps[0] > 0
    return None, True


def _extended(sets: Sequence[list[int]], chosen: frozenset[int], left: int, steps: list[int]) -> frozenset[int] | None:
    """Return the chosen members with at most so many more that meet all sets."""
    steps[0] -= 1
    unmet = next((one for one in sets if chosen.isdisjoint(one)), None)
    if unmet is None:
        return chosen
    if left == 0 or steps[0] <= 0:
        return None
    options = (_extended(sets, chosen | {member}, left - 1, steps) for member in unmet)
    return next((found for found in options if found is not None), None)
