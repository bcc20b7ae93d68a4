"""Batches from the cache: a window that is refilled block by block, in another order every epoch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nae._typing import AnyArray, Array
from nae.network.cells import RowCells
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
    target: torch.dtype
    target_width: int | None
    dtype: torch.dtype
    base_width: int | None
    has_folds: bool
    is_exact: bool
    n_outputs: int = 1

    def fields(self) -> list[Field]:
        """Return what a row takes on disk."""
        float_type = _numpy_type(self.dtype)
        found = [
            Field("slot", np.uint8 if self.n_slots <= 256 else np.uint16, self.n_features),
            Field("fraction", float_type if self.is_exact else np.uint16, self.n_features),
            Field("target", _numpy_type(self.target), self.target_width),
            Field("weight", float_type),
        ]
        if self.base_width is not None:
            found.append(Field("base", float_type, self.base_width))
        if self.has_folds:
            found.append(Field("fold", np.int16))
        if not self.is_exact:
            found.append(Field("score", np.float64, self.n_outputs))  # room for what the finished model says
        return found

    def pack(self, rows: TrainingRows) -> dict[str, AnyArray]:
        """Return rows as arrays for the cache."""
        first = torch.arange(self.n_features) * self.n_slots
        fraction = rows.cells.fraction.numpy()
        if not self.is_exact:
            fraction = np.minimum(np.rint(fraction * _STEPS), _STEPS - 1).astype(np.uint16)
        found = {
            "slot": (rows.cells.slot - first).numpy().astype(np.uint8 if self.n_slots <= 256 else np.uint16),
            "fraction": fraction,
            "target": rows.target.numpy(),
            "weight": rows.weight.numpy(),
        }
        if rows.base is not None:
            found["base"] = rows.base.numpy()
        if rows.fold is not None:
            found["fold"] = rows.fold.numpy().astype(np.int16)
        return found

    def empty(self, n_rows: int, device: torch.device) -> TrainingRows:
        """Return a window for so many rows."""

        def zeros(dtype: torch.dtype, width: int | None) -> Tensor:
            return torch.zeros((n_rows,) if width is None else (n_rows, width), dtype=dtype, device=device)

        return TrainingRows(
            RowCells(zeros(torch.int64, self.n_features), zeros(self.dtype, self.n_features)),
            zeros(self.target, self.target_width),
            zeros(self.dtype, None),
            None if self.base_width is None else zeros(self.dtype, self.base_width),
            zeros(torch.int64, None) if self.has_folds else None,
        )

    def unpack(self, block: dict[str, AnyArray], window: TrainingRows) -> TrainingRows:
        """Fill the beginning of a window in place and return the rows in it."""
        n_rows = len(block["weight"])
        rows = _first(window, n_rows)
        first = torch.arange(self.n_features, device=window.weight.device) * self.n_slots
        rows.cells.slot.copy_(_tensor(block["slot"])).add_(first)
        rows.cells.fraction.copy_(_tensor(block["fraction"]))
        if not self.is_exact:
            rows.cells.fraction.div_(_STEPS)
        rows.target.copy_(_tensor(block["target"]))
        rows.weight.copy_(_tensor(block["weight"]))
        if rows.base is not None:
            rows.base.copy_(_tensor(block["base"]))
        if rows.fold is not None:
            rows.fold.copy_(_tensor(block["fold"]))
        return rows


class CachedRows:
    """Training rows in a cache: the source of batches whose memory does not grow with the rows."""

    def __init__(self, cache: RowCache, packing: Packing, device: torch.device, *, slot_weight: Array) -> None:
        self.cache, self.packing = cache, packing
        self._slot_weight = slot_weight  # (padded slot,), counted while the cache was written
        self.window = packing.empty(cache.largest_block, device)
        self._loaded: int | None = None

    def __len__(self) -> int:
        return self.cache.n_rows

    def batches(self, n_batches: int, batch_size: int, generator: torch.Generator) -> Iterator[Tensor]:
        if self.cache.n_blocks == 1:
            yield from self._load(0).batches(n_batches, batch_size, generator)
            return
        # In proportion to the rows: exactly those that the blocks were cut for, or as many of another size.
        per_block = np.diff(-(-n_batches * self.cache.starts // len(self))).tolist()
        for block in torch.randperm(self.cache.n_blocks, generator=generator).tolist():
            left = per_block[block]
            while left:
                n_rows = len(self._load(block))
                n_now = min(left, max(1, n_rows // batch_size))
                order = torch.randperm(n_rows, generator=generator)[: n_now * batch_size]
                yield from order.view(n_now, -1).to(self.window.weight.device)
                left -= n_now

    def held_out(self, n_members: int) -> TrainingRows | None:
        if not self.packing.has_folds:
            return None
        folds = [self.cache.block(block)["fold"] for block in range(self.cache.n_blocks)]
        step = -(-sum(int((fold < n_members).sum()) for fold in folds) // VALIDATION_ROWS)
        found = []
        for block, fold in enumerate(folds):
            chosen = torch.as_tensor(np.flatnonzero(fold < n_members)[::step], device=self.window.weight.device)
            found.append(self._load(block).take(chosen))
        return concatenate(found)

    def slot_weight(self, n_slots: int) -> Tensor:
        if self.cache.n_blocks == 1:  # bit for bit what rows in memory give
            return self._load(0).slot_weight(n_slots)
        return torch.as_tensor(self._slot_weight, dtype=self.packing.dtype, device=self.window.weight.device)

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
        return _first(self.window, int(np.diff(self.cache.starts)[block]))


def _numpy_type(dtype: torch.dtype) -> Any:
    return {torch.float32: np.float32, torch.float64: np.float64, torch.int64: np.int64}[dtype]


def _tensor(array: AnyArray) -> Tensor:
    return torch.from_numpy(np.asarray(array))


def _first(rows: TrainingRows, n_rows: int) -> TrainingRows:
    """Return the first rows: views, not copies."""
    return TrainingRows(
        RowCells(rows.cells.slot[:n_rows], rows.cells.fraction[:n_rows]),
        rows.target[:n_rows],
        rows.weight[:n_rows],
        None if rows.base is None else rows.base[:n_rows],
        None if rows.fold is None else rows.fold[:n_rows],
    )


def concatenate(parts: list[TrainingRows]) -> TrainingRows:
    """Return rows below each other."""

    def joined(tensors: list[Tensor | None]) -> Tensor | None:
        present = [tensor for tensor in tensors if tensor is not None]
        return torch.cat(present) if present else None

    cells = RowCells(torch.cat([one.cells.slot for one in parts]), torch.cat([one.cells.fraction for one in parts]))
    return TrainingRows(
        cells,
        torch.cat([one.target for one in parts]),
        torch.cat([one.weight for one in parts]),
        joined([one.base for one in parts]),
        joined([one.fold for one in parts]),
    )
