"""What ``nae doctor`` says about engines agrees with what a fit takes."""

import importlib.metadata

import pytest

import nae
from nae.cli import engines
from nae.native import library

CORE = "The native core is built; it uses AVX2 instructions and 3 threads."


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch):
    """Return a function that says what a machine has."""

    def make(*, core: bool, torch: bool, gpus: tuple[str, ...] = (), sklearn: bool = True) -> engines.EngineFacts:
        here = {"torch": torch, "sklearn": sklearn}
        missing = "" if core else "the native core is not built; `make` builds it"
        monkeypatch.setattr(engines, "reason", lambda: missing)
        monkeypatch.setattr(engines, "best_instructions", lambda: "AVX2")
        monkeypatch.setattr(engines, "count_threads", lambda: 3)
        monkeypatch.setattr(engines, "_is_installed", here.__getitem__)
        monkeypatch.setattr(engines, "_gpus", lambda: list(gpus))
        return engines.engine_facts()

    return make


def test_the_core_alone_trains(machine) -> None:
    found = machine(core=True, torch=False)
    assert found.native == CORE
    assert found.torch == (
        "torch is not installed; only GPUs and encoder='mlp' need it: pip install 'neural-additive-experts[gpu]'"
    )
    assert found.gpu == "No GPU is used: torch is missing."
    assert found.auto == "engine='auto' takes the native core, because it is the fastest on a processor."


def test_a_gpu_takes_large_tables(machine) -> None:
    found = machine(core=True, torch=True, gpus=("A", "B"))
    assert found.gpu == "GPU: A, B."
    assert found.torch == f"torch {importlib.metadata.version('torch')} is installed."
    assert found.auto.startswith("engine='auto' takes torch on the GPU for large tables")
    assert found.auto.endswith("and the native core for all others.")


def test_without_the_core_torch_trains(machine) -> None:
    found = machine(core=False, torch=True)
    assert found.native == "The native core is not built; `make` builds it."
    assert found.auto == "engine='auto' takes torch, because the native core is missing."
    assert machine(core=False, torch=True, gpus=("A",)).auto.endswith("and torch on the processor for all others.")


def test_without_any_engine_nothing_trains(machine) -> None:
    assert "nothing trains: the native core and torch are both missing" in machine(core=False, torch=False).auto
    found = machine(core=True, torch=False, sklearn=False)
    assert "nothing trains without scikit-learn: pip install 'neural-additive-experts[train]'" in found.auto


def test_it_reads_this_machine() -> None:
    found = engines.engine_facts()
    if library.reason():
        assert library.reason()[1:] in found.native
    else:
        assert library.best_instructions() in found.native


def test_a_fit_takes_the_engine_that_is_named() -> None:
    X, y = nae.datasets.multimodal(60)
    fitted = nae.NAERegressor(n_members=1, max_epochs=1, random_state=0).fit(X, y)
    words = {
        "native": ("takes the native core", "and the native core for"),
        "torch": ("takes torch, because", "and torch on"),
    }
    assert any(word in engines.engine_facts().auto for word in words[fitted.model_.training.engine])
