"""Search for the smallest set of features that fixes the decision about a row.

Every input that is decided otherwise differs from the row in some features, and one of them must be kept. So a smallest
set that meets all inputs found so far is the next to be tried. If it is proven to fix the decision, no smaller set
does. If another input is found, the search goes on with it. If neither is the case, the set is left undecided.

The search begins with the features that gain most, in order: those whose value raises the least score that the experts
allow by most. For an additive model, the first of them that suffice are a smallest set.
"""

from dataclasses import dataclass

import numpy as np

from nae.decisions.sufficient.hitting import smallest_hitting
from nae.decisions.sufficient.proving import DecidedRow

__all__ = ["Smallest", "search"]


@dataclass(frozen=True)
class Smallest:
    """The smallest set that was proven, and whether no smaller one fixes the decision."""

    features: tuple[int, ...]  # the one that gains most first
    is_smallest: bool


def search(row: DecidedRow, most_tries: int) -> Smallest:
    """Return a set of features that is proven to fix the decision; at worst, it has all features."""
    order = np.argsort(-row.gains(), kind="stable").tolist()
    best = _first(row, order)
    best, is_smallest = _smaller(row, order, best, most_tries)
    if not is_smallest:
        best = _without_needless(row, order, best)
    return Smallest(tuple(i for i in order if i in best), is_smallest)


def _first(row: DecidedRow, order: list[int]) -> frozenset[int]:
    """Return the first features in order that fix the decision, found by halving."""
    low, high = -1, len(order)  # the first ``high`` features fix it
    while high - low > 1:
        middle = (low + high) // 2
        if row.proves(frozenset(order[:middle])):
            high = middle
        else:
            low = middle
    return frozenset(order[:high])


def _smaller(row: DecidedRow, order: list[int], best: frozenset[int], most_tries: int) -> tuple[frozenset[int], bool]:
    """Return the best set, and whether it is a smallest one."""
    others: list[frozenset[int]] = []
    undecided = len(order) + 1  # the size of the smallest set that was left undecided
    for _ in range(most_tries):
        kept, is_certain = smallest_hitting(others, order, len(best) - 1)
        if kept is None:
            return best, is_certain and len(best) <= undecided
        changed = row.counterexample(kept)
        if changed is None and row.proves(kept):
            return kept, is_certain and len(kept) <= undecided
        if changed is None:
            undecided = min(undecided, len(kept))
        others.append(frozenset(order) - kept if changed is None else changed)
    return best, False


def _without_needless(row: DecidedRow, order: list[int], best: frozenset[int]) -> frozenset[int]:
    """Return the set without features that it does not need, those that gain least first."""
    for feature in [i for i in reversed(order) if i in best]:
        if row.proves(best - {feature}):
            best -= {feature}
    return best
