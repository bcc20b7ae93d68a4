"""Lower bounds of the cost in boxes: what a box must cost at least to meet a goal.

Let C be the cost and S the score, which must be at least s. For any rate r > 0, a row in the box that meets this need
has S - r C >= s - r C, so C >= (s - max (S - r C)) / r. The maximum is bounded like that of the score in
:mod:`nae.ranges.bounds`: costs are linear between two vertices, so they only tilt what a feature contributes. A rate of
zero asks whether the box holds any such row.

Shapes: n boxes, F features, K experts, M members.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nae._typing import Array, BoolArray, IntArray
from nae.certificates import tables_of
from nae.decisions.recourse.boxes import Boxes
from nae.decisions.recourse.forest import Forest
from nae.decisions.recourse.goals import Goal
from nae.decisions.recourse.neighbours import Neighbours, NodePairs
from nae.decisions.recourse.rests import Rests
from nae.decisions.recourse.scores import Part, Score
from nae.decisions.recourse.slots import Slot
from nae.encoding.cells import Cells
from nae.ranges.gates import Units
from nae.ranges.mixing import largest, limits

__all__ = ["Space"]

_CHUNK = 2**16  # logits that are computed at once
_RATES = (0.0, 0.3, 0.6, 0.9)  # of what the score must gain per cost


class Space:
    """All boxes of a row, and the needs of its goal."""

    def __init__(self, row: Cells, forest: Forest, goal: Goal, rests: Rests, neighbours: Neighbours | None) -> None:
        tables = [[tables_of(goal.model, one.direction) for one in need] for need in goal.needs]
        pairs = [list(zip(*both, strict=True)) for both in zip(tables, goal.needs, strict=True)]
        exact = tables[0][0]
        self.forest, self.rests, self.model = forest, rests, exact.model
        self._gate = Units(exact.model)
        self._units = self._gate.at(row)  # (group, 1, W * M / group)
        self._slack = 2 * exact.logit_rounding if exact.jumps else 0.0
        self._needs = [[Score(own, one, row, forest) for own, one in need] for need in pairs]
        self._pairs = None if neighbours is None else NodePairs(neighbours, forest)

    def halve(self, nodes: IntArray) -> None:
        """Halve those of some nodes that have no halves yet."""
        halved = self.forest.halve(nodes)
        if halved is None:
            return
        for part in (part for need in self._needs for score in need for part in score.parts):
            part.halve(halved)
        if self._pairs is not None:
            self._pairs.halve(halved)

    def bound(self, boxes: Boxes, guess: float) -> Array:
        """Return lower bounds of the cost in boxes, (n,); inf where no row reaches the goal.

        The bounds are good near costs of about ``guess``.
        """
        step, at = max(1, _CHUNK // int(np.prod(self._gate.shape))), np.arange(len(boxes))
        parts = [self._bound(boxes.take(at[start : start + step]), guess) for start in range(0, len(boxes), step)]
        return np.concatenate([np.zeros(0), *parts])

    def _bound(self, boxes: Boxes, guess: float) -> Array:
        known = _Known(self, boxes, limits(self.model.routing, *self._logits(boxes)))
        found: Array = self.forest.least_cost[boxes.nodes].sum(axis=1)
        for need in self._needs:
            found = np.maximum(found, np.minimum.reduce([known.cost(score, guess) for score in need]))
        if self._pairs is not None:
            found = np.where(self._pairs.may_occur(boxes.nodes, known.changed), found, np.inf)
        return found

    def _logits(self, boxes: Boxes) -> tuple[Array, Array]:
        low = np.repeat(self._units, len(boxes), axis=1)
        high = low + self._slack
        low -= self._slack
        for change in boxes.nodes.T:
            low += self.forest.low.take(change, axis=0).swapaxes(0, 1)
            high += self.forest.high.take(change, axis=0).swapaxes(0, 1)
        if boxes.rest.any():
            self.rests.widen(low, high, boxes.rest, boxes.start)
        return self._gate.logits(low, high)


@dataclass(frozen=True, eq=False)
class _Known:
    """What is known about some boxes."""

    space: Space
    boxes: Boxes
    weights: tuple[Array, Array]  # (K, n, F * M) each, the least and the most

    @cached_property
    def slots(self) -> list[Slot]:
        """The changes of the boxes."""
        forest, n_members = self.space.forest, self.space.model.n_members
        return [Slot.of(forest, self.weights, node, n_members) for node in self.boxes.nodes.T]

    @cached_property
    def changed(self) -> BoolArray:
        """Which features the boxes change, (n, F)."""
        found = np.zeros((len(self.boxes), self.space.model.n_features), dtype=bool)
        rows, change = np.nonzero(self.boxes.nodes)
        found[rows, self.space.forest.feature[self.boxes.nodes[rows, change]]] = True
        return found

    def cost(self, score: Score, guess: float) -> Array:
        """Return what the boxes must cost at least to meet one threshold, (n,)."""
        is_far = 0 < score.gain < np.inf
        rates = np.array(_RATES) * score.gain / max(guess, 1e-9) if is_far else np.zeros(1)
        missing = score.least - score.start - self._most(score, rates)
        costs = missing[1:] / rates[1:, None]
        return np.where(missing[0] > 0, np.inf, costs.max(axis=0, initial=0.0))

    def _most(self, score: Score, rates: Array) -> Array:
        """Return the largest sums of contributions minus rate times cost, (rate, n)."""
        found: Array = np.zeros((len(rates), len(self.boxes)))
        gain: Array = np.zeros((len(rates), len(self.boxes), len(self.space.rests.order)))
        for at, part in enumerate(score.parts):
            tilts = rates if at == 0 else np.zeros_like(rates)  # costs are subtracted once
            same = self._unchanged(part)
            found += np.where(self.changed, 0.0, same).sum(axis=1)
            for slot in self.slots:
                found += slot.contributions(part.own, self.space.model.routing, tilts)
            if self.boxes.rest.any():
                gain += self.space.rests.gained(part, self.space.model.routing, self.weights, tilts, same)
        if self.boxes.rest.any():
            found += self.space.rests.largest(gain, self.boxes.rest, self.boxes.start)
        return found

    def _unchanged(self, part: Part) -> Array:
        """Return the largest contributions of the features with the values of the row, (n, F)."""
        mixed, model = part.row.known.take(np.zeros(len(self.boxes), dtype=np.int64)), self.space.model
        mean = largest(model.routing, mixed.read(self.weights[0]), mixed.read(self.weights[1]), mixed.experts)
        return part.row.clamp.clip(mean.reshape(len(mean), -1, model.n_members).mean(axis=-1))
