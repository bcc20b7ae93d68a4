"""Rows as tensors, and a source of batches on the device where training takes place."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nae._typing import AnyArray
from nae.engines.torch.cells import RowCells
from nae.training.data import RowSource, TrainingRows

__all__ = ["TensorRows", "TensorWindow"]


@dataclass(frozen=True)
class TensorRows:
    """Rows of a table and their targets, as :class:`~nae.training.TrainingRows` has them."""

    cells: RowCells
    target: Tensor  # (B, O) numbers, or (B,) class numbers
    weight: Tensor  # (B,), mean one over the training rows
    base: Tensor | None  # (B, O), added to the score: offset on the scale of training
    fold: Tensor | None = None  # (B,), members with this fold must not see the row; others see it

    @classmethod
    def of(cls, rows: TrainingRows, device: torch.device | str = "cpu") -> "TensorRows":
        """Return rows on a device; on a CPU, tensors and arrays share their memory where types allow."""

        def tensor(array: AnyArray) -> Tensor:
            # Arrays that another process shares cannot be written to, which torch warns of.
            return torch.from_numpy(np.require(array, requirements=["C", "W"])).to(device)

        return cls(
            RowCells(tensor(rows.cells.slot).long(), tensor(rows.cells.fraction)),
            tensor(rows.target),
            tensor(rows.weight),
            None if rows.base is None else tensor(rows.base),
            None if rows.fold is None else tensor(rows.fold),
        )

    def __len__(self) -> int:
        return len(self.weight)

    def take(self, rows: Tensor) -> "TensorRows":
        """Return some of the rows."""
        base = None if self.base is None else self.base[rows]
        fold = None if self.fold is None else self.fold[rows]
        return TensorRows(self.cells.take(rows), self.target[rows], self.weight[rows], base, fold)

    def copy_from(self, rows: TrainingRows) -> None:
        """Take over other rows, in the same memory."""
        for own, other in zip(self.tensors(), TensorRows.of(rows).tensors(), strict=True):
            own.copy_(other)

    def shifted(self, score: Tensor) -> Tensor:
        """Return scores (B, O, M) of these rows with what is added to them."""
        return score if self.base is None else score + self.base.unsqueeze(-1)

    def is_held_out(self, own_fold: Tensor) -> Tensor | None:
        """Return which member holds out which row, (B, M), from the fold of every member."""
        return None if self.fold is None else self.fold.unsqueeze(-1) == own_fold

    def tensors(self) -> list[Tensor]:
        """Return the tensors that are there."""
        found = [self.cells.slot, self.cells.fraction, self.target, self.weight, self.base, self.fold]
        return [tensor for tensor in found if tensor is not None]


class TensorWindow:
    """The window of a source, on a device. Its tensors stay where they are: a captured step reads them again."""

    def __init__(self, source: RowSource, device: torch.device) -> None:
        self.source, self.device = source, device
        self.rows = TensorRows.of(source.window, device)
        self._n_moves = source.n_moves
        # Arrays of numpy are shared with a CPU, where nothing is to be copied when the window moves.
        self._is_shared = device.type == "cpu" and self.rows.weight.data_ptr() == source.window.weight.ctypes.data

    def batches(self, n_batches: int, batch_size: int, random: np.random.Generator) -> Iterator[Tensor]:
        """Yield the batches of one epoch as positions in the window.

        Where the window stays, they are sent at once: to send one, a processor waits until the GPU has taken its step.
        """
        each = self.source.batches(n_batches, batch_size, random)
        sent = (part[None] for part in each) if self.source.whole() is None else iter([np.stack(list(each))])
        for parts in sent:
            if not self._is_shared and self._n_moves != self.source.n_moves:
                self.rows.copy_from(self.source.window)
            self._n_moves = self.source.n_moves
            yield from torch.from_numpy(parts).to(self.device)
