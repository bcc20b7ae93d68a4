"""Batches from the cache: a window that is refilled block by block, in another order every epoch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nae._typing import AnyArray, Array, IntArray
from nae.encoding import Cells
from nae.scanning.cache import Field, RowCache
from nae.training.data import VALIDATION_ROWS, Scored, TrainingRows

__all__ = ["CachedRows", "Packing", "concatenate"]

_STEPS = 65_536  # of a fraction between two knots


@dataclass(frozen=True)
class Packing:
    """How training rows become the numbers of a cache: slots within their feature, fractions in fixed point.

    ``is_exact`` keeps fractions as they are; a single block is small enough for that.
    """

    n_features: int
    n_slots: int  # of a feature, padded
    target: type[np.generic]
    target_width: int | None
    dtype: type[np.floating]
    base_width: int | None
    has_folds: bool
    is_exact: bool
    n_outputs: int = 1

    def fields(self) -> list[Field]:
        """Return what a row takes on disk."""
        found = [
            Field("slot", np.uint8 if self.n_slots <= 256 else np.uint16, self.n_features),
            Field("fraction", self.dtype if self.is_exact else np.uint16, self.n_features),
            Field("target", self.target, self.target_width),
            Field("weight", self.dtype),
        ]
        if self.base_width is not None:
            found.append(Field("base", self.dtype, self.base_width))
        if self.has_folds:
            found.append(Field("fold", np.int16))
        if not self.is_exact:
            found.append(Field("score", np.float64, self.n_outputs))  # room for what the finished model says
        return found

    def pack(self, rows: TrainingRows) -> dict[str, AnyArray]:
        """Return rows as arrays for the cache."""
        fraction = rows.cells.fraction
        if not self.is_exact:
            fraction = np.minimum(np.rint(fraction * _STEPS), _STEPS - 1).astype(np.uint16)
        found = {
            "slot": (rows.cells.slot - self._first).astype(np.uint8 if self.n_slots <= 256 else np.uint16),
            "fraction": fraction,
            "target": rows.target,
            "weight": rows.weight,
        }
        if rows.base is not None:
            found["base"] = rows.base
        if rows.fold is not None:
            found["fold"] = rows.fold.astype(np.int16)
        return found

    def empty(self, n_rows: int) -> TrainingRows:
        """Return a window for so many rows."""

        def zeros(dtype: Any, width: int | None) -> AnyArray:
            return np.zeros((n_rows,) if width is None else (n_rows, width), dtype=dtype)

        return TrainingRows(
            Cells(zeros(np.int64, self.n_features), zeros(self.dtype, self.n_features)),
            zeros(self.target, self.target_width),
            zeros(self.dtype, None),
            None if self.base_width is None else zeros(self.dtype, self.base_width),
            zeros(np.int64, None) if self.has_folds else None,
        )

    def unpack(self, block: dict[str, AnyArray], window: TrainingRows) -> TrainingRows:
        """Fill the beginning of a window in place and return the rows in it."""
        rows = window.take(slice(len(block["weight"])))
        np.add(block["slot"], self._first, out=rows.cells.slot)
        rows.cells.fraction[:] = block["fraction"]
        if not self.is_exact:
            rows.cells.fraction[:] /= _STEPS
        rows.target[:] = block["target"]
        rows.weight[:] = block["weight"]
        if rows.base is not None:
            rows.base[:] = block["base"]
        if rows.fold is not None:
            rows.fold[:] = block["fold"]
        return rows

    @property
    def _first(self) -> IntArray:
        """The first slot of every feature in the padded tables."""
        return np.arange(self.n_features) * self.n_slots


class CachedRows:
    """Training rows in a cache: the source of batches whose memory does not grow with the rows."""

    def __init__(self, cache: RowCache, packing: Packing, *, slot_weight: Array) -> None:
        self.cache, self.packing = cache, packing
        self._slot_weight = slot_weight  # (padded slot,), counted while the cache was written
        self.window = packing.empty(cache.largest_block)
        self.n_moves = 0
        self._loaded: int | None = None

    def __len__(self) -> int:
        return self.cache.n_rows

    def batches(self, n_batches: int, batch_size: int, random: np.random.Generator) -> Iterator[IntArray]:
        if self.cache.n_blocks == 1:
            yield from self._load(0).batches(n_batches, batch_size, random)
            return
        # In proportion to the rows: exactly those that the blocks were cut for, or as many of another size.
        per_block = np.diff(-(-n_batches * self.cache.starts // len(self))).tolist()
        for block in random.permutation(self.cache.n_blocks).tolist():
            left = per_block[block]
            while left:
                n_rows = len(self._load(block))
                n_now = min(left, max(1, n_rows // batch_size))
                order = random.permutation(n_rows)[: n_now * batch_size]
                yield from order.reshape(n_now, -1)
                left -= n_now

    def held_out(self, n_members: int) -> TrainingRows | None:
        if not self.packing.has_folds:
            return None
        folds = [self.cache.block(block)["fold"] for block in range(self.cache.n_blocks)]
        step = -(-sum(int((fold < n_members).sum()) for fold in folds) // VALIDATION_ROWS) or 1
        chosen = [np.flatnonzero(fold < n_members)[::step] for fold in folds]
        return concatenate([self._load(block).take(rows) for block, rows in enumerate(chosen)])

    def slot_weight(self, n_slots: int) -> Array:
        if self.cache.n_blocks == 1:  # bit for bit what rows in memory give
            return self._load(0).slot_weight(n_slots)
        return self._slot_weight

    def whole(self) -> TrainingRows | None:
        return self._load(0) if self.cache.n_blocks == 1 else None

    def scored(self, score: Callable[[TrainingRows], Array]) -> list[Scored]:
        if self.cache.n_blocks == 1:
            return self._load(0).scored(score)
        found = []
        for number in range(self.cache.n_blocks):
            block = self.cache.block(number)
            block["score"][:] = score(self._load(number))
            found.append(Scored(block["score"], block["target"], block["weight"]))
        return found

    def _load(self, block: int) -> TrainingRows:
        """Return the rows of a block, in the window."""
        if self._loaded != block:
            self.packing.unpack(self.cache.block(block), self.window)
            self._loaded = block
            self.n_moves += 1
        return self.window.take(slice(int(np.diff(self.cache.starts)[block])))


def concatenate(parts: list[TrainingRows]) -> TrainingRows:
    """Return rows below each other."""

    def joined(arrays: list[AnyArray | None]) -> AnyArray | None:
        present = [array for array in arrays if array is not None]
        return np.concatenate(present) if present else None

    slots, fractions = zip(*((one.cells.slot, one.cells.fraction) for one in parts), strict=True)
    return TrainingRows(
        Cells(np.concatenate(slots), np.concatenate(fractions)),
        np.concatenate([one.target for one in parts]),
        np.concatenate([one.weight for one in parts]),
        joined([one.base for one in parts]),
        joined([one.fold for one in parts]),
    )
