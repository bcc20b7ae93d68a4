"""First points: combinations of single moves, as if their effects on the scores were added up."""

import numpy as np

from nae._typing import Array, IntArray
from nae.decisions.recourse.tries import Tries

__all__ = ["combined"]

_MOST = 200_000  # combinations that are looked at
_TRIED = 512


def combined(tries: Tries, nodes: IntArray) -> None:
    """Try the cheapest combinations of moves that should reach the goal, for boxes of roots (set, change)."""
    forest = tries.forest
    n_each = max(2, int((_MOST / max(len(nodes), 1)) ** (1 / max(nodes.shape[1], 1))))
    options = {int(root): _frontier(tries, int(root), n_each) for root in forest.roots}
    options[0] = np.zeros(1, dtype=np.int64)
    here, gains = tries.scores[0], tries.scores - tries.scores[0]
    found, costs = [], []
    for some in nodes:
        grid = np.stack(np.meshgrid(*(options[int(root)] for root in some), indexing="ij"), axis=-1)
        vertices = grid.reshape(-1, nodes.shape[1])
        reached = np.flatnonzero(tries.goal.reached(here + gains[vertices].sum(axis=1)))
        cost = forest.cost[vertices[reached]].sum(axis=1)
        order = np.argsort(cost, kind="stable")[:_TRIED]
        found.append(vertices[reached[order]])
        costs.append(cost[order])
    every = np.concatenate(found)
    tries.points(every[np.argsort(np.concatenate(costs), kind="stable")[:_TRIED]])


def _frontier(tries: Tries, root: int, n: int) -> IntArray:
    """Return vertices of a feature, none of which costs more than another one and brings less."""
    forest = tries.forest
    own = np.arange(forest.first[root], forest.last[root] + 1)
    own = own[np.argsort(forest.cost[own], kind="stable")]
    gain = _progress(tries, own)
    before = np.concatenate([[0.0], np.maximum.accumulate(gain)[:-1]])
    better = own[gain > before]
    return better[np.unique(np.linspace(0, len(better) - 1, n).round().astype(np.int64))] if len(better) else own[:1]


def _progress(tries: Tries, vertices: IntArray) -> Array:
    """Return how far single moves bring the row towards the goal, by the need that is farthest away."""
    least = [[(tries.scores[vertices] - tries.scores[0]) @ one.direction for one in need] for need in tries.goal.needs]
    return np.asarray(np.min([np.max(need, axis=0) for need in least], axis=0)) if least else np.zeros(len(vertices))
