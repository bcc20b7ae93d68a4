"""The score of one threshold: what the features contribute to it, as they are and with all moves side by side."""

from collections.abc import Sequence

import numpy as np

from nae._typing import Array
from nae.certificates import Tables
from nae.decisions.recourse.forest import Forest, Lines
from nae.decisions.recourse.goals import Threshold
from nae.decisions.recourse.growing import Growing
from nae.encoding.cells import Cells
from nae.ranges.problem import Clamp, Mixed, Output, Own, Shown

__all__ = ["Part", "Score"]


class Part:
    """What one output of the model adds to a score."""

    def __init__(self, shown: Shown, row: Cells, forest: Forest) -> None:
        self.row: Output = shown.output(row, ())  # of the row as it is
        self._members = np.arange(shown.model.n_members)
        parts = [shown.own(domain, self._members) for domain in forest.domains]
        order = np.concatenate([one.most.order for one in parts], axis=1)
        nothing = np.arange(len(order)).reshape(-1, 1, 1).repeat(len(self._members), axis=2)
        self._order = Growing(np.concatenate([nothing, order], axis=1), axis=1)
        self._experts = Growing(_joined([one.most.experts for one in parts], 1), axis=1)
        self._curve = Growing(_joined([one.curve for one in parts], 1), axis=1)
        self._span, self._room = (
            Growing(_joined([getattr(one, name) for one in parts], 0)) for name in ("span", "room")
        )
        self._clamp, self._highest = (_ends([getattr(one, name) for one in parts]) for name in ("clamp", "highest"))
        self.own = self._as_it_is()  # of all moves

    def halve(self, lines: Lines) -> None:
        """Add the nodes of lines that were halved."""
        curve = lines.at_vertices(self._curve.values, axis=1)
        experts = curve.reshape(-1, len(self._members), curve.shape[1]).swapaxes(1, 2) * len(self._members)
        one, other = lines.ends(experts, axis=1)  # (K, n, M)
        most = Mixed.of(np.maximum(one, other).swapaxes(0, 1), self._members)
        self._span.append((most.experts.max(axis=0) - np.minimum(one, other).min(axis=0)).mean(axis=-1))
        self._room.append(np.maximum(np.ptp(one, axis=0), np.ptp(other, axis=0)))
        self._order.append(most.order)
        self._experts.append(most.experts)
        self._curve.append(curve)
        for clamp, highest in zip(self._clamp, self._highest, strict=True):
            new = lines.at_vertices(clamp.values)
            highest.append(np.maximum(*lines.ends(new)))
            clamp.append(new)
        self.own = self._as_it_is()

    def _as_it_is(self) -> Own:
        return Own(
            curve=self._curve.values,
            most=Mixed(self._experts.values, self._order.values, self._members),
            span=self._span.values,
            room=self._room.values,
            clamp=Clamp(*(end.values for end in self._clamp)),
            highest=Clamp(*(end.values for end in self._highest)),
        )


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


def _joined(arrays: Sequence[Array], axis: int) -> Array:
    """Return arrays one after another, with a zero before them."""
    return np.concatenate([np.zeros_like(arrays[0].take([0], axis=axis)), *arrays], axis=axis)


def _ends(clamps: Sequence[Clamp]) -> tuple[Growing, Growing]:
    lower, upper = (_joined([getattr(one, end) for one in clamps], 0) for end in ("lower", "upper"))
    return Growing(lower), Growing(upper)
