"""All moves of a row side by side: their vertices and nodes, what each adds to the units of the gate, and its cost.

Vertex 0 and node 0 stand for no move: they add nothing and cost nothing. A box has a node for each feature that it
changes, and node 0 for every change that it does not need.

Shapes: N nodes, V vertices, K experts, M members, W units of the gate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.decisions.recourse.moves import Moves
from nae.encoding.cells import Cells
from nae.ranges import Domain
from nae.ranges.gates import Units

__all__ = ["Forest"]

_STEP = 0.1  # logits move by about this much between two vertices
_COST_STEP = 0.004  # as do costs, in shares of the training rows
_PLACES = 2**23  # numbers that are kept of what all nodes add to the units


@dataclass(frozen=True, eq=False)
class Forest:
    """The moves of a row."""

    domains: tuple[Domain, ...]
    feature: IntArray  # (N,), that a node moves; 0 for node 0
    first: IntArray  # (N,)
    last: IntArray  # (N,)
    children: IntArray  # (N, 2), -1 for none
    home: IntArray  # (N,)
    roots: IntArray  # (domain,)
    joined: BoolArray  # (V - 1,)
    cost: Array  # (V,)
    least_cost: Array  # (N,)
    most_cost: Array  # (N,)
    low: Array  # (group, N, W * M / group)
    high: Array
    open: Array  # (N,), about how much a node leaves open; 0 without children
    slot: IntArray  # (V,)
    fraction: Array  # (V,)
    is_here: BoolArray  # (V,), whether a vertex is the row's own value

    @classmethod
    def of(cls, gate: Units, row: Cells, moves: Moves, *, fineness: float = 1.0) -> Self:
        """Return the moves of a row, on vertices near each other; nearer ones with a larger ``fineness``."""
        domains = tuple(_refined(gate, one, moves, fineness) for one in moves.domains)
        added = [_added(gate, row, domain) for domain in domains]
        costs = [moves.costs(domain) for domain in domains]
        n_vertices = np.cumsum([1, *(len(domain) for domain in domains)])
        n_nodes = np.cumsum([1, *(len(domain.first) for domain in domains)])

        def nodes(of: Callable[[Domain], IntArray], starts: IntArray, nothing: IntArray) -> IntArray:
            moved = [np.where(of(one) >= 0, of(one) + start, -1) for one, start in zip(domains, starts, strict=False)]
            return np.concatenate([nothing, *moved])

        zero = np.zeros(1, dtype=np.int64)
        return cls(
            domains=domains,
            feature=np.concatenate([zero, *(np.full(len(one.first), one.feature) for one in domains)]),
            first=nodes(lambda one: one.first, n_vertices, zero),
            last=nodes(lambda one: one.last, n_vertices, zero),
            children=nodes(lambda one: one.children, n_nodes, np.array([[-1, -1]])),
            home=nodes(lambda one: one.home, n_nodes, zero),
            roots=n_nodes[:-1],
            joined=np.concatenate([np.zeros(0, dtype=bool), *(_apart(one.joined) for one in domains)]),
            cost=np.concatenate([np.zeros(1), *costs]),
            least_cost=_largest(domains, [-cost for cost in costs], -1),
            most_cost=_largest(domains, costs, 1),
            low=_grouped(gate, domains, [-one for one in added], -1),
            high=_grouped(gate, domains, added, 1),
            open=_open(gate, domains, added, costs),
            slot=np.concatenate([row.slot[0, :1], *(one.slot for one in domains)]),
            fraction=np.concatenate([row.fraction[0, :1], *(one.fraction for one in domains)]),
            is_here=np.concatenate([np.ones(1, dtype=bool), *(_is_here(one, row) for one in domains)]),
        )

    def place(self, row: Cells, vertices: IntArray) -> Cells:
        """Return copies of a row with the moves of vertices (n, change)."""
        n = len(vertices)
        slot, fraction = np.repeat(row.slot, n, axis=0), np.repeat(row.fraction, n, axis=0)
        owner = self.owner[vertices]
        for change in range(vertices.shape[1]):
            rows = np.flatnonzero(vertices[:, change] > 0)
            at = (rows, owner[rows, change])
            slot[at], fraction[at] = self.slot[vertices[rows, change]], self.fraction[vertices[rows, change]]
        return Cells(slot, fraction)

    def cheaper(self, vertex: int) -> int:
        """Return the vertex at the other end of a line that costs less, or the vertex itself if there is none."""
        near = [at for at, line in ((vertex - 1, vertex - 1), (vertex + 1, vertex)) if self._has_line(line)]
        return min([vertex, *near], key=lambda at: float(self.cost[at]))

    def _has_line(self, line: int) -> bool:
        return 0 <= line < len(self.joined) and bool(self.joined[line])

    @cached_property
    def owner(self) -> IntArray:
        """The feature that a vertex moves, (V,)."""
        sizes = [1, *(len(domain) for domain in self.domains)]
        return np.repeat([0, *(domain.feature for domain in self.domains)], sizes)


def _refined(gate: Units, domain: Domain, moves: Moves, fineness: float) -> Domain:
    n_places = _PLACES // len(moves.domains)
    finer = gate.refined(domain, step=_STEP / fineness, n_places=n_places)
    width = gate.along(finer)[0].size
    changed = np.abs(np.diff(moves.costs(finer)))
    return finer.refined(changed, step=_COST_STEP / fineness, most=n_places // width)


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


def _is_here(domain: Domain, row: Cells) -> BoolArray:
    here = row.slot[0, domain.feature] + row.fraction[0, domain.feature]
    return np.asarray(np.isclose(domain.slot + domain.fraction, here, rtol=0.0, atol=1e-9))


def _open(gate: Units, domains: Sequence[Domain], added: Sequence[Array], costs: Sequence[Array]) -> Array:
    """Return about how much is open in a node: how far logits and costs move."""
    found = [np.zeros(1)]
    for domain, own, cost in zip(domains, added, costs, strict=True):
        moved = (domain.largest(own) + domain.largest(-own)).mean(axis=(1, 2))
        moved += domain.largest(cost) + domain.largest(-cost)
        found.append(np.where(domain.children[:, 0] >= 0, moved + 1e-12, 0.0))
    return np.concatenate(found)


def _apart(joined: BoolArray) -> BoolArray:
    """Return which vertices are joined, where those of another feature stand before."""
    return np.append(False, joined)


def _largest(domains: Sequence[Domain], values: Sequence[Array], sign: int) -> Array:
    """Return the largest values (V, ...) within every node; ``sign`` -1 returns them with the other sign."""
    found = [sign * domain.largest(value) for domain, value in zip(domains, values, strict=True)]
    return np.concatenate([np.zeros((1, *values[0].shape[1:])), *found])


def _grouped(gate: Units, domains: Sequence[Domain], added: Sequence[Array], sign: int) -> Array:
    return gate.grouped(_largest(domains, added, sign))
