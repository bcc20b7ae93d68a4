"""Kill workers of a Ray fit at random times: the fit must finish with the same model as an undisturbed one."""

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.parquet

from benchmarks.faults.rows import SETTINGS, make_table
from benchmarks.faults.trial import Found
from nae.errors import NAEError
from nae.scale import connect, fit_ray
from nae.tables import TableModel
from nae.tables.archive import describe

__all__ = ["NAME", "Killer", "attack_workers"]

NAME = "Ray worker"
_EPOCHS = 8
_N_WORKERS = 2


@dataclass(frozen=True)
class Killer:
    """A callback that ends one worker once, some seconds after the start of an epoch, like the loss of a machine."""

    mark: Path
    rank: int
    epoch: int
    seconds: float

    def __call__(self, *, epoch: int, **_: Any) -> None:
        from ray.train import get_context

        if get_context().get_world_rank() == self.rank and epoch == self.epoch and not self.mark.exists():
            threading.Timer(self.seconds, self._kill).start()

    def _kill(self) -> None:
        self.mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def attack_workers(*, n_kills: int, seed: int) -> Found:
    """Kill a worker in each of ``n_kills`` fits, and compare their models with that of an undisturbed fit."""
    random = np.random.default_rng(seed)
    os.environ.setdefault("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "300")
    losses: list[str] = []
    with connect(n_cpus=2 * _N_WORKERS), TemporaryDirectory() as folder:
        place = Path(folder)
        pyarrow.parquet.write_table(make_table(2000), place / "rows.parquet")
        began = time.monotonic()
        expected = _fit(place, "undisturbed", lambda **_: None)
        seconds = time.monotonic() - began
        for number in range(n_kills):
            rank, epoch = int(random.integers(_N_WORKERS)), int(random.integers(1, _EPOCHS))
            killer = Killer(place / f"killed-{number}", rank, epoch, float(random.uniform(0, 0.2)))
            losses += [f"{killer}: {loss}" for loss in _kill_one(place, killer, expected)]
    return Found(NAME, n_kills, 0, tuple(losses), seconds)


def _kill_one(place: Path, killer: Killer, expected: TableModel) -> list[str]:
    try:
        found = _fit(place, killer.mark.name, killer)
    except NAEError as error:
        return [f"the fit ended: {error}"]
    if not killer.mark.exists():
        return ["nobody was killed"]
    return [] if _are_equal(found, expected) else ["the model is another"]


def _fit(place: Path, name: str, callback: Callable[..., None]) -> TableModel:
    return fit_ray(
        place / "rows.parquet",
        "price",
        {**SETTINGS, "max_epochs": _EPOCHS, "callbacks": [callback]},
        _N_WORKERS,
        storage_path=str(place / "runs"),
        name=name,
    )


def _are_equal(one: TableModel, two: TableModel) -> bool:
    (head, arrays), (other_head, others) = describe(one), describe(two)
    return head == other_head and all(np.array_equal(arrays[key], others[key], equal_nan=True) for key in others)
