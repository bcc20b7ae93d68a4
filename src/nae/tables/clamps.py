"""Clamps: the least and the largest contribution at every value, beside what the experts alone would allow.

A gate hardly ever gives all the weight to one expert, so the experts of a feature lie farther apart than its
contributions ever do. A fit measures which contributions training rows with a similar value had, and the model keeps
every contribution, the mean over its members, within that range.
"""

from dataclasses import dataclass, fields

import numpy as np

from nae._typing import Array, IntArray
from nae.encoding.cells import Cells
from nae.tables.lookup import interpolate

__all__ = ["Clamps"]


@dataclass(frozen=True, eq=False)
class Clamps:
    """The range of the contributions at every slot, linear between two slots; ``lower`` is never above ``upper``."""

    lower: Array  # (slot, output)
    upper: Array  # (slot, output)

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def at(self, cells: Cells) -> tuple[Array, Array]:
        """Return the least and the largest contribution at every cell, (row, feature, output) each."""
        return interpolate(self.lower, cells), interpolate(self.upper, cells)

    def clip(self, values: Array, cells: Cells) -> Array:
        """Return values (row, feature, output) within the range at their cells.

        Where rounding lifts the lower end above the upper one, the upper end counts.
        """
        lower, upper = self.at(cells)
        return np.asarray(np.minimum(np.maximum(values, lower), upper))

    def clip_slots(self, values: Array, slots: slice | IntArray = slice(None)) -> Array:
        """Return values (slot, output) within the range at these slots."""
        return np.asarray(np.minimum(np.maximum(values, self.lower[slots]), self.upper[slots]))

    def take(self, slots: IntArray) -> "Clamps":
        """Return the clamps of some of the slots."""
        return Clamps(self.lower[slots], self.upper[slots])

    def shifted(self, by: Array) -> "Clamps":
        """Return the clamps of contributions to which ``by`` (slot, output) was added."""
        return Clamps(*((own + by).astype(own.dtype) for own in (self.lower, self.upper)))

    def mirrored(self) -> "Clamps":
        """Return the clamps of the negative contributions."""
        return Clamps(0 - self.upper, 0 - self.lower)

    def astype(self, dtype: "np.dtype[np.floating] | type[np.floating]") -> "Clamps":
        """Return the same clamps as numbers of another type. Rounding keeps their order."""
        return Clamps(self.lower.astype(dtype), self.upper.astype(dtype))
