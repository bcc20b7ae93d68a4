"""Gates: the tables that turn a row's cells into logits.

additive    the logits are a bias plus the sum of the terms of all features       terms (T, K*F, M)
low-rank    that sum has H numbers, which a matrix turns into the logits          terms (T, H, M)
deep        as low-rank, with a ReLU before the matrix                            terms (T, H, M)
diagonal    the terms of a feature are the logits of its own experts              terms (T, K, M)
"""

from dataclasses import dataclass
from functools import cached_property

from nae._typing import Array
from nae.encoding.cells import Cells
from nae.tables.steps import Change, Multiply, OwnTerms, Rectify, SumTerms, Terms

__all__ = ["GATES", "MEMBER_AXES", "GateTables"]

# The steps of every gate by its name. What depends on the kind of gate is asked of its steps.
GATES: dict[str, tuple[type[Terms], *tuple[type[Change], ...]]] = {
    "additive": (SumTerms,),
    "low-rank": (SumTerms, Multiply),
    "deep": (SumTerms, Rectify, Multiply),
    "diagonal": (OwnTerms,),
}
MEMBER_AXES = {"terms": 2, "bias": 1, "mix": 0, "mix_bias": 1}  # which axis of an array counts the members


@dataclass(frozen=True, eq=False)
class GateTables:
    """The gate of all members."""

    kind: str
    terms: Array  # (slot, width, member)
    bias: Array  # (width, member); diagonal: (expert * feature, member)
    mix: Array | None = None  # (member, width, expert * feature), for a gate that multiplies
    mix_bias: Array | None = None  # (expert * feature, member), for a gate that multiplies

    @property
    def arrays(self) -> dict[str, Array]:
        """The arrays by name, without those that this gate does not have."""
        found = {name: getattr(self, name) for name in MEMBER_AXES}
        return {name: array for name, array in found.items() if array is not None}

    @property
    def sums_features(self) -> bool:
        """Whether the terms of all features are added up. If not, no feature changes another one's logits."""
        return SumTerms in GATES[self.kind]

    @property
    def multiplies(self) -> bool:
        """Whether a matrix follows the terms."""
        return Multiply in GATES[self.kind]

    @property
    def is_additive(self) -> bool:
        """Whether the logits are a sum of functions of one feature each."""
        return all(step.is_linear for step in self.changes)

    @cached_property
    def first(self) -> Terms:
        """The first step."""
        return GATES[self.kind][0].of(self)

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """The steps after the first one."""
        return tuple(step.of(self) for step in GATES[self.kind][1:])

    def hidden(self, cells: Cells) -> Array:
        """Return the values after the first step, (row, unit, member)."""
        return self.first.look_up(cells)

    def logits(self, cells: Cells) -> Array:
        """Return the logits of every row, (row, expert, feature, member)."""
        values = self.hidden(cells)
        for step in self.changes:
            values = step.apply(values)
        n_rows, n_logits, n_members = values.shape
        n_features = cells.slot.shape[1]
        return values.reshape(n_rows, n_logits // n_features, n_features, n_members)
