"""Lower bounds of the cost in boxes: what a box must cost at least to meet a goal.

Let C be the cost and S the score, which must be at least s. For any rate r > 0, a row in the box that meets this need
has S - r C >= s - r C, so C >= (s - max (S - r C)) / r. The maximum is bounded like that of the score in
:mod:`nae.ranges.bounds`: costs are linear between two vertices, so they only tilt what a feature contributes. A rate of
zero asks whether the box holds any such row.

Shapes: n boxes, F features, K experts, M members, N nodes, V vertices.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.certificates import tables_of
from nae.decisions.recourse.forest import Forest
from nae.decisions.recourse.goals import Goal
from nae.decisions.recourse.neighbours import Neighbours, NodePairs
from nae.decisions.recourse.scores import Score
from nae.encoding.cells import Cells
from nae.ranges.gates import Units
from nae.ranges.mixing import anchor, largest, limits
from nae.ranges.peaks import has, homes, peak
from nae.ranges.problem import Mixed, Own
from nae.tables.model import TableModel

__all__ = ["Space"]

_CHUNK = 2**16  # logits that are computed at once
_NEAR = 0.6  # of all weight; where less is certain, fixed shares say nothing
_RATES = (0.0, 0.3, 0.6, 0.9)  # of what the score must gain per cost


@dataclass(frozen=True, eq=False)
class Space:
    """All boxes of a row, and the needs of its goal."""

    model: TableModel
    forest: Forest
    gate: Units
    units: Array  # (group, 1, W * M / group)
    slack: float
    needs: tuple[tuple[Score, ...], ...]
    pairs: NodePairs | None

    @classmethod
    def of(
        cls, model: TableModel, row: Cells, forest: Forest, goal: Goal, neighbours: Neighbours | None = None
    ) -> Self:
        """Return the space of one row's moves."""
        tables = [[tables_of(model, one.direction) for one in need] for need in goal.needs]
        exact = tables[0][0]
        gate = Units(exact.model)
        needs = [
            tuple(Score.of(own, one, row, forest) for own, one in zip(group, need, strict=True))
            for group, need in zip(tables, goal.needs, strict=True)
        ]
        slack = 2 * exact.logit_rounding if exact.jumps else 0.0
        pairs = None if neighbours is None else NodePairs.of(neighbours, forest.domains)
        return cls(exact.model, forest, gate, gate.at(row), slack, tuple(needs), pairs)

    def bound(self, nodes: IntArray, guess: float) -> Array:
        """Return lower bounds of the cost in boxes (n, change), (n,); inf where no row reaches the goal.

        The bounds are good near costs of about ``guess``.
        """
        step = max(1, _CHUNK // int(np.prod(self.gate.shape)))
        parts = [self._bound(nodes[at : at + step], guess) for at in range(0, len(nodes), step)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _bound(self, nodes: IntArray, guess: float) -> Array:
        found = self.forest.least_cost[nodes].sum(axis=1)
        weights = limits(self.model.routing, *self._logits(nodes))
        slots = [_Slot.of(self, weights, nodes[:, change]) for change in range(nodes.shape[1])]
        changed = _changed(self.forest.feature[nodes], nodes > 0, self.model.n_features)
        for need in self.needs:
            bounds = [self._cost(score, weights, slots, changed, guess) for score in need]
            found = np.maximum(found, np.minimum.reduce(bounds))
        return found if self.pairs is None else np.where(self.pairs.may_occur(nodes, changed), found, np.inf)

    def _logits(self, nodes: IntArray) -> tuple[Array, Array]:
        low = np.repeat(self.units, len(nodes), axis=1)
        high = low + self.slack
        low -= self.slack
        for change in nodes.T:
            low += self.forest.low.take(change, axis=1)
            high += self.forest.high.take(change, axis=1)
        return self.gate.logits(low, high)

    def _cost(
        self, score: Score, weights: tuple[Array, Array], slots: Sequence["_Slot"], changed: BoolArray, guess: float
    ) -> Array:
        """Return what boxes must cost at least to meet one threshold, (n,)."""
        rates = np.array(_RATES if 0 < score.gain < np.inf else _RATES[:1])
        if len(rates) > 1:
            rates *= score.gain / max(guess, 1e-9)
        total = np.full((len(rates), len(changed)), score.start)
        for at, output in enumerate(score.outputs):
            mean = _means(self, output.known.take(np.zeros(len(changed), dtype=np.int64)), weights)
            total += np.where(changed, 0.0, output.clamp.clip(mean)).sum(axis=1)
            tilts = rates if at == 0 else np.zeros_like(rates)  # costs are subtracted once
            total += sum(slot.contributions(self, output.own[0], tilts) for slot in slots)
        missing = score.least - total
        costs = missing[1:] / rates[1:, None]
        return np.where(missing[0] > 0, np.inf, costs.max(axis=0, initial=0.0))


@dataclass(frozen=True, eq=False)
class _Slot:
    """One change of every box: its node, and what is known about the weights of the feature's experts."""

    node: IntArray  # (n,)
    weights: tuple[Array, Array]  # (K, n, M) each, the least and the most
    share: Array  # (n, K * M)
    moved: Array  # (n, M); 2 for no shares

    @classmethod
    def of(cls, space: Space, weights: tuple[Array, Array], node: IntArray) -> Self:
        n_members = space.model.n_members
        columns = space.forest.feature[node][:, None] * n_members + np.arange(n_members)
        least, most = (part[:, np.arange(len(node))[:, None], columns] for part in weights)
        share, moved = np.zeros_like(least), np.full(least.shape[1:], 2.0)
        some = np.flatnonzero((least.sum(axis=0) / most.sum(axis=0)).mean(axis=-1) > _NEAR)
        share[:, some], moved[some] = anchor(least[:, some], most[:, some])
        return cls(node, (least, most), share.swapaxes(0, 1).reshape(len(node), -1), moved)

    def contributions(self, space: Space, own: Own, rates: Array) -> Array:
        """Return the largest contribution minus rate times cost, (rate, n)."""
        forest, node = space.forest, self.node
        order = own.most.order[:, node]
        least, most = (np.take_along_axis(part, order, axis=0) for part in self.weights)
        mean = largest(space.model.routing, least, most, own.most.experts[:, node]).mean(axis=-1)
        best = own.highest.take(node).clip(mean) - rates[:, None] * forest.least_cost[node]
        slack = (self.moved * own.room[node]).mean(axis=-1)
        helps = (self.moved <= 1.0).all(axis=-1) & (slack < own.span[node])
        for start, stop, some in homes(forest, node, np.flatnonzero(helps)):
            curve = self.share[some] @ own.curve[:, start:stop] + slack[some, None]
            lower, upper = own.clamp.lower[start:stop], own.clamp.upper[start:stop]
            within = has(forest, node[some], start, stop)
            for at, rate in enumerate(rates):
                cost = rate * forest.cost[start:stop]
                top = peak(np.maximum(curve, lower) - cost, np.broadcast_to(upper - cost, curve.shape), within)
                best[at, some] = np.minimum(best[at, some], top)
        return best


def _changed(feature: IntArray, is_move: BoolArray, n_features: int) -> BoolArray:
    """Return which features boxes change, (n, F)."""
    found = np.zeros((len(feature), n_features), dtype=bool)
    rows, change = np.nonzero(is_move)
    found[rows, feature[rows, change]] = True
    return found


def _means(space: Space, mixed: Mixed, weights: tuple[Array, Array]) -> Array:
    """Return the mean over the members of the largest means of experts, (n, F)."""
    found = largest(space.model.routing, mixed.read(weights[0]), mixed.read(weights[1]), mixed.experts)
    return np.asarray(found.reshape(len(found), -1, space.model.n_members).mean(axis=-1))
