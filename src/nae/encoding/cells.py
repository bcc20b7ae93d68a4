"""Cells: for every row and feature, the slot at or below the value, and the fraction of the way to the next slot."""

from dataclasses import dataclass

import numpy as np

from nae._typing import AnyArray, Array, IntArray

__all__ = ["Cells"]


@dataclass(frozen=True, eq=False)
class Cells:
    """The position of every value in the stacked tables of all features.

    Attributes
    ----------
    slot
        (row, feature), the index of the lower slot in the stacked tables.
    fraction
        (row, feature), in [0, 1): the weight of ``slot + 1``. Categories, missing and unseen values have 0.
    """

    slot: IntArray
    fraction: Array

    def __len__(self) -> int:
        return len(self.slot)

    @property
    def upper(self) -> IntArray:
        """The slot that ``fraction`` weights: ``slot + 1``, or ``slot`` if the fraction is zero."""
        return self.slot + (self.fraction > 0)

    def take(self, rows: AnyArray | slice) -> "Cells":
        """Return the cells of some rows."""
        return Cells(self.slot[rows], self.fraction[rows])

    @property
    def nearest(self) -> IntArray:
        """The nearer of the two slots."""
        return self.slot + np.rint(self.fraction).astype(self.slot.dtype)
