"""Arrays as text: base64 of little-endian numbers, exact or in 16-bit steps between the minimum and the maximum."""

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import AnyArray, Array

__all__ = ["Packed", "pack", "pack_small"]

_TYPES = {"f64": "<f8", "f32": "<f4", "u16": "<u2"}


@dataclass(frozen=True)
class Packed:
    """An array to be stored in the page, which reads ``offset + scale * stored`` for 'u16'."""

    type: str  # 'f64', 'f32' or 'u16'
    data: str
    scale: float = 1.0
    offset: float = 0.0

    def numbers(self) -> Array:
        """Return the flat array that the page will read."""
        stored = np.frombuffer(base64.b64decode(self.data), dtype=_TYPES[self.type])
        if self.type != "u16":
            return stored
        return (self.offset + self.scale * stored.astype(np.float64)).astype(np.float32)

    def to_json(self) -> dict[str, Any]:
        """Return the array as JSON values."""
        content: dict[str, Any] = {"type": self.type, "data": self.data}
        return content | {"scale": self.scale, "offset": self.offset} if self.type == "u16" else content


def pack(array: Array) -> Packed:
    """Return an array without loss."""
    kind = "f64" if array.dtype.itemsize > 4 else "f32"
    return Packed(kind, _text(array, kind))


def pack_small(array: Array) -> Packed:
    """Return an array in 65,536 equal steps from its smallest to its largest number."""
    low, high = float(array.min(initial=0.0)), float(array.max(initial=0.0))
    scale = (high - low) / 65535 or 1.0
    steps = np.rint((array.astype(np.float64) - low) / scale)
    return Packed("u16", _text(steps, "u16"), scale, low)


def _text(array: AnyArray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=_TYPES[kind]).tobytes()).decode("ascii")
