"""The score of one threshold: what the features contribute to it, as they are and with all moves side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from nae._typing import Array
from nae.certificates import Tables
from nae.decisions.recourse.forest import Forest
from nae.decisions.recourse.goals import Threshold
from nae.encoding.cells import Cells
from nae.ranges.problem import Clamp, Mixed, Output, Own, Shown

__all__ = ["Score"]


@dataclass(frozen=True, eq=False)
class Score:
    """The score of one threshold."""

    least: float  # what the score must be at least, without what rounding may add
    gain: float  # how far the row is from it
    start: float  # the intercept
    outputs: tuple[Output, ...]  # with all moves, side by side, as their only domain

    @classmethod
    def of(cls, tables: Tables, threshold: Threshold, row: Cells, forest: Forest) -> Self:
        """Return the score of a row's moves."""
        model, direction = tables.model, tables.direction
        start = float(model.intercept @ direction)
        here = float(model.contribute(row).sum(axis=1)[0] @ direction) + start
        shown = [Shown.of(model, int(o), float(direction[o])) for o in np.flatnonzero(direction)]
        outputs = tuple(_output(one, row, forest) for one in shown)
        return cls(threshold.least - 2 * tables.rounding, threshold.least - here, start, outputs)


def _output(shown: Shown, row: Cells, forest: Forest) -> Output:
    found = shown.output(row, ())
    return Output(found.known, found.clamp, (_side_by_side(shown, forest),))


def _side_by_side(shown: Shown, forest: Forest) -> Own:
    """Return what all moves contribute; vertex 0 and node 0 contribute nothing."""
    members = np.arange(shown.model.n_members)
    parts = [shown.own(domain, members) for domain in forest.domains]
    order = np.concatenate([one.most.order for one in parts], axis=1)
    nothing = np.arange(len(order)).reshape(-1, 1, 1).repeat(len(members), axis=2)
    return Own(
        curve=_joined([one.curve for one in parts], 1),
        most=Mixed(_joined([one.most.experts for one in parts], 1), np.concatenate([nothing, order], axis=1), members),
        span=_joined([one.span for one in parts], 0),
        room=_joined([one.room for one in parts], 0),
        clamp=_clamp([one.clamp for one in parts]),
        highest=_clamp([one.highest for one in parts]),
    )


def _joined(arrays: Sequence[Array], axis: int) -> Array:
    """Return arrays one after another, with a zero before them."""
    return np.concatenate([np.zeros_like(arrays[0].take([0], axis=axis)), *arrays], axis=axis)


def _clamp(ends: Sequence[Clamp]) -> Clamp:
    return Clamp(_joined([one.lower for one in ends], 0), _joined([one.upper for one in ends], 0))
