"""All moves of a row side by side: their vertices and nodes, what each adds to the units of the gate, and its cost.

Vertex 0 and node 0 stand for no move: they add nothing and cost nothing. A box has a node for each feature that it
changes, and node 0 for every change that it does not need. At first there is one node per feature, with all its
vertices; nodes are halved on demand. A line between two vertices can be halved again and again, since everything is
linear on it.

Shapes: N nodes, V vertices, M members, W units of the gate.
"""

from dataclasses import dataclass

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.decisions.recourse.growing import Growing
from nae.decisions.recourse.moves import Moves
from nae.decisions.recourse.runs import Lines, Runs
from nae.encoding.cells import Cells
from nae.ranges import Domain, halves_of
from nae.ranges.gates import Units

__all__ = ["Forest", "Halved"]

_COST_STEP = 0.02  # costs move by at most this much between two vertices, in shares of the training rows
_MOST_VERTICES = 512  # of a feature, at first, unless it has more knots
_PLACES = 2**25  # numbers that are kept of what vertices add to units; those of further features are computed again
_FINEST = 1e-5  # of costs and logits; lines on which they move by less are not halved
_HOME = 64  # vertices


@dataclass(frozen=True, eq=False)
class Halved:
    """What halving some nodes added."""

    parents: IntArray  # of every new node
    lines: Lines  # that got new vertices
    runs: Runs  # of vertices, one per new node


class Forest:
    """The moves of a row."""

    def __init__(self, gate: Units, row: Cells, moves: Moves) -> None:
        domains = tuple(_refined(domain, moves) for domain in moves.domains)
        sizes = np.array([1, *(len(domain) for domain in domains)])
        nothing = np.zeros(1, dtype=np.int64)
        self.domains, self._gate, self._row = domains, gate, row
        # Of every vertex:
        self.cost: Array = np.concatenate([np.zeros(1), *map(moves.costs, domains)])
        self.slot = np.concatenate([nothing, *(one.slot for one in domains)])
        self.fraction: Array = np.concatenate([np.zeros(1), *(one.fraction for one in domains)])
        self.owner = np.repeat([0, *(one.feature for one in domains)], sizes)
        self.is_here = np.concatenate([np.ones(1, dtype=bool), *(_is_here(one, row) for one in domains)])
        self.joined = np.concatenate([np.zeros(0, dtype=bool), *(np.append(False, one.joined) for one in domains)])
        self._local = np.concatenate([np.arange(size) for size in sizes])  # the place among those of a feature
        self._added: dict[int, Growing] = {}  # to the units, by feature, (its vertices, group, W * M / group)
        # Of every node:
        self.last = np.cumsum(sizes) - 1
        self.first = self.last - sizes + 1
        self.feature = self.owner[self.first]
        self.children = np.full((len(sizes), 2), -1)  # -1 for none yet
        self.home = np.arange(len(sizes))
        runs = Runs.of(self.first, self.last)
        self.least_cost, self.most_cost = runs.least(self.cost), runs.largest(self.cost)
        self.roots: IntArray = np.arange(1, len(sizes))  # (domain,)
        added = [self._read(domain) for domain in domains]
        self._low = Growing(_after_nothing([one.min(axis=0) for one in added]))
        self._high = Growing(_after_nothing([one.max(axis=0) for one in added]))
        self.open = self._how_open(np.arange(len(sizes)))

    @property
    def low(self) -> Array:
        """The least that every node adds to the units, (N, group, W * M / group)."""
        return self._low.values

    @property
    def high(self) -> Array:
        """The most that every node adds to the units."""
        return self._high.values

    def halve(self, nodes: IntArray) -> Halved | None:
        """Halve those of some nodes that have more than one vertex and no children; return what this added."""
        some = np.unique(nodes)
        some = some[(self.children[some, 0] < 0) & (self.first[some] < self.last[some])]
        if not len(some):
            return None
        is_line = (self.last[some] == self.first[some] + 1) & self.joined[self.first[some]]
        lines = Lines(self.first[some[is_line]], self.last[some[is_line]])
        first, last = self._halves(some, is_line)
        n_nodes, new = len(self.first), np.arange(2 * len(some))
        self.children[some] = (n_nodes + new).reshape(-1, 2)
        parents = np.repeat(some, 2)
        self._add_vertices(lines)
        self._add_nodes(parents, first, last)
        homes = self.home[parents]
        is_small = (self.last[homes] - self.first[homes] < _HOME) & ~np.repeat(is_line, 2)
        self.home = np.append(self.home, np.where(is_small, homes, n_nodes + new))
        self.open = np.append(self.open, self._how_open(n_nodes + new))
        return Halved(parents, lines, Runs.of(first, last))

    def _halves(self, some: IntArray, is_line: BoolArray) -> tuple[IntArray, IntArray]:
        """Return the first and last vertices of the halves of some nodes; those of lines have new vertices."""
        n_vertices, gaps = len(self.cost), np.flatnonzero(~self.joined)
        found = []
        for node, line in zip(some.tolist(), is_line.tolist(), strict=True):
            if line:
                found += [(n_vertices, n_vertices + 1), (n_vertices + 2, n_vertices + 3)]
                n_vertices += 4
            else:
                found += halves_of(int(self.first[node]), int(self.last[node]), gaps)
        first, last = np.array(found, dtype=np.int64).T
        return first, last

    def _add_vertices(self, lines: Lines) -> None:
        place, slot = lines.at(self.slot + self.fraction), np.repeat(self.slot[lines.first], 4)
        self.fraction = np.append(self.fraction, place - slot)  # 1 where the line ends at the next knot
        self.slot = np.append(self.slot, slot)
        self.cost = np.append(self.cost, lines.at(self.cost))
        owner = np.repeat(self.owner[lines.first], 4)
        self.owner = np.append(self.owner, owner)
        ends = np.stack([self.is_here[lines.first], self.is_here[lines.last]], axis=1)
        self.is_here = np.append(self.is_here, np.insert(ends, [1, 1], False, axis=1))
        self.joined = np.append(self.joined, np.tile([False, True], 2 * len(lines)))
        self._local = np.append(self._local, np.zeros(len(owner), dtype=np.int64))
        for feature in np.unique(owner):
            own = np.flatnonzero(owner[::4] == feature)
            added = self._added_by(feature)
            local = Lines(self._local[lines.first[own]], self._local[lines.last[own]])
            at = len(self.cost) - len(owner) + (4 * own[:, None] + np.arange(4)).reshape(-1)
            self._local[at] = len(added.values) + np.arange(len(at))
            added.append(local.at(added.values))

    def _add_nodes(self, parents: IntArray, first: IntArray, last: IntArray) -> None:
        runs, shape = Runs.of(first, last), (len(first), *self.low.shape[1:])
        low, high = np.empty(shape), np.empty(shape)
        for feature in np.unique(self.feature[parents]):
            own, values = np.flatnonzero(self.feature[parents] == feature), self._added_by(feature).values
            of_feature = Runs.of(first[own], last[own])
            local = Runs(self._local[of_feature.vertices], of_feature.starts)
            low[own], high[own] = local.least(values), local.largest(values)
        self._low.append(low)
        self._high.append(high)
        self.feature = np.append(self.feature, self.feature[parents])
        self.first, self.last = np.append(self.first, first), np.append(self.last, last)
        self.children = np.append(self.children, np.full((len(first), 2), -1), axis=0)
        self.least_cost = np.append(self.least_cost, runs.least(self.cost))
        self.most_cost = np.append(self.most_cost, runs.largest(self.cost))

    def _added_by(self, feature: int) -> Growing:
        """Return what the vertices of a feature add to the units, those of halved lines included."""
        if feature not in self._added:
            domain = next(one for one in self.domains if one.feature == feature)
            self._added[int(feature)] = Growing(self._read(domain, is_kept=True))
        return self._added[int(feature)]

    def _read(self, domain: Domain, *, is_kept: bool = False) -> Array:
        """Return what the vertices of a domain add to the units of the row, (V, group, W * M / group)."""
        i = domain.feature
        with_row = Domain(
            i,
            np.append(self._row.slot[0, i], domain.slot),
            np.append(self._row.fraction[0, i], domain.fraction),
            np.append(False, domain.joined),
        )
        added = np.asarray(self._gate.along(with_row)[1:], dtype=np.float64)
        found = added.reshape(len(domain), self._gate.n_first, -1)
        n_kept = sum(one.values.size for one in self._added.values())
        if not is_kept and n_kept + found.size <= _PLACES:
            self._added[i] = Growing(found)
        return found

    def _how_open(self, nodes: IntArray) -> Array:
        """Return about how much nodes leave open: how far logits and costs move; 0 where they are not halved."""
        moved = (self.high[nodes] - self.low[nodes]).mean(axis=(1, 2))
        moved += self.most_cost[nodes] - self.least_cost[nodes]
        n_more = self.last[nodes] - self.first[nodes]
        is_line = (n_more == 1) & np.append(self.joined, False)[self.first[nodes]]
        return np.where((n_more > 0) & (~is_line | (moved > _FINEST)), moved + 1e-12, 0.0)

    def place(self, row: Cells, vertices: IntArray) -> Cells:
        """Return copies of a row with the moves of vertices (n, change)."""
        n = len(vertices)
        slot, fraction = np.repeat(row.slot, n, axis=0), np.repeat(row.fraction, n, axis=0)
        for change in vertices.T:
            rows = np.flatnonzero(change > 0)
            at = (rows, self.owner[change[rows]])
            slot[at], fraction[at] = self.slot[change[rows]], self.fraction[change[rows]]
        is_whole = fraction >= 1
        return Cells(slot + is_whole, np.where(is_whole, 0.0, fraction))

    def cheaper(self, vertex: int) -> int:
        """Return the vertex at the other end of a line that costs less, or the vertex itself if there is none."""
        near = [at for at, line in ((vertex - 1, vertex - 1), (vertex + 1, vertex)) if self._has_line(line)]
        return min([vertex, *near], key=lambda at: float(self.cost[at]))

    def _has_line(self, line: int) -> bool:
        return 0 <= line < len(self.joined) and bool(self.joined[line])


def _refined(domain: Domain, moves: Moves) -> Domain:
    """Return a domain with vertices that are near each other, so that trying each of them says much."""
    return domain.refined(np.abs(np.diff(moves.costs(domain))), step=_COST_STEP, most=_MOST_VERTICES)


def _after_nothing(parts: list[Array]) -> Array:
    return np.stack([np.zeros_like(parts[0]), *parts])


def _is_here(domain: Domain, row: Cells) -> BoolArray:
    here = row.slot[0, domain.feature] + row.fraction[0, domain.feature]
    return np.asarray(np.isclose(domain.slot + domain.fraction, here, rtol=0.0, atol=1e-9))
