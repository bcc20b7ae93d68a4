"""First points: combinations of single moves, as if their effects on the scores were added up."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from nae._typing import Array, IntArray
from nae.decisions.recourse.tries import Tries

__all__ = ["combined"]

_MOST = 200_000  # combinations that are looked at, for each number of changes
_MOST_SETS = 2_000  # of features
_TRIED = 512


def combined(tries: Tries, k: int) -> IntArray:
    """Try single moves, and the cheapest combinations of up to ``k`` moves that should reach the goal.

    Return the roots of all features, first those that bring the row farthest towards the goal.
    """
    tries.singles()
    roots = _by_strength(tries)
    for size in range(2, k + 1):
        sets = list(combinations(roots, size))[:_MOST_SETS]
        n_each = max(2, int((_MOST / max(len(sets), 1)) ** (1 / size)))
        options = {root: _frontier(tries, root, n_each) for root in {root for some in sets for root in some}}
        every = [_reaching(tries, [options[root] for root in some]) for some in sets]
        if every:
            vertices = np.concatenate(every)
            cost = tries.forest.cost[vertices].sum(axis=1)
            tries.points(vertices[np.argsort(cost, kind="stable")[:_TRIED]])
    return np.array(roots, dtype=np.int64)


def _reaching(tries: Tries, options: Sequence[IntArray]) -> IntArray:
    """Return the cheapest combinations (n, change) that should reach the goal."""
    grid = np.stack(np.meshgrid(*options, indexing="ij"), axis=-1).reshape(-1, len(options))
    gains = tries.scores - tries.scores[0]
    expected = tries.scores[0] + sum(gains[vertices] for vertices in grid.T)
    found = grid[tries.goal.reached(expected)]
    return np.asarray(found[np.argsort(tries.forest.cost[found].sum(axis=1), kind="stable")[:_TRIED]])


def _by_strength(tries: Tries) -> list[int]:
    """Return the roots of all features, first those that bring the row farthest towards the goal."""
    forest = tries.forest
    best = [_progress(tries, np.arange(forest.first[root], forest.last[root] + 1)).max() for root in forest.roots]
    return [int(root) for root in forest.roots[np.argsort(-np.array(best), kind="stable")]]


def _frontier(tries: Tries, root: int, n: int) -> IntArray:
    """Return up to ``n`` vertices of a feature, none of which costs more than another one and brings less."""
    forest = tries.forest
    own = np.arange(forest.first[root], forest.last[root] + 1)
    own = own[np.argsort(forest.cost[own], kind="stable")]
    gain = _progress(tries, own)
    better = own[gain > np.concatenate([[0.0], np.maximum.accumulate(gain)[:-1]])]
    return better[np.unique(np.linspace(0, len(better) - 1, n).round().astype(np.int64))] if len(better) else own[:1]


def _progress(tries: Tries, vertices: IntArray) -> Array:
    """Return how far single moves bring the row towards the goal, by the need that is farthest away."""
    gains = tries.scores[vertices] - tries.scores[0]
    least = [np.max([gains @ one.direction for one in need], axis=0) for need in tries.goal.needs]
    return np.asarray(np.min(least, axis=0)) if least else np.zeros(len(vertices))
