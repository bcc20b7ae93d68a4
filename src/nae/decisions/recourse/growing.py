"""Arrays to which rows are appended without a copy of all rows each time."""

import numpy as np

from nae._typing import AnyArray

__all__ = ["Growing"]


class Growing:
    """An array that grows along one axis."""

    def __init__(self, values: AnyArray, *, axis: int = 0) -> None:
        self._room, self._axis, self._n = values, axis, values.shape[axis]

    @property
    def values(self) -> AnyArray:
        """The array as it is now."""
        return self._room[self._part(0, self._n)]

    def append(self, more: AnyArray) -> None:
        """Append rows along the axis."""
        n = self._n + more.shape[self._axis]
        if n > self._room.shape[self._axis]:
            shape = list(self._room.shape)
            shape[self._axis] = 2 * n
            room = np.empty(shape, dtype=self._room.dtype)
            room[self._part(0, self._n)] = self.values
            self._room = room
        self._room[self._part(self._n, n)] = more
        self._n = n

    def _part(self, start: int, stop: int) -> tuple[slice, ...]:
        return (*[slice(None)] * self._axis, slice(start, stop))
