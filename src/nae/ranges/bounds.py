"""Bounds of the score within boxes: one node per domain.

Within a box every logit lies in an interval, and so does every weight. A feature without a domain contributes at most
the largest mean of its experts that such weights allow. For a feature with a domain there are two bounds: the same with
the largest of every expert within its node; and, at each vertex, the mean under fixed shares plus what other weights
can change. The smaller one counts. Where the weights are known, the second one is exact.

Between two vertices experts and clamps are linear, so a mean of experts under fixed shares is largest at one of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.ranges.domains import Domain
from nae.ranges.mixing import anchor, largest, limits, smallest
from nae.ranges.problem import Output, Own, Problem

__all__ = ["bound"]

_CHUNK = 2**17  # logits that are computed at once


@dataclass(frozen=True, eq=False)
class _Mixtures:
    """What weights allow in boxes, per output: sums over the features without a domain, and each one with a domain."""

    lower: Array  # (n, output)
    upper: Array
    own_lower: Array  # (n, output, domain)
    own_upper: Array
    share: Array  # (n, domain, K * M), fixed weights
    moved: Array  # (n, domain, M), how much of the whole other weights give to other experts


def bound(problem: Problem, rows: IntArray, nodes: IntArray) -> tuple[Array, Array]:
    """Return the lower and upper bounds of boxes: the row of each, and its nodes (n, domain)."""
    found = _all_mixtures(problem, rows, nodes)
    lower, upper = (np.full(len(rows), problem.start) for _ in range(2))
    for o, output in enumerate(problem.outputs):
        low, up = found.lower[:, o], found.upper[:, o]
        for d, (line, own) in enumerate(zip(problem.lines, output.own, strict=True)):
            ends = _own_bounds(line.domain, own, nodes[:, d], found, (o, d))
            low, up = low + ends[0], up + ends[1]
        low, up = output.factor * low, output.factor * up
        lower += np.minimum(low, up)
        upper += np.maximum(low, up)
    return lower, upper


def _all_mixtures(problem: Problem, rows: IntArray, nodes: IntArray) -> _Mixtures:
    """Return the mixtures of boxes, computed in parts that fit into a cache."""
    step = max(1, _CHUNK // int(np.prod(problem.gate.shape)))
    starts = range(0, max(len(rows), 1), step)
    parts = [_mixtures(problem, rows[at : at + step], nodes[at : at + step]) for at in starts]
    return _Mixtures(*(np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])))


def _mixtures(problem: Problem, rows: IntArray, nodes: IntArray) -> _Mixtures:
    routing, n = problem.model.routing, len(rows)
    weights = limits(routing, *problem.logits(rows, nodes))  # (n, K, F, M) each
    known, own = [], []
    for output in problem.outputs:
        mixed = output.known.take(rows)
        least, most = (mixed.read(part) for part in weights)
        ends = smallest(routing, least, most, mixed.experts), largest(routing, least, most, mixed.experts)
        known.append([_clamped_sum(end, output, rows, problem.gate.shape[2]) for end in ends])
        own.append([_own_ends(problem, one, weights, node) for one, node in zip(output.own, nodes.T, strict=True)])
    anchors = [anchor(*(part[:, :, feature] for part in weights)) for feature in problem.varying]
    lower, upper = np.array(known).transpose(1, 2, 0)
    own_lower, own_upper = np.array(own).transpose(2, 3, 0, 1)
    share, moved = (np.stack(parts, axis=1) for parts in zip(*anchors, strict=True))
    return _Mixtures(lower, upper, own_lower, own_upper, share.reshape(n, len(anchors), -1), moved)


def _clamped_sum(values: Array, output: Output, rows: IntArray, n_members: int) -> Array:
    """Return the sum over the features of contributions (n, feature * M), within their clamps."""
    mean = values.reshape(len(rows), -1, n_members).mean(axis=-1)
    return np.asarray(output.clamp.take(rows).clip(mean).sum(axis=1))


def _own_ends(problem: Problem, own: Own, weights: tuple[Array, Array], node: IntArray) -> tuple[Array, Array]:
    """Return the mean over the members of the least and the largest mean of experts within a node, (n,) each."""
    low, up = own.least.take(node), own.most.take(node)
    least = smallest(problem.model.routing, low.read(weights[0]), low.read(weights[1]), low.experts)
    most = largest(problem.model.routing, up.read(weights[0]), up.read(weights[1]), up.experts)
    return least.mean(axis=-1), most.mean(axis=-1)


def _own_bounds(
    domain: Domain, own: Own, nodes: IntArray, found: _Mixtures, at: tuple[int, int]
) -> tuple[Array, Array]:
    """Return the least and the largest contribution of a feature with a domain, (n,) each."""
    low, up = found.own_lower[:, *at], found.own_upper[:, *at]
    slack = (found.moved[:, at[1]] * own.room[nodes]).mean(axis=-1)
    helps = np.flatnonzero(2 * slack <= up - low)
    low, up = own.lowest.take(nodes).clip(low), own.highest.take(nodes).clip(up)
    share = found.share[:, at[1]]
    for start, stop, some in _homes(domain, nodes, helps):
        mean = share[some] @ own.curve[start:stop].T
        part = _Part(domain, nodes[some], start, stop)
        lower, upper = own.clamp.lower[start:stop], own.clamp.upper[start:stop]
        up[some] = np.minimum(up[some], part.peak(np.maximum(mean + slack[some, None], lower), upper))
        low[some] = np.maximum(low[some], -part.peak(np.maximum(slack[some, None] - mean, -upper), -lower))
    return low, up


@dataclass(frozen=True, eq=False)
class _Part:
    """The vertices of some nodes among those from ``start`` to ``stop``."""

    domain: Domain
    nodes: IntArray
    start: int
    stop: int

    @property
    def _has(self) -> tuple[BoolArray, BoolArray]:
        """Which vertices, and which lines between two of them, every node has."""
        at = np.arange(self.start, self.stop)
        first, last = self.domain.first[self.nodes, None], self.domain.last[self.nodes, None]
        has = (at >= first) & (at <= last)
        return has, has[:, 1:] & has[:, :-1] & self.domain.joined[self.start : self.stop - 1]

    def peak(self, one: Array, other: Array) -> Array:
        """Return the largest minimum of two functions that are convex between vertices, (n,)."""
        vertex, line = self._has
        other = np.broadcast_to(other, one.shape)
        best = np.where(vertex, np.minimum(one, other), -np.inf).max(axis=1)
        ends = (np.maximum(part[:, 1:], part[:, :-1]) for part in (one, other))
        return np.asarray(np.maximum(best, np.where(line, np.minimum(*ends), -np.inf).max(axis=1, initial=-np.inf)))


def _homes(domain: Domain, nodes: IntArray, some: IntArray) -> Iterator[tuple[int, int, IntArray]]:
    """Yield runs of vertices, and which of some of the nodes lie within each."""
    home = domain.home[nodes[some]]
    order = np.argsort(home, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(home[order])) + 1):
        if len(part):
            node = home[part[0]]
            yield int(domain.first[node]), int(domain.last[node]) + 1, some[part]
