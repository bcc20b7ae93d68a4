"""From points to values that people can read: few digits, each way predicted with the values that are reported."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import Array
from nae.decisions.recourse.moves import Moves
from nae.decisions.recourse.tries import Point, Tries
from nae.decisions.recourse.values import column_of, is_rounded, readable, value_at, value_of
from nae.encoding.cells import Cells
from nae.encoding.columns import Columns
from nae.encoding.schema import Feature
from nae.ranges import Domain
from nae.tables.model import TableModel

__all__ = ["Reader"]

_DEARER = 0.03  # readable values may make a way dearer by this share of its cost
_FINE = 32  # values that are tried between two vertices


@dataclass(frozen=True, eq=False)
class Reader:
    """Turns points into new values by feature."""

    model: TableModel
    columns: Columns  # of the row
    moves: Moves
    tries: Tries

    def values(self, point: Point) -> dict[int, Any] | None:
        """Return readable values that reach the goal, or None if the way they are rounded keeps all from it."""
        vertices = sorted(point.vertices, key=lambda vertex: -self.tries.forest.cost[vertex])
        found = {self._owner(vertex): self._at(vertex, 1.0) for vertex in vertices}
        for vertex in vertices:
            found = self._nearer(found, vertex)
        if not self.reaches(found):
            return None
        limit = (1 + _DEARER) * self.cost(found)
        for vertex in vertices:
            found = self._rounded(found, self._owner(vertex), limit)
        return found

    def reaches(self, changes: Mapping[int, Any]) -> bool:
        """Return whether the row reaches the goal with new values, as the model predicts it."""
        if not self.tries.goal.reached(self.scores(changes))[0]:
            return False
        rows = self.tries.neighbours
        return rows is None or bool(rows.have(self._cells(changes, np.float64))[0])

    def scores(self, changes: Mapping[int, Any]) -> Array:
        """Return the scores of the row with new values, (1, output)."""
        return self.model.decision_function(self._cells(changes, self.model.experts.dtype)).reshape(1, -1)

    def cost(self, changes: Mapping[int, Any]) -> float:
        """Return what new values cost together."""
        return sum(self.cost_of(i, value) for i, value in changes.items())

    def cost_of(self, i: int, value: Any) -> float:
        """Return what one new value costs."""
        return float(self.moves.costs(self._located(i, value))[0])

    def old(self, i: int) -> Any:
        """Return the row's value of a feature."""
        return value_of(self._kind(i), self.columns.arrays[i])

    def _kind(self, i: int) -> Feature:
        return self.model.schema.features[i]

    def _owner(self, vertex: int) -> int:
        return int(self.tries.forest.owner[vertex])

    def _cells(self, changes: Mapping[int, Any], dtype: Any) -> Cells:
        arrays = list(self.columns.arrays)
        for i, value in changes.items():
            arrays[i] = column_of(self._kind(i), value)
        return self.model.schema.locate(Columns(tuple(arrays), self.columns.names), dtype=dtype)

    def _located(self, i: int, value: Any) -> Domain:
        slot, fraction = self._kind(i).locate(column_of(self._kind(i), value))
        return Domain(i, slot + self.model.schema.offsets[i], fraction, np.zeros(0, dtype=bool))

    def _at(self, vertex: int, part: float) -> Any:
        """Return the value at a vertex, or a part of the way to it from the next one that costs less."""
        forest, i = self.tries.forest, self._owner(vertex)
        place = forest.slot[vertex] + forest.fraction[vertex] - self.model.schema.offsets[i]
        if part < 1:
            before = forest.cheaper(vertex)
            place += (1 - part) * (forest.slot[before] + forest.fraction[before] - self.model.schema.offsets[i] - place)
        return value_at(self._kind(i), int(place), float(place - int(place)))

    def _nearer(self, found: dict[int, Any], vertex: int) -> dict[int, Any]:
        """Return values with the cheapest one on the line that ends at a vertex, if it still reaches the goal."""
        if self.tries.forest.cheaper(vertex) == vertex:
            return found
        for part in np.arange(1, _FINE) / _FINE:
            changed = found | {self._owner(vertex): self._at(vertex, float(part))}
            if self.reaches(changed):
                return changed
        return found

    def _rounded(self, found: dict[int, Any], i: int, limit: float) -> dict[int, Any]:
        """Return values of which one is rounded as coarsely as the limit of the cost allows."""
        kind, value, old = self._kind(i), found[i], self.old(i)
        if is_rounded(kind, value):
            return found
        is_whole = bool(getattr(kind, "integral", False))
        finest = found
        for other in readable(float(value), old, is_whole=is_whole):
            changed = found | {i: int(other) if is_whole else other}
            if other != old and self._is_supported(i, other) and self.reaches(changed):
                if self.cost(changed) <= limit:
                    return changed
                finest = changed
        return finest if is_whole else found

    def _is_supported(self, i: int, value: float) -> bool:
        """Return whether a number is one of the values that the feature may take."""
        domain = next(one for one in self.moves.domains if one.feature == i)
        at = self._located(i, value)
        place, places = float(at.slot[0] + at.fraction[0]), domain.slot + domain.fraction
        on_line = (places[:-1] <= place) & (place <= places[1:]) & domain.joined
        return bool(on_line.any() or np.isclose(places, place, rtol=0.0, atol=1e-9).any())
