"""A training that is cut short goes on as if nothing had happened."""

import errno
import os
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from nae.engines import ENGINES
from nae.errors import FormatError
from nae.native import is_here, reason
from nae.network import Network
from nae.training import History, loop, make_loss, train
from nae.training.checkpoint import RunState, read_state, write_state
from nae.training.history import Epoch
from nae.training.start import fit_start
from tests.configs import training_config
from tests.training.problems import N_ROWS, Problem

QUICK = {"batch_size": 16, "warmup_steps": 1, "least_steps": 0, "evaluate_every": 1, "schedule": "cosine"}


class FileCheckpoints:
    """Keeps the last state in a file; fails after some epochs, as a machine would."""

    def __init__(self, path: Path, fails_after: int | None = None) -> None:
        self.path, self.fails_after = path, fails_after

    def latest(self) -> RunState | None:
        return read_state(self.path) if self.path.exists() else None

    def save(self, state: RunState, epoch: Epoch) -> None:
        write_state(self.path, state)
        if epoch.epoch == self.fails_after:
            raise ConnectionError


def fit(
    checkpoints: FileCheckpoints | None,
    *,
    engine: str = "torch",
    dropout: float = 0.0,
    is_begun: bool = False,
    **given: object,
) -> tuple[Network, History]:
    problem = Problem(dropout=dropout)
    network, rows = problem.network(), problem.folded(np.arange(N_ROWS) % 4)
    if is_begun:
        own_fold, n_slots = np.arange(2), network.n_slots
        start = fit_start(rows, problem.schema, make_loss("squared"), own_fold=own_fold, n_slots=n_slots)
        network = network.begin_at(start)
    config = training_config(**QUICK | {"max_epochs": 12, **given})
    with closing(ENGINES[engine](problem.job(rows, network=network, config=config), "cpu")) as one:
        history = train(one, config, checkpoints=checkpoints)
        return one.network, history


def different_arrays(network: Network, expected: Network) -> list[str]:
    """Return the names of arrays that only one network has, or that differ."""
    names = network.arrays.keys() ^ expected.arrays.keys()
    both = network.arrays.keys() & expected.arrays.keys()
    return sorted(names | {name for name in both if not np.array_equal(network.arrays[name], expected.arrays[name])})


@pytest.fixture(params=["torch", "native"])
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "native" and not is_here():
        pytest.skip(reason())
    return str(request.param)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"additivity": 0.9},
        {"schedule": "plateau", "patience": 2, "learning_rate": 0.05},
        {"schedule": "plateau", "patience": 2, "learning_rate": 0.05, "averaged_steps": 8},
        {"dropout": 0.3},
    ],
    ids=["cosine", "dial", "plateau", "averaged", "dropout"],
)
def test_a_training_cut_short_ends_where_it_would_have(tmp_path: Path, engine: str, config: dict[str, object]) -> None:
    config = {"engine": engine, **config}
    expected, history = fit(None, **config)
    path = tmp_path / "state.safetensors"
    with pytest.raises(ConnectionError):
        fit(FileCheckpoints(path, fails_after=5), **config)
    network, resumed = fit(FileCheckpoints(path), **config)
    assert (resumed.best_epoch, resumed.stopped) == (history.best_epoch, history.stopped)
    assert resumed.column("loss") == history.column("loss")
    assert resumed.column("validation") == history.column("validation")
    assert different_arrays(network, expected) == []


def test_what_counts_as_progress_is_measured_at_the_start_also_when_a_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.setattr(loop, "_GAIN", 1.0)  # so much that it decides which epoch is the best one
    config = {"engine": engine, "is_begun": True, "learning_rate": 0.05}
    expected, history = fit(None, **config)
    path = tmp_path / "state.safetensors"
    with pytest.raises(ConnectionError):
        fit(FileCheckpoints(path, fails_after=6), **config)
    network, resumed = fit(FileCheckpoints(path), **config)
    assert resumed.best_epoch == history.best_epoch
    assert different_arrays(network, expected) == []


def test_a_state_takes_the_place_of_the_one_before_it_only_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.safetensors"
    write_state(path, RunState({"weight": np.ones(3)}, {"epoch": 1}))

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):  # noqa: PT012
        patch.setattr(os, "fsync", fail)
        write_state(path, RunState({"weight": np.zeros(3)}, {"epoch": 2}))
    assert read_state(path).values == {"epoch": 1}
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_seconds_go_on_too(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    with pytest.raises(ConnectionError):
        fit(FileCheckpoints(path, fails_after=5))
    seconds = fit(FileCheckpoints(path))[1].column("seconds")
    assert seconds == sorted(seconds)


def test_only_looked_at_epochs_leave_a_state(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    with pytest.raises(ConnectionError):
        fit(FileCheckpoints(path, fails_after=6), evaluate_every=3)
    assert len(read_state(path).values["history"]["epochs"]) == 6


def test_another_file_is_not_the_state_of_a_training(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    path.write_bytes(b"something else")
    with pytest.raises(FormatError, match="is not the state of a training"):
        read_state(path)


def test_the_names_in_a_state_are_the_same_for_every_engine(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "state.safetensors"
    config = {"schedule": "plateau", "averaged_steps": 8, "additivity": 0.9, "dropout": 0.3}
    with pytest.raises(ConnectionError):
        fit(FileCheckpoints(path, fails_after=5), engine=engine, **config)
    state = read_state(path)
    schedule = {"cooling_from", "cooling_steps", "cooling_reason"}
    assert set(state.values) == {"n_steps", "random", *schedule, "best", "history"}
    names = {name.split("/")[0] for name in state.arrays}
    needed = {"network", "optimiser", "mean", "noise", "dial"}
    assert needed <= names <= {*needed, "best"}
    assert {name for name in state.arrays if name.startswith("dial/")} == {"dial/log_gamma", "dial/running"}
    assert "network/expert_weight" in state.arrays
    assert "optimiser/0/exp_avg" in state.arrays
