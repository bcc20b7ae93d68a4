"""The changes of boxes: what a feature contributes at most whose value lies in a node, less what the value costs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.decisions.recourse.forest import Forest
from nae.ranges.mixing import anchor, largest
from nae.ranges.peaks import has, homes, peak
from nae.ranges.problem import Own
from nae.tables.routing import Routing

__all__ = ["Slot"]

_NEAR = 0.6  # of all weight; where less is certain, fixed shares say nothing


@dataclass(frozen=True, eq=False)
class _Run:
    """Some of the nodes, and vertices that hold them."""

    some: IntArray  # (n,), which nodes
    at: IntArray  # (n or 1, V), vertices
    has: tuple[BoolArray, BoolArray]  # which vertices, and which lines between two, every node has


@dataclass(frozen=True, eq=False)
class Slot:
    """One change of every box: its node, and what is known about the weights of the feature's experts."""

    forest: Forest
    node: IntArray  # (n,)
    weights: tuple[Array, Array]  # (K, n, M) each, the least and the most
    share: Array  # (n, K * M)
    moved: Array  # (n, M), the part of the whole that other weights give to other experts; 2 for no shares

    @classmethod
    def of(cls, forest: Forest, weights: tuple[Array, Array], node: IntArray, n_members: int) -> Self:
        """Return one change of every box, given the weights of all features, (K, n, F * M) each."""
        columns = forest.feature[node][:, None] * n_members + np.arange(n_members)
        least, most = (part[:, np.arange(len(node))[:, None], columns] for part in weights)
        share, moved = np.zeros_like(least), np.full(least.shape[1:], 2.0)
        some = np.flatnonzero((least.sum(axis=0) / most.sum(axis=0)).mean(axis=-1) > _NEAR)
        share[:, some], moved[some] = anchor(least[:, some], most[:, some])
        return cls(forest, node, (least, most), share.swapaxes(0, 1).reshape(len(node), -1), moved)

    def contributions(self, own: Own, routing: Routing, rates: Array) -> Array:
        """Return the largest contribution minus rate times cost, (rate, n)."""
        order = own.most.order[:, self.node]
        least, most = (np.take_along_axis(part, order, axis=0) for part in self.weights)
        mean = largest(routing, least, most, own.most.experts[:, self.node]).mean(axis=-1)
        best = own.highest.take(self.node).clip(mean) - rates[:, None] * self.forest.least_cost[self.node]
        slack = (self.moved * own.room[self.node]).mean(axis=-1)
        for run in self._runs(np.flatnonzero((self.moved <= 1.0).all(axis=-1) & (slack < own.span[self.node]))):
            best[:, run.some] = np.minimum(best[:, run.some], self._tops(own, run, rates, slack[run.some]))
        return best

    def _runs(self, some: IntArray) -> Iterator[_Run]:
        """Yield runs of vertices that hold some of the nodes."""
        first, last = self.forest.first[self.node[some]], self.forest.last[self.node[some]]
        is_short = last - first <= 1
        ends = np.stack([first, last], axis=1)[is_short]
        is_line = (ends[:, 0] < ends[:, 1]) & self.forest.joined[np.minimum(ends[:, 0], len(self.forest.joined) - 1)]
        yield _Run(some[is_short], ends, (np.ones_like(ends, dtype=bool), is_line[:, None]))
        for start, stop, part in homes(self.forest, self.node, some[~is_short]):
            yield _Run(part, np.arange(start, stop)[None], has(self.forest, self.node[part], start, stop))

    def _tops(self, own: Own, run: _Run, rates: Array, slack: Array) -> Array:
        """Return the largest contributions under the shares, at the vertices of a run, (rate, n)."""
        share, at = self.share[run.some], run.at
        mean = share @ own.curve[:, at[0]] if len(at) == 1 else np.einsum("nk,knv->nv", share, own.curve[:, at])
        mean = np.maximum(mean + slack[:, None], own.clamp.lower[at])
        cost = rates[:, None, None] * self.forest.cost[at]
        upper = np.broadcast_to(own.clamp.upper[at] - cost, (len(rates), *mean.shape))
        return peak(mean - cost, upper, run.has)
