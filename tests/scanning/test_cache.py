"""The cache: no row is lost, nothing is left behind, and a disk that is too small is named before anything starts."""

import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nae.encoding import Cells
from nae.errors import DataError
from nae.scanning.cache import Field, open_cache, plan_blocks
from nae.training import TrainingRows
from nae.training.cached import CachedRows, Packing

N_ROWS, N_FEATURES, N_SLOTS = 1000, 3, 20
FIELDS = [Field("number", np.int32), Field("pair", np.uint8, 2)]


@given(st.integers(1, 5000), st.integers(1, 300), st.integers(1, 700))
def test_blocks_hold_whole_batches_of_all_rows(n_rows, batch_size, block_rows):
    n_batches = max(1, round(n_rows / batch_size))
    size = n_rows // n_batches
    starts = plan_blocks(n_rows, n_batches, block_rows)
    assert (starts[0], starts[-1]) == (0, n_rows)
    per_block = np.diff(-(-n_batches * starts // n_rows))
    assert per_block.sum() == n_batches
    assert np.all(np.diff(starts) >= per_block * size)
    assert len(starts) == 2 or np.diff(starts).max() <= 2 * max(block_rows, size) + size


@pytest.mark.parametrize(("n_rows", "n_batches"), [(0, 1), (3, 4)])
def test_batches_without_a_row_are_an_error(n_rows, n_batches):
    with pytest.raises(DataError, match=f"Every batch must have a row; got {n_rows} rows for {n_batches} batches"):
        plan_blocks(n_rows, n_batches, 100)


@pytest.mark.parametrize("n_blocks", [1, 4])
def test_rows_are_dealt_out_by_chance_and_none_is_lost(tmp_path, n_blocks):
    starts = np.linspace(0, N_ROWS, n_blocks + 1).astype(np.int64)
    random = np.random.default_rng(0)
    with open_cache(FIELDS, starts, folder=str(tmp_path)) as cache:
        for part in np.array_split(np.arange(N_ROWS), 7):
            cache.write({"number": part, "pair": np.stack([part % 7, part % 5], axis=1)}, random)
        numbers = np.concatenate([cache.block(i)["number"] for i in range(n_blocks)])
        pairs = np.concatenate([cache.block(i)["pair"] for i in range(n_blocks)])
        assert sorted(numbers.tolist()) == list(range(N_ROWS))
        np.testing.assert_array_equal(pairs, np.stack([numbers % 7, numbers % 5], axis=1))
        assert (numbers.tolist() == list(range(N_ROWS))) == (n_blocks == 1)
        if n_blocks > 1:  # every block is a sample of the whole
            assert abs(cache.block(0)["number"].mean() - N_ROWS / 2) < 0.1 * N_ROWS
        with pytest.raises(DataError, match="second pass found more rows"):
            cache.write({"number": np.zeros(1), "pair": np.zeros((1, 2))}, random)


def test_nothing_is_left_behind_after_ctrl_c(tmp_path):
    def interrupted() -> None:
        with open_cache(FIELDS, np.array([0, 10]), folder=str(tmp_path)):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="files that are open have a name there until they are closed")
def test_nothing_is_left_behind_by_a_process_that_is_killed(tmp_path):
    code = (
        "import os, signal, numpy as np\n"
        "from nae.scanning.cache import Field, open_cache\n"
        f"with open_cache([Field('number', np.int32)], np.array([0, 1000]), folder={str(tmp_path)!r}) as cache:\n"
        "    cache.arrays['number'][:] = 1\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_too_small_is_named_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**8))
    with (
        pytest.raises(DataError, match=r"The cache needs 6.00 GB on disk; .* has 0.10 GB left. Name a folder"),
        open_cache(FIELDS, np.array([0, 10**9]), folder=str(tmp_path)),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_cache_folder_must_exist(tmp_path):
    with (
        pytest.raises(DataError, match="cache_folder must be a folder that exists"),
        open_cache(FIELDS, np.array([0, 1]), folder=str(tmp_path / "none")),
    ):
        pass


def training_rows(n_rows: int = N_ROWS) -> TrainingRows:
    random = np.random.default_rng(0)
    slot = random.integers(0, N_SLOTS - 1, (n_rows, N_FEATURES))
    fraction = random.random((n_rows, N_FEATURES), dtype=np.float32)
    return TrainingRows(
        Cells(slot + np.arange(N_FEATURES) * N_SLOTS, fraction),
        np.arange(n_rows, dtype=np.float32)[:, None],
        np.ones(n_rows, dtype=np.float32),
        random.standard_normal((n_rows, 1), dtype=np.float32),
        np.arange(n_rows) % 4,
    )


@pytest.fixture(params=[1, 5], ids=["one block", "five blocks"])
def cached(request, tmp_path):
    rows, n_blocks = training_rows(), request.param
    packing = Packing(
        n_features=N_FEATURES,
        n_slots=N_SLOTS,
        target=np.float32,
        target_width=1,
        dtype=np.float32,
        base_width=1,
        has_folds=True,
        is_exact=n_blocks == 1,
    )
    starts = plan_blocks(N_ROWS, 20, N_ROWS // n_blocks)
    with open_cache(packing.fields(), starts, folder=str(tmp_path)) as cache:
        cache.write(packing.pack(rows), np.random.default_rng(0))
        yield rows, CachedRows(cache, packing, slot_weight=rows.slot_weight(N_FEATURES * N_SLOTS))


def test_a_row_comes_back_as_it_was(cached):
    rows, source = cached
    for part in source.batches(20, 50, np.random.default_rng(0)):
        batch = source.window.take(part)
        expected = rows.take(batch.target[:, 0].astype(np.int64))
        np.testing.assert_array_equal(batch.cells.slot, expected.cells.slot)
        np.testing.assert_allclose(batch.cells.fraction, expected.cells.fraction, atol=2**-16, rtol=0)
        np.testing.assert_array_equal(batch.base, expected.base)
        np.testing.assert_array_equal(batch.fold, expected.fold)
        assert batch.cells.fraction.max() < 1


@pytest.mark.parametrize("n_batches", [20, 40])
def test_an_epoch_shows_every_row_once_and_another_order_every_time(cached, n_batches):
    _, source = cached
    random = np.random.default_rng(0)
    size = N_ROWS // n_batches
    epochs = []
    for _ in range(2):
        seen = [source.window.take(part).target[:, 0] for part in source.batches(n_batches, size, random)]
        assert {len(part) for part in seen} == {size}
        assert len(seen) == n_batches
        epochs.append(np.concatenate(seen).tolist())
    assert epochs[0] != epochs[1]
    assert sorted(epochs[0]) == list(range(N_ROWS))


def test_held_out_rows_and_slot_weights_are_those_of_the_rows(cached):
    rows, source = cached
    found = source.held_out(2)
    assert sorted(found.target[:, 0].tolist()) == sorted(rows.held_out(2).target[:, 0].tolist())
    n_slots = N_FEATURES * N_SLOTS
    np.testing.assert_allclose(source.slot_weight(n_slots), rows.slot_weight(n_slots))


def test_one_block_is_the_same_source_as_memory(tmp_path):
    rows = training_rows()
    packing = Packing(N_FEATURES, N_SLOTS, np.float32, 1, np.float32, 1, has_folds=True, is_exact=True)
    with open_cache(packing.fields(), plan_blocks(N_ROWS, 4, N_ROWS), folder=str(tmp_path)) as cache:
        cache.write(packing.pack(rows), np.random.default_rng(0))
        source = CachedRows(cache, packing, slot_weight=np.zeros(1))
        pairs = zip(
            source.batches(4, 250, np.random.default_rng(1)),
            rows.batches(4, 250, np.random.default_rng(1)),
            strict=True,
        )
        for mine, theirs in pairs:
            assert np.array_equal(source.window.take(mine).cells.fraction, rows.take(theirs).cells.fraction)


def test_a_single_block_is_whole_and_several_are_not(cached):
    rows, source = cached
    whole = source.whole()
    assert (whole is None) == (source.cache.n_blocks > 1)
    if whole is not None:
        np.testing.assert_array_equal(whole.target, rows.target)


def test_the_window_says_when_it_has_moved(cached):
    _, source = cached
    moves, seen = [], []
    for part in source.batches(20, 50, np.random.default_rng(0)):
        moves.append(source.n_moves)
        seen.append(source.window.take(part).target[:, 0])
    assert len(set(moves)) == source.cache.n_blocks
    assert moves == sorted(moves)
    assert source.window is source.window  # its arrays stay where they are
    address = source.window.weight.ctypes.data
    list(source.batches(20, 50, np.random.default_rng(1)))
    assert source.window.weight.ctypes.data == address


def test_rows_are_scored_once_and_in_place(cached):
    rows, source = cached
    asked = []

    def score(some):
        asked.append(len(some))
        return 2.0 * some.target.astype(np.float64)

    parts = source.scored(score)
    assert sum(asked) == len(rows)
    for part in parts:
        np.testing.assert_array_equal(part.score[:, 0], 2.0 * part.target[:, 0])
    assert sorted(np.concatenate([part.target[:, 0] for part in parts]).tolist()) == list(range(N_ROWS))
