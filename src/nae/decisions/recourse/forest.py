"""All moves of a row side by side: their vertices and nodes, what each adds to the units of the gate, and its cost.

Vertex 0 and node 0 stand for no move: they add nothing and cost nothing. A box has a node for each feature that it
changes, and node 0 for every change that it does not need. A line between two vertices can be halved again and again,
since everything is linear on it.

Shapes: N nodes, V vertices, M members, W units of the gate.
"""

from collections.abc import Sequence

import numpy as np

from nae._typing import AnyArray, Array, BoolArray, IntArray
from nae.decisions.recourse.growing import Growing
from nae.decisions.recourse.moves import Moves
from nae.encoding.cells import Cells
from nae.ranges import Domain
from nae.ranges.gates import Units

__all__ = ["Forest", "Lines"]

_STEP = 0.5  # logits move by about this much between two vertices
_COST_STEP = 0.02  # as do costs, in shares of the training rows
_PLACES = 2**23  # numbers that are kept of what all vertices add to the units
_FINEST = 1e-5  # of costs and logits; lines on which they move by less are not halved


class Lines:
    """Lines that were halved: the vertices at their ends, and how values at new vertices follow from these.

    Every line becomes two nodes, each with two vertices of its own: from one end to the middle, and on to the other.
    """

    def __init__(self, nodes: IntArray, first: IntArray, last: IntArray) -> None:
        self.nodes, self.first, self.last = nodes, first, last

    def at_vertices(self, values: AnyArray, *, axis: int = 0) -> AnyArray:
        """Return values at the new vertices, given those at all vertices before; linear in between."""
        one, other = values.take(self.first, axis=axis), values.take(self.last, axis=axis)
        middle = (one + other) / 2
        found = np.stack([one, middle, middle, other], axis=axis + 1)
        return found.reshape(*values.shape[:axis], -1, *values.shape[axis + 1 :])

    @staticmethod
    def ends(values: AnyArray, *, axis: int = 0) -> tuple[AnyArray, AnyArray]:
        """Return, of values at the new vertices, those at the two ends of every new node."""
        at = np.arange(0, values.shape[axis], 2)
        return values.take(at, axis=axis), values.take(at + 1, axis=axis)


class Forest:
    """The moves of a row. Halving lines adds vertices and nodes."""

    def __init__(self, gate: Units, row: Cells, moves: Moves) -> None:
        n_places = _PLACES // len(moves.domains)
        domains = tuple(_refined(gate, one, moves, n_places) for one in moves.domains)
        added = [_added(gate, row, domain) for domain in domains]
        costs = [moves.costs(domain) for domain in domains]
        n_vertices = np.cumsum([1, *(len(domain) for domain in domains)])
        n_nodes = np.cumsum([1, *(len(domain.first) for domain in domains)])
        nothing = np.zeros(1, dtype=np.int64)
        self.domains = domains
        self.roots: IntArray = n_nodes[:-1]  # (domain,)
        # Of every node:
        self.feature = np.concatenate([nothing, *(np.full(len(one.first), one.feature) for one in domains)])
        self.first = _counted([one.first for one in domains], n_vertices, nothing)
        self.last = _counted([one.last for one in domains], n_vertices, nothing)
        self.children = _counted([one.children for one in domains], n_nodes, np.array([[-1, -1]]))  # -1 for none yet
        self.home = _counted([one.home for one in domains], n_nodes, nothing)
        self.least_cost: Array = np.concatenate([np.zeros(1), *map(_least, domains, costs)])
        self.most_cost: Array = np.concatenate([np.zeros(1), *map(_most, domains, costs)])
        # Of every vertex:
        self.cost: Array = np.concatenate([np.zeros(1), *costs])
        self.slot = np.concatenate([nothing, *(one.slot for one in domains)])
        self.fraction: Array = np.concatenate([np.zeros(1), *(one.fraction for one in domains)])
        self.owner = np.concatenate([nothing, *(np.full(len(one), one.feature) for one in domains)])
        self.is_here = np.concatenate([np.ones(1, dtype=bool), *(_is_here(one, row) for one in domains)])
        self.joined = np.concatenate([np.zeros(0, dtype=bool), *(np.append(False, one.joined) for one in domains)])
        # Of what is added to the units:
        self._added = Growing(_after_nothing(gate, added))
        self._low = Growing(_after_nothing(gate, list(map(_least, domains, added))))
        self._high = Growing(_after_nothing(gate, list(map(_most, domains, added))))
        self.open = self._how_open(np.arange(len(self.first)))

    @property
    def low(self) -> Array:
        """The least that every node adds to the units, (N, group, W * M / group)."""
        return self._low.values

    @property
    def high(self) -> Array:
        """The most that every node adds to the units."""
        return self._high.values

    def halve(self, nodes: IntArray) -> Lines | None:
        """Halve those of some nodes that are lines without children; return what was halved."""
        some = np.unique(nodes)
        some = some[(self.children[some, 0] < 0) & (self.first[some] < self.last[some])]
        if not len(some):
            return None
        lines = Lines(some, self.first[some], self.last[some])
        n_nodes, n_vertices, new = len(self.first), len(self.cost), np.arange(2 * len(some))
        self.children[some] = (n_nodes + new).reshape(-1, 2)
        self._add_vertices(lines)
        self.feature = np.append(self.feature, np.repeat(self.feature[some], 2))
        self.first = np.append(self.first, n_vertices + 2 * new)
        self.last = np.append(self.last, n_vertices + 2 * new + 1)
        self.home = np.append(self.home, n_nodes + new)
        self.children = np.append(self.children, np.full((len(new), 2), -1), axis=0)
        one, other = self.cost[self.first[n_nodes:]], self.cost[self.last[n_nodes:]]
        self.least_cost = np.append(self.least_cost, np.minimum(one, other))
        self.most_cost = np.append(self.most_cost, np.maximum(one, other))
        self.open = np.append(self.open, self._how_open(n_nodes + new))
        return lines

    def _add_vertices(self, lines: Lines) -> None:
        place = lines.at_vertices(self.slot + self.fraction)
        # The end of a line may be the knot at which the next one begins.
        slot = np.repeat(self.slot[lines.first], 4)
        self.slot, self.fraction = np.append(self.slot, slot), np.append(self.fraction, place - slot)
        self.cost = np.append(self.cost, lines.at_vertices(self.cost))
        self.owner = np.append(self.owner, np.repeat(self.owner[lines.first], 4))
        here = np.stack([self.is_here[lines.first], *np.zeros((2, len(slot) // 4), dtype=bool)], axis=1)
        self.is_here = np.append(self.is_here, np.column_stack([here, self.is_here[lines.last]]))
        self.joined = np.append(self.joined, np.tile([False, True], len(slot) // 2))
        added = lines.at_vertices(self._added.values)
        one, other = lines.ends(added)
        self._added.append(added)
        self._low.append(np.minimum(one, other))
        self._high.append(np.maximum(one, other))

    def _how_open(self, nodes: IntArray) -> Array:
        """Return about how much nodes leave open: how far logits and costs move; 0 where they are not halved."""
        moved = (self.high[nodes] - self.low[nodes]).mean(axis=(1, 2))
        moved += self.most_cost[nodes] - self.least_cost[nodes]
        is_more = self.first[nodes] < self.last[nodes]
        is_coarse = (self.children[nodes, 0] >= 0) | (moved > _FINEST)
        return np.where(is_more & is_coarse, moved + 1e-12, 0.0)

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


def _refined(gate: Units, domain: Domain, moves: Moves, n_places: int) -> Domain:
    finer = gate.refined(domain, step=_STEP, n_places=n_places)
    width = gate.along(finer)[0].size
    return finer.refined(np.abs(np.diff(moves.costs(finer))), step=_COST_STEP, most=n_places // width)


def _added(gate: Units, row: Cells, domain: Domain) -> Array:
    """Return what every vertex adds to the units of the row, (V, W, M)."""
    i = domain.feature
    with_row = Domain(
        i,
        np.append(row.slot[0, i], domain.slot),
        np.append(row.fraction[0, i], domain.fraction),
        np.append(False, domain.joined),
    )
    return gate.along(with_row)[1:]


def _counted(parts: Sequence[IntArray], starts: IntArray, nothing: IntArray) -> IntArray:
    """Return numbers of nodes or vertices, counted over all features; -1 stays."""
    moved = [np.where(part >= 0, part + start, -1) for part, start in zip(parts, starts, strict=False)]
    return np.concatenate([nothing, *moved])


def _most(domain: Domain, values: Array) -> Array:
    return domain.largest(values)


def _least(domain: Domain, values: Array) -> Array:
    return -domain.largest(-values)


def _after_nothing(gate: Units, parts: Sequence[Array]) -> Array:
    """Return units (n, W, M) one after another, after a zero, (N, group, W * M / group)."""
    apart = [np.asarray(part, dtype=np.float64).reshape(len(part), gate.n_first, -1) for part in parts]
    return np.concatenate([np.zeros_like(apart[0][:1]), *apart])


def _is_here(domain: Domain, row: Cells) -> BoolArray:
    here = row.slot[0, domain.feature] + row.fraction[0, domain.feature]
    return np.asarray(np.isclose(domain.slot + domain.fraction, here, rtol=0.0, atol=1e-9))
