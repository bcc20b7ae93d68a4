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
from nae.tables.clamps import Clamps
from nae.tables.lookup import interpolate
from nae.tables.model import TableModel

__all__ = ["Clamp", "Line", "Mixed", "Output", "Own", "Problem", "Shown"]

_STEP = 0.1  # logits move by about this much between two vertices
_PLACES = 2**23  # numbers that are kept of what all nodes add to the units


@dataclass(frozen=True, eq=False)
class Mixed:
    """Experts in descending order, and which expert each of them is."""

    experts: Array  # (K, n, column)
    order: IntArray  # (K, n, column)
    columns: IntArray  # (column,), where a column stands among those of all features

    @classmethod
    def of(cls, experts: Array, columns: IntArray) -> Self:
        """Return experts (n, K, column) in their order."""
        by_expert = np.ascontiguousarray(experts.swapaxes(0, 1))
        order = np.argsort(-by_expert, axis=0, kind="stable")
        return cls(np.take_along_axis(by_expert, order, axis=0), order, columns)

    def take(self, at: IntArray) -> "Mixed":
        """Return some of the rows or nodes."""
        return Mixed(self.experts.take(at, axis=1), self.order.take(at, axis=1), self.columns)

    def read(self, weights: Array) -> Array:
        """Return weights (K, n, all columns) in the order of the experts, (K, n, column)."""
        n, width = weights.shape[1:]
        at = self.order * (n * width) + (width * np.arange(n)[:, None] + self.columns)
        return np.asarray(weights.reshape(-1).take(at))


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

    curve: Array  # (K * M, V), the experts, divided by the number of members
    most: Mixed  # (K, N, M), the largest of every expert within a node
    span: Array  # (N,), the largest minus the least expert within a node, a mean over the members
    room: Array  # (N, M), the largest distance between two experts at one value within a node
    clamp: Clamp  # (V,)
    highest: Clamp  # (N,), the largest ends within a node


@dataclass(frozen=True, eq=False)
class Output:
    """What one output adds to the score. Experts and clamps are multiplied by what the output counts in the score."""

    known: Mixed  # (K, B, features without a domain * M)
    clamp: Clamp  # (B, features without a domain)
    own: tuple[Own, ...]  # per domain


@dataclass(frozen=True, eq=False)
class Line:
    """A domain, and what its nodes add to the units."""

    domain: Domain
    low: Array  # (group, N, W * M / group)
    high: Array
    open: Array  # (N,), about how much a node leaves open; 0 if halves are not better


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows, domains and a score."""

    model: TableModel
    start: float  # the intercept
    slack: float  # by how much rounding may move a logit; 0 where this cannot move weights from one expert to another
    gate: Units
    units: Array  # (group, B, W * M / group), with the first vertex of every domain
    lines: tuple[Line, ...]
    outputs: tuple[Output, ...]

    @classmethod
    def of(cls, tables: Tables, cells: Cells, domains: Sequence[Domain], *, sign: int = 1) -> Self:
        """Return the problem of some rows, for the score or (``sign`` -1) its negative.

        What the rows hold for a feature with a domain does not matter.
        """
        model, gate = tables.model, Units(tables.model)
        cells = Cells(cells.slot.astype(np.int64), cells.fraction.astype(np.float64))
        places = _PLACES // max(len(domains), 1)
        domains = [gate.refined(domain, step=_STEP, n_places=places) for domain in domains]
        for domain in domains:
            cells = domain.place(cells, np.zeros(len(cells), dtype=np.int64))
        direction = sign * tables.direction
        shown = [Shown.of(model, int(o), float(direction[o])) for o in np.flatnonzero(direction)]
        return cls(
            model=model,
            start=float(model.intercept @ direction),
            slack=2 * tables.logit_rounding if tables.jumps else 0.0,
            gate=gate,
            units=gate.at(cells),
            lines=tuple(_line(gate, domain) for domain in domains),
            outputs=tuple(one.output(cells, domains) for one in shown),
        )

    @property
    def n_rows(self) -> int:
        return int(self.units.shape[1])

    @property
    def varying(self) -> list[int]:
        """The features that have a domain."""
        return [line.domain.feature for line in self.lines]

    def logits(self, rows: IntArray, nodes: IntArray) -> tuple[Array, Array]:
        """Return the least and the largest logits of boxes, (K, n, F * M) each; ``nodes`` is (n, domain)."""
        low = self.units.take(rows, axis=1)
        high = low + self.slack
        low -= self.slack
        for line, node in zip(self.lines, nodes.T, strict=True):
            low += line.low.take(node, axis=1)
            high += line.high.take(node, axis=1)
        return self.gate.logits(low, high)


def _line(gate: Units, domain: Domain) -> Line:
    added = gate.along(domain)
    low, high = -domain.largest(-added), domain.largest(added)
    moved = (high - low).sum(axis=(1, 2))
    return Line(
        domain=domain,
        low=gate.grouped(low),
        high=gate.grouped(high),
        open=np.where(domain.children[:, 0] >= 0, moved, 0.0),
    )


@dataclass(frozen=True, eq=False)
class Shown:
    """The tables of one output, multiplied by what it counts in the score."""

    model: TableModel
    experts: Array  # (T, K, M)
    clamps: Clamps | None

    @classmethod
    def of(cls, model: TableModel, output: int, factor: float) -> Self:
        clamps = None
        if model.clamps is not None:
            ends = (factor * end[:, [output]].astype(np.float64) for end in (model.clamps.lower, model.clamps.upper))
            clamps = Clamps(*np.sort(np.stack(list(ends)), axis=0))
        return cls(model, factor * model.experts[:, :, output], clamps)

    def output(self, cells: Cells, domains: Sequence[Domain]) -> Output:
        """Return what the output adds to the score of rows."""
        n_experts, n_features, n_members = Units(self.model).shape
        columns = np.arange(n_features * n_members).reshape(n_features, n_members)
        known = np.setdiff1d(np.arange(n_features), [domain.feature for domain in domains])
        rows = Cells(cells.slot[:, known], cells.fraction[:, known])
        experts = interpolate(self.experts, rows).transpose(0, 2, 1, 3).reshape(len(cells), n_experts, -1)
        clamp = Clamp.none(len(cells), len(known))
        if self.clamps is not None:
            clamp = Clamp(*(end[:, :, 0] for end in self.clamps.at(rows)))
        return Output(
            known=Mixed.of(experts, columns[known].reshape(-1)),
            clamp=clamp,
            own=tuple(self.own(domain, columns[domain.feature]) for domain in domains),
        )

    def own(self, domain: Domain, columns: IntArray) -> Own:
        """Return what a feature with a domain contributes; ``columns`` are those of its members."""
        experts = domain.read(self.experts)
        clamp = Clamp.none(len(domain))
        if self.clamps is not None:
            clamp = Clamp(domain.read(self.clamps.lower[:, 0]), domain.read(self.clamps.upper[:, 0]))
        most = domain.largest(experts)
        return Own(
            curve=experts.reshape(len(domain), -1).T / self.model.n_members,
            most=Mixed.of(most, columns),
            span=(most.max(axis=1) + domain.largest(-experts).max(axis=1)).mean(axis=-1),
            room=domain.largest(np.ptp(experts, axis=1)),
            clamp=clamp,
            highest=Clamp(domain.largest(clamp.lower), domain.largest(clamp.upper)),
        )
