"""A problem: the scores of some rows, a few of whose features may lie anywhere in a domain.

All that bounds read is looked up here once: of every row what does not vary, and of every node of a domain the least
and the most of what varies.

Shapes: B rows, K experts, F features, M members, W units of the gate; V vertices and N nodes of a domain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from nae._typing import Array, IntArray
from nae.certificates import Tables
from nae.encoding.cells import Cells
from nae.ranges.domains import Domain
from nae.ranges.gates import Units
from nae.tables.lookup import interpolate
from nae.tables.model import TableModel

__all__ = ["Clamp", "Line", "Mixed", "Output", "Own", "Problem"]

_STEP = 0.1  # logits move by about this much between two vertices
_PLACES = 2**23  # numbers that are kept of what all nodes add to the units


@dataclass(frozen=True, eq=False)
class Mixed:
    """Experts in descending order, and where their weights stand among those of all features."""

    experts: Array  # (n, K, column)
    positions: IntArray  # (n, K, column)

    @classmethod
    def of(cls, experts: Array, positions: IntArray) -> Self:
        """Return experts (n, K, column) in their order; ``positions`` (K, column) are those of the columns."""
        order = np.argsort(-experts, axis=1, kind="stable")
        everywhere = np.broadcast_to(positions, experts.shape)
        return cls(np.take_along_axis(experts, order, axis=1), np.take_along_axis(everywhere, order, axis=1))

    def take(self, at: IntArray) -> "Mixed":
        """Return some of the rows or nodes."""
        return Mixed(self.experts[at], self.positions[at])

    def read(self, weights: Array) -> Array:
        """Return weights (n, ...) in the order of the experts, (n, K, column)."""
        n = len(weights)
        width = weights[0].size if n else 0
        return weights.reshape(-1).take(self.positions + width * np.arange(n)[:, None, None])


@dataclass(frozen=True, eq=False)
class Clamp:
    """The least and the largest contribution; infinite without clamps."""

    lower: Array
    upper: Array

    @classmethod
    def none(cls, *shape: int) -> Self:
        """Return what clamps nothing."""
        return cls(np.full(shape, -np.inf), np.full(shape, np.inf))

    def take(self, at: IntArray) -> "Clamp":
        """Return the clamps of some rows or nodes."""
        return Clamp(self.lower[at], self.upper[at])

    def clip(self, values: Array) -> Array:
        """Return values within the clamps."""
        return np.asarray(np.minimum(np.maximum(values, self.lower), self.upper))


@dataclass(frozen=True, eq=False)
class Own:
    """What a feature with a domain contributes to one output."""

    curve: Array  # (V, K * M), the experts, divided by the number of members
    least: Mixed  # (N, K, M), the least of every expert within a node
    most: Mixed
    room: Array  # (N, M), the largest distance between two experts at one value within a node
    clamp: Clamp  # (V,)
    lowest: Clamp  # (N,), the least ends within a node
    highest: Clamp  # (N,), the largest ends


@dataclass(frozen=True, eq=False)
class Output:
    """One output, and what it counts in the score."""

    factor: float
    known: Mixed  # (B, K, features without a domain * M)
    clamp: Clamp  # (B, features without a domain)
    own: tuple[Own, ...]  # per domain


@dataclass(frozen=True, eq=False)
class Line:
    """A domain, and what its nodes add to the units."""

    domain: Domain
    low: Array  # (N, W * M)
    high: Array  # (N, W * M)
    open: Array  # (N,), about how much a node leaves open; -1 for a node without children


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows, domains and a score."""

    model: TableModel
    start: float  # the intercept
    slack: float  # by how much rounding may move a logit; 0 where this cannot move weights from one expert to another
    gate: Units
    units: Array  # (B, W * M), with the first vertex of every domain
    lines: tuple[Line, ...]
    outputs: tuple[Output, ...]

    @classmethod
    def of(cls, tables: Tables, cells: Cells, domains: Sequence[Domain]) -> Self:
        """Return the problem of some rows; what they hold for a feature with a domain does not matter."""
        model, gate = tables.model, Units(tables.model)
        cells = Cells(cells.slot.astype(np.int64), cells.fraction.astype(np.float64))
        places = _PLACES // max(len(domains), 1)
        domains = [gate.refined(domain, step=_STEP, n_places=places) for domain in domains]
        for domain in domains:
            cells = domain.place(cells, np.zeros(len(cells), dtype=np.int64))
        used = np.flatnonzero(tables.direction)
        return cls(
            model=model,
            start=float(model.intercept @ tables.direction),
            slack=2 * tables.logit_rounding if tables.jumps else 0.0,
            gate=gate,
            units=gate.at(cells),
            lines=tuple(_line(gate, domain) for domain in domains),
            outputs=tuple(_output(model, cells, domains, int(o), float(tables.direction[o])) for o in used),
        )

    @property
    def n_rows(self) -> int:
        return len(self.units)

    @property
    def varying(self) -> list[int]:
        """The features that have a domain."""
        return [line.domain.feature for line in self.lines]

    def logits(self, rows: IntArray, nodes: IntArray) -> tuple[Array, Array]:
        """Return the least and the largest logits of boxes, (n, K, F, M) each; ``nodes`` is (n, domain)."""
        low = self.units[rows]
        high = low + self.slack
        low -= self.slack
        for line, node in zip(self.lines, nodes.T, strict=True):
            low += line.low[node]
            high += line.high[node]
        return self.gate.logits(low, high)


def _line(gate: Units, domain: Domain) -> Line:
    added = gate.along(domain)
    low, high = -domain.largest(-added), domain.largest(added)
    moved = (high - low).sum(axis=(1, 2))
    return Line(
        domain=domain,
        low=low.reshape(len(low), -1),
        high=high.reshape(len(high), -1),
        open=np.where(domain.children[:, 0] >= 0, moved, -1.0),
    )


def _output(model: TableModel, cells: Cells, domains: Sequence[Domain], output: int, factor: float) -> Output:
    n_experts, n_features, n_members = model.n_experts, model.n_features, model.n_members
    positions = np.arange(n_experts * n_features * n_members).reshape(n_experts, n_features, n_members)
    known = np.setdiff1d(np.arange(n_features), [domain.feature for domain in domains])
    rows = Cells(cells.slot[:, known], cells.fraction[:, known])
    experts = interpolate(model.experts[:, :, output], rows).transpose(0, 2, 1, 3)
    clamp = Clamp.none(len(cells), len(known))
    if model.clamps is not None:
        clamp = Clamp(*(ends[:, :, output] for ends in model.clamps.astype(np.float64).at(rows)))
    return Output(
        factor=factor,
        known=Mixed.of(experts.reshape(len(cells), n_experts, -1), positions[:, known].reshape(n_experts, -1)),
        clamp=clamp,
        own=tuple(_own(model, domain, output, positions[:, domain.feature]) for domain in domains),
    )


def _own(model: TableModel, domain: Domain, output: int, positions: IntArray) -> Own:
    experts = domain.read(model.experts[:, :, output])
    clamp = Clamp.none(len(domain))
    if model.clamps is not None:
        clamp = Clamp(*(domain.read(ends[:, output]) for ends in (model.clamps.lower, model.clamps.upper)))
    return Own(
        curve=experts.reshape(len(domain), -1) / model.n_members,
        least=Mixed.of(-domain.largest(-experts), positions),
        most=Mixed.of(domain.largest(experts), positions),
        room=domain.largest(np.ptp(experts, axis=1)),
        clamp=clamp,
        lowest=Clamp(-domain.largest(-clamp.lower), -domain.largest(-clamp.upper)),
        highest=Clamp(domain.largest(clamp.lower), domain.largest(clamp.upper)),
    )
