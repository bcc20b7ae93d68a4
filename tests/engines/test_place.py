import pytest
import torch

from nae.engines import choose_place, estimate_work, halve_batch_until_it_fits
from nae.errors import ConfigError, NAEWarning, TrainingError
from nae.training import TrainingConfig
from tests.configs import network_config, training_config


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "H200")


def attempt_with_room_for(room: int, tried: list[int]):
    def attempt(config: TrainingConfig) -> int:
        tried.append(config.batch_size)
        if config.batch_size > room:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB.\nGPU 0 has …")
        return config.batch_size

    return attempt


def test_without_a_gpu_the_processor_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    place = choose_place("auto", work=1e15)
    assert (place.device.type, place.reason) == ("cpu", "torch sees no GPU")
    with pytest.raises(ConfigError, match="device='cuda' needs a CUDA GPU"):
        choose_place("cuda", work=1e15)


@pytest.mark.usefixtures("gpu")
def test_a_gpu_is_used_where_it_pays_and_says_so() -> None:
    large, small = choose_place("auto", work=1e13), choose_place("auto", work=1e8)
    assert (large.device.type, large.reason) == ("cuda", "the H200 is faster for a table of this size")
    assert (small.device.type, small.reason) == ("cpu", "so small a table trains faster here than on the H200")
    assert choose_place("auto", work=1e13, is_double=True).device.type == "cpu"


@pytest.mark.usefixtures("gpu")
def test_who_asks_for_a_device_gets_it() -> None:
    assert choose_place("cpu", work=1e13).device.type == "cpu"
    assert choose_place("cuda:1", work=1.0).device == torch.device("cuda:1")
    with pytest.raises(ConfigError, match="device must be 'auto', 'cpu' or 'cuda'; got 'tpu'"):
        choose_place("tpu", work=1.0)


def test_work_grows_with_members_steps_and_slots() -> None:
    network, training = network_config(n_members=2), training_config(batch_size=64, max_epochs=10)
    base = estimate_work(network, training, n_rows=640, shape=(10, 100, 50))
    assert estimate_work(network_config(n_members=4), training, n_rows=640, shape=(10, 100, 50)) == 2 * base
    assert estimate_work(network, training, n_rows=1280, shape=(10, 100, 50)) == 2 * base
    assert estimate_work(network, training, n_rows=640, shape=(10, 200, 50)) > 1.5 * base


def test_on_rows_the_work_grows_with_the_batch_and_not_with_slots() -> None:
    network, training = network_config(encoder="mlp"), training_config(batch_size=64, max_epochs=10)
    base = estimate_work(network, training, n_rows=640, shape=(10, 100, 50))
    assert estimate_work(network, training, n_rows=640, shape=(10, 200, 50)) == base
    whole = training_config(batch_size=640, max_epochs=10)
    assert estimate_work(network, whole, n_rows=640, shape=(10, 100, 50)) == base  # a tenth of the steps, of ten times


def test_a_batch_that_fits_is_left_as_it_is() -> None:
    tried: list[int] = []
    assert (
        halve_batch_until_it_fits(attempt_with_room_for(64, tried), training_config(batch_size=64), n_rows=1000) == 64
    )
    assert tried == [64]


def test_too_large_a_batch_is_halved_until_it_fits() -> None:
    tried: list[int] = []
    with pytest.warns(NAEWarning, match="do not fit into the device's memory; training begins again with") as said:
        found = halve_batch_until_it_fits(
            attempt_with_room_for(300, tried), training_config(batch_size=10**9), n_rows=2000
        )
    assert found == 250
    assert tried == [10**9, 1000, 500, 250]
    assert "Batches of 2,000 rows" in str(said[0].message)


def test_memory_that_is_too_small_for_anything_is_an_error() -> None:
    with (
        pytest.warns(NAEWarning, match="do not fit"),
        pytest.raises(TrainingError, match=r"too small even for batches of 31 rows \(CUDA out of memory"),
    ):
        halve_batch_until_it_fits(attempt_with_room_for(8, []), training_config(batch_size=62), n_rows=1000)
