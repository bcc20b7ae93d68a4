"""The score of one threshold: what the features contribute to it, as they are and with all moves side by side."""

import numpy as np

from nae._typing import Array
from nae.certificates import Tables
from nae.decisions.recourse.forest import Forest, Halved
from nae.decisions.recourse.goals import Threshold
from nae.decisions.recourse.growing import Growing
from nae.decisions.recourse.runs import Runs
from nae.encoding.cells import Cells
from nae.ranges.problem import Clamp, Mixed, Output, Own, Shown

__all__ = ["Part", "Score"]

_FAR = 1e300  # beyond every contribution, but finite, so that it can be interpolated


class Part:
    """What one output of the model adds to a score."""

    def __init__(self, shown: Shown, row: Cells, forest: Forest) -> None:
        self.row: Output = shown.output(row, ())  # of the row as it is
        n_experts, n_members = shown.experts.shape[1:]
        self._members = np.arange(n_members)
        experts = [domain.read(shown.experts) for domain in forest.domains]  # (V, K, M) each
        # Of every vertex; vertex 0 contributes nothing:
        self._experts = Growing(np.concatenate([np.zeros((1, n_experts, n_members)), *experts]))
        ends = [[domain.read(end) for domain in forest.domains] for end in _ends(shown)]
        self._clamp = [Growing(np.concatenate([np.zeros(1), *end])) for end in ends]
        # Of every node:
        found = self._of_runs(Runs.of(forest.first, forest.last))
        self._nodes = [Growing(part, axis=axis) for part, axis in zip(found, (1, 1, 0, 0, 0, 0), strict=True)]
        self.own = self._as_it_is()  # of all moves

    def halve(self, halved: Halved) -> None:
        """Add the vertices and nodes of nodes that were halved."""
        for values in (self._experts, *self._clamp):
            values.append(halved.lines.at(values.values))
        for known, new in zip(self._nodes, self._of_runs(halved.runs), strict=True):
            known.append(new)
        self.own = self._as_it_is()

    def _of_runs(self, runs: Runs) -> tuple[Array, ...]:
        """Return the largest experts in their order, which these are, span, room, and the largest clamps of nodes."""
        experts = self._experts.values
        most = runs.largest(experts)  # (n, K, M)
        mixed = Mixed.of(most, self._members)
        span = (most.max(axis=1) - runs.least(experts).min(axis=1)).mean(axis=-1)
        room = runs.largest(np.ptp(experts, axis=1))
        return (mixed.experts, mixed.order, span, room, *(runs.largest(end.values) for end in self._clamp))

    def _as_it_is(self) -> Own:
        experts, order, span, room, lower, upper = (part.values for part in self._nodes)
        at_vertices = self._experts.values
        return Own(
            curve=at_vertices.reshape(len(at_vertices), -1).T / len(self._members),
            most=Mixed(experts, order, self._members),
            span=span,
            room=room,
            clamp=Clamp(*(end.values for end in self._clamp)),
            highest=Clamp(lower, upper),
        )


def _ends(shown: Shown) -> tuple[Array, Array]:
    """Return the clamps of an output at all slots, (T,) each; far away if there are none."""
    if shown.clamps is None:
        far = np.full(len(shown.experts), _FAR)
        return -far, far
    return shown.clamps.lower[:, 0], shown.clamps.upper[:, 0]


class Score:
    """The score of one threshold."""

    def __init__(self, tables: Tables, threshold: Threshold, row: Cells, forest: Forest) -> None:
        model, direction = tables.model, tables.direction
        self.start = float(model.intercept @ direction)
        here = float(model.contribute(row).sum(axis=1)[0] @ direction) + self.start
        self.least = threshold.least - 2 * tables.rounding  # that the score must be
        self.gain = threshold.least - here  # how far the row is from it
        shown = [Shown.of(model, int(o), float(direction[o])) for o in np.flatnonzero(direction)]
        self.parts = [Part(one, row, forest) for one in shown]
