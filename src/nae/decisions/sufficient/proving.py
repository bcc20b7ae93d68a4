"""Prove that some features of a row fix its decision, or find an input with them that is decided otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nae._typing import Array
from nae.certificates import Tables, tables_of
from nae.decisions.sufficient.deciding import Decision, Requirement
from nae.encoding.cells import Cells
from nae.ranges import Boxes, Domain, Problem, climb
from nae.tables.model import TableModel

__all__ = ["DecidedRow"]

_N_STARTS = 3  # of every search for another decision


@dataclass(frozen=True, eq=False)
class DecidedRow:
    """A row, what is decided about it, and the values that its features may have when they are not kept."""

    model: TableModel
    cells: Cells  # of the row alone
    offset: Array  # (output,)
    decision: Decision
    domains: tuple[Domain, ...]  # one per feature
    budget: int

    def gains(self) -> Array:
        """Return how much keeping each feature raises the least score that the experts allow, (feature,).

        With several requirements, gains are added up.
        """
        model, total = self.model, np.zeros(self.model.n_features)
        found = model.contributions(self.cells)
        shape = (model.n_features, model.n_outputs)
        for one in self.decision.requirements:
            least = _least(found.lower.reshape(shape), found.upper.reshape(shape), one.direction)
            slots = _least(*model.slot_bounds, one.direction)
            total += least - [slots[_slots(domain)].min() for domain in self.domains]
        return total

    def proves(self, kept: frozenset[int]) -> bool:
        """Return whether bounds prove that the row's decision holds for any values of all features but these."""
        free = [domain for domain in self.domains if domain.feature not in kept]
        asked = zip(self.decision.requirements, self._tables, strict=True)
        return not free or all(self._proves(one, tables, free) for one, tables in asked)

    @cached_property
    def _tables(self) -> list[Tables]:
        return [tables_of(self.model, one.direction) for one in self.decision.requirements]

    def _proves(self, required: Requirement, tables: Tables, free: Sequence[Domain]) -> bool:
        missing = required.limit - float(self.offset @ required.direction) + 2 * tables.rounding
        boxes = Boxes.of(Problem.of(tables, self.cells, free, sign=-1), self.budget).halve(floor=-missing)
        return bool(-boxes.highest[0] > missing)

    def counterexample(self, kept: frozenset[int]) -> frozenset[int] | None:
        """Return features whose values, changed together, change the decision; none of those that are kept."""
        free = [domain for domain in self.domains if domain.feature not in kept]
        for tables in self._tables:
            for start in self._starts(free):
                other, _ = climb(tables, start, free, -1)
                if not self._is_kept(other):
                    return self._fewest(other, [domain.feature for domain in free])
        return None

    def _starts(self, free: Sequence[Domain]) -> list[Cells]:
        random, found = np.random.default_rng(0), [self.cells]
        for _ in range(_N_STARTS - 1):
            row = self.cells
            for domain in free:
                row = domain.place(row, random.integers(len(domain), size=1))
            found.append(row)
        return found

    def _is_kept(self, cells: Cells) -> bool:
        """Return whether the model, as it is, decides the same about an input."""
        scores = self.model.decision_function(cells).reshape(1, -1) + self.offset
        return bool(self.decision.holds(scores)[0])

    def _fewest(self, other: Cells, changed: Sequence[int]) -> frozenset[int]:
        """Return features that suffice to change the decision: the changes of all others are taken back."""
        needed = list(changed)
        for feature in changed:
            slot, fraction = other.slot.copy(), other.fraction.copy()
            slot[:, feature], fraction[:, feature] = self.cells.slot[:, feature], self.cells.fraction[:, feature]
            if not self._is_kept(Cells(slot, fraction)):
                other = Cells(slot, fraction)
                needed.remove(feature)
        return frozenset(needed)


def _least(lower: Array, upper: Array, direction: Array) -> Array:
    return np.asarray(lower @ np.maximum(direction, 0.0) + upper @ np.minimum(direction, 0.0))


def _slots(domain: Domain) -> Array:
    return np.unique(np.concatenate([domain.slot, domain.slot + (domain.fraction > 0)]))
