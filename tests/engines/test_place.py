"""Where a training takes place, what it would cost, and batches that fit."""

import ctypes
import importlib.util
import sys
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from nae.engines import (
    ENGINES,
    Place,
    choose_place,
    estimate_work,
    halve_batch_until_it_fits,
    make_engine,
    place,
)
from nae.errors import ConfigError, MissingDependencyError, NAEWarning, TrainingError
from nae.native import is_here, reason
from nae.training import TrainingConfig, make_loss
from nae.training.workers import Alone
from tests.configs import network_config, training_config
from tests.training.problems import Problem

LARGE, SMALL = 1e13, 1e8
LOSS = make_loss("squared")


class Two(Alone):
    count = 2


def attempt_with_room_for(room: int, tried: list[int]):
    def attempt(config: TrainingConfig) -> int:
        tried.append(config.batch_size)
        if config.batch_size > room:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB.\nGPU 0 has …")
        return config.batch_size

    return attempt


@dataclass(frozen=True)
class Machine:
    """What there is to train with."""

    gpu: bool
    torch: bool
    core: bool


MACHINES = [
    Machine(gpu, has_torch, core)
    for gpu in (False, True)
    for has_torch in (False, True)
    for core in (False, True)
    if has_torch or not gpu  # without torch nobody sees the GPU
]


@pytest.fixture
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Machine:
    found: Machine = request.param
    monkeypatch.setattr(torch.cuda, "is_available", lambda: found.gpu)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "H200")
    monkeypatch.setattr(
        "nae.engines.native.inputs.reason", lambda: "" if found.core else "the native core is not built"
    )
    if not found.torch:
        real = importlib.util.find_spec
        monkeypatch.setattr(
            "importlib.util.find_spec", lambda name, *rest: None if name == "torch" else real(name, *rest)
        )

        def refuse(name: str, *, extra: str) -> Any:
            raise MissingDependencyError(f"{name} is needed; pip install 'neural-additive-experts[{extra}]'")

        monkeypatch.setattr("nae.engines.place.require", refuse)
    place._may_have_gpu.cache_clear()
    monkeypatch.setattr("nae.engines.place._may_have_gpu", lambda: found.torch)
    return found


def chosen(engine: str = "auto", device: str = "auto", *, work: float = LARGE, **given: Any) -> Place:
    return choose_place(engine, device, **{"network": network_config(), "loss": LOSS, "work": work} | given)


def expected(machine: Machine, engine: str, device: str, *, pays: bool) -> tuple[str, str] | type[Exception]:
    """Return the engine and the device, or the error, in the words of the documentation."""
    wants_gpu = device.startswith("cuda")
    if engine == "native":
        if not machine.core:
            return ConfigError
        if wants_gpu:
            return ConfigError
        return "native", "cpu"
    if wants_gpu:
        if not machine.torch:
            return MissingDependencyError
        return ("torch", device) if machine.gpu else ConfigError
    if device == "auto" and machine.gpu and pays:
        return "torch", "cuda"
    if engine == "torch":
        return "torch", "cpu"  # making the engine says how to get torch
    if machine.core:
        return "native", "cpu"
    return ("torch", "cpu") if machine.torch else MissingDependencyError


@pytest.mark.parametrize("machine", MACHINES, indirect=True, ids=str)
@pytest.mark.parametrize("engine", ["auto", "native", "torch"])
@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:1"])
@pytest.mark.parametrize("work", [SMALL, LARGE], ids=["small", "large"])
def test_every_wish_on_every_machine_has_a_place_or_a_sentence(
    machine: Machine, engine: str, device: str, work: float
) -> None:
    wanted = expected(machine, engine, device, pays=work == LARGE)
    if isinstance(wanted, tuple):
        found = chosen(engine, device, work=work)
        assert (found.engine, found.device) == wanted
        assert found.reason
        return
    with pytest.raises(wanted) as caught:
        chosen(engine, device, work=work)
    assert str(caught.value).endswith((".", "'", "torch."))


@pytest.mark.parametrize("machine", [Machine(gpu=False, torch=True, core=True)], indirect=True)
def test_without_a_gpu_the_processor_trains(machine: Machine) -> None:
    found = chosen()
    assert (found.engine, found.device) == ("native", "cpu")
    assert found.reason.startswith("the native core is the fastest on a processor, and no GPU is there that pays")
    assert chosen(device="cpu").reason == "the native core is the fastest on a processor"
    with pytest.raises(ConfigError, match="device='cuda' needs a CUDA GPU"):
        chosen(device="cuda")


@pytest.mark.parametrize("machine", [Machine(gpu=True, torch=True, core=True)], indirect=True)
def test_a_gpu_is_used_where_it_pays_and_says_so(machine: Machine) -> None:
    large, small = chosen(), chosen(work=SMALL)
    assert (large.device, large.reason) == ("cuda", "the H200 is faster for a table of this size")
    assert small.device == "cpu"
    assert chosen(is_double=True).device == "cpu"
    assert chosen(engine="torch").device == "cuda"


@pytest.mark.parametrize("machine", [Machine(gpu=True, torch=True, core=True)], indirect=True)
def test_who_asks_for_a_device_gets_it(machine: Machine) -> None:
    assert chosen(device="cpu").device == "cpu"
    assert (chosen(device="cuda:1", work=1.0).device, chosen(device="cuda:1").reason) == ("cuda:1", "as asked for")
    with pytest.raises(ConfigError, match="device must be 'auto', 'cpu' or 'cuda'; got 'tpu'"):
        chosen(device="tpu", work=1.0)
    with pytest.raises(ConfigError, match="engine='native' trains on the processor; got device='cuda'"):
        chosen("native", "cuda")


@pytest.mark.parametrize("machine", [Machine(gpu=False, torch=True, core=True)], indirect=True)
@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"network": network_config(encoder="mlp")}, "does not know encoder='mlp'"),
        ({"workers": Two()}, "several workers"),
    ],
)
def test_what_the_core_cannot_train_is_left_to_torch(machine: Machine, given: dict[str, Any], complaint: str) -> None:
    found = chosen(**given)
    assert (found.engine, found.device) == ("torch", "cpu")
    assert complaint in found.reason
    with pytest.raises(ConfigError, match=f"engine='native' cannot train this: .*{complaint}.* Use engine='auto'"):
        chosen("native", **given)


@pytest.mark.parametrize("machine", [Machine(gpu=False, torch=False, core=True)], indirect=True)
def test_what_only_torch_can_train_says_so_where_it_is_not_installed(machine: Machine) -> None:
    with pytest.raises(MissingDependencyError, match=r"encoder='mlp', and torch is not installed. pip install"):
        chosen(network=network_config(encoder="mlp"))


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_is_made_for_a_place(name: str) -> None:
    if name == "native" and not is_here():
        pytest.skip(reason())
    with closing(make_engine(Place(name, "cpu", "for a test"), Problem().job())) as engine:
        assert engine.n_batches == 1
        assert type(engine).__module__ == f"nae.engines.{name}.engine"


def test_torch_is_not_asked_for_a_gpu_before_a_driver_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    place._may_have_gpu.cache_clear()
    monkeypatch.delitem(sys.modules, "torch")
    asked: list[str] = []

    def load(name: str) -> None:
        asked.append(name)
        if name != "nvcuda.dll":
            raise OSError

    monkeypatch.setattr(ctypes, "CDLL", load)
    assert place._may_have_gpu()
    assert asked[-1] == "nvcuda.dll"
    place._may_have_gpu.cache_clear()
    monkeypatch.setattr(place, "_DRIVERS", ("libcuda.so.1",))
    assert not place._may_have_gpu()
    place._may_have_gpu.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    assert not place._may_have_gpu()
    place._may_have_gpu.cache_clear()


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
