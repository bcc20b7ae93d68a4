"""Rows as tensors: they are the arrays they were made of, and follow a window that moves."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from nae._typing import AnyArray
from nae.encoding import Cells
from nae.engines.torch.rows import TensorRows, TensorWindow
from nae.scanning.cache import open_cache, plan_blocks
from nae.training import TrainingRows
from nae.training.cached import CachedRows, Packing

N_ROWS, N_FEATURES, N_SLOTS = 400, 2, 10


def make_rows(*, labels: bool = False) -> TrainingRows:
    random = np.random.default_rng(0)
    slot = random.integers(0, N_SLOTS - 1, (N_ROWS, N_FEATURES)) + np.arange(N_FEATURES) * N_SLOTS
    return TrainingRows(
        Cells(slot, random.random((N_ROWS, N_FEATURES), dtype=np.float32)),
        np.arange(N_ROWS) if labels else np.arange(N_ROWS, dtype=np.float32)[:, None],
        1 + np.arange(N_ROWS, dtype=np.float32),
        random.standard_normal((N_ROWS, 1), dtype=np.float32),
        np.arange(N_ROWS) % 4,
    )


def hold_the_same(found: TensorRows, rows: TrainingRows) -> bool:
    held = [rows.cells.slot, rows.cells.fraction, rows.target, rows.weight, rows.base, rows.fold]
    arrays = [each for each in held if each is not None]
    tensors = found.tensors()
    both = zip(tensors, arrays, strict=False)
    return len(tensors) == len(arrays) and all(np.array_equal(tensor.numpy(), array) for tensor, array in both)


@pytest.mark.parametrize("labels", [False, True], ids=["numbers", "classes"])
def test_tensors_hold_what_the_arrays_do(labels: bool) -> None:
    rows = make_rows(labels=labels)
    assert hold_the_same(TensorRows.of(rows), rows)
    part = np.array([5, 0, 5])
    assert hold_the_same(TensorRows.of(rows).take(torch.as_tensor(part)), rows.take(part))
    plain = TrainingRows(rows.cells, rows.target, rows.weight, None)
    made = TensorRows.of(plain)
    assert (made.base, made.fold) == (None, None)
    assert len(made.tensors()) == 4


def test_arrays_that_cannot_be_written_to_are_copied_without_a_warning() -> None:
    rows = make_rows()
    for array in (rows.cells.slot, rows.cells.fraction, rows.target, rows.weight):
        array.flags.writeable = False
    made = TensorRows.of(rows)
    assert hold_the_same(made, rows)
    assert made.weight.data_ptr() != rows.weight.ctypes.data


def test_who_holds_out_a_row_is_seen_from_its_fold() -> None:
    made = TensorRows.of(make_rows())
    is_out = made.is_held_out(torch.tensor([0, 2]))
    assert is_out is not None
    assert is_out[:4].tolist() == [[True, False], [False, False], [False, True], [False, False]]
    rows = make_rows()
    assert TensorRows.of(TrainingRows(rows.cells, rows.target, rows.weight, None)).is_held_out(torch.arange(2)) is None


def test_an_offset_is_added_to_every_member() -> None:
    made = TensorRows.of(make_rows())
    score = torch.zeros(N_ROWS, 1, 3)
    assert made.base is not None
    assert torch.equal(made.shifted(score), made.base.unsqueeze(-1).expand(-1, -1, 3))


@pytest.fixture(params=[1, 4], ids=["one block", "four blocks"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CachedRows]:
    rows, n_blocks = make_rows(), request.param
    packing = Packing(N_FEATURES, N_SLOTS, np.float32, 1, np.float32, 1, has_folds=True, is_exact=n_blocks == 1)
    starts = plan_blocks(N_ROWS, 8, N_ROWS // n_blocks)
    with open_cache(packing.fields(), starts, folder=str(tmp_path)) as cache:
        cache.write(packing.pack(rows), np.random.default_rng(0))
        yield CachedRows(cache, packing, slot_weight=rows.slot_weight(N_FEATURES * N_SLOTS))


@pytest.mark.parametrize("is_copied", [False, True], ids=["shared", "copied"])
def test_a_window_follows_its_source(source: CachedRows, is_copied: bool) -> None:
    window = TensorWindow(source, torch.device("cpu"))
    if is_copied:  # as it is on a GPU
        window = _Copied(source, torch.device("cpu"))
    assert (window.rows.weight.data_ptr() == source.window.weight.ctypes.data) == (not is_copied)
    addresses = [tensor.data_ptr() for tensor in window.rows.tensors()]
    random, seen = np.random.default_rng(1), []
    for _ in range(3):
        epoch = []
        for part in window.batches(8, 50, random):
            batch = window.rows.take(part)
            assert hold_the_same(batch, source.window.take(part.numpy()))
            epoch += batch.target[:, 0].tolist()
        assert len(epoch) == len(set(epoch)) == N_ROWS
        seen.append(epoch)
    assert seen[0] != seen[1] != seen[2]
    assert [tensor.data_ptr() for tensor in window.rows.tensors()] == addresses  # where a captured step reads


def test_a_window_copies_only_when_its_source_has_moved(source: CachedRows, monkeypatch: pytest.MonkeyPatch) -> None:
    window, copies = _Copied(source, torch.device("cpu")), []
    real = TensorRows.copy_from

    def copy_from(self: TensorRows, rows: TrainingRows) -> None:
        copies.append(1)
        real(self, rows)

    monkeypatch.setattr(TensorRows, "copy_from", copy_from)
    list(window.batches(8, 50, np.random.default_rng(1)))
    assert len(copies) == source.cache.n_blocks


def test_the_batches_of_a_window_that_stays_are_sent_at_once(
    source: CachedRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, sent = TensorWindow(source, torch.device("cpu")), []
    real = torch.from_numpy

    def from_numpy(array: AnyArray) -> torch.Tensor:
        sent.append(len(array))
        return real(array)

    monkeypatch.setattr(torch, "from_numpy", from_numpy)
    parts = list(window.batches(8, 50, np.random.default_rng(1)))
    assert sent == ([8] if source.cache.n_blocks == 1 else [1] * 8)
    expected = source.batches(8, 50, np.random.default_rng(1))
    assert all(np.array_equal(part.numpy(), other) for part, other in zip(parts, expected, strict=True))


class _Copied(TensorWindow):
    """A window whose tensors lie elsewhere, as those on a GPU do."""

    def __init__(self, source: CachedRows, device: torch.device) -> None:
        super().__init__(source, device)
        self._is_shared = False
        rows = source.window
        cells = Cells(rows.cells.slot.copy(), rows.cells.fraction.copy())
        base, fold = (None if array is None else array.copy() for array in (rows.base, rows.fold))
        self.rows = TensorRows.of(TrainingRows(cells, rows.target.copy(), rows.weight.copy(), base, fold))
