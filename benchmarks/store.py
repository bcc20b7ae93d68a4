"""A run is a folder: what was asked for, what came out, and a mark that it is complete.

::

    runs/<suite>/<dataset>/<model>/config.toml    what was asked for
                                   report.json    what came out
                                   influence.npy  what every test row adds to the error
                                   DONE           there is nothing left to do

The runs of another split of the rows are another suite: ``suite-1``, ``suite-2``, ...
A run that failed has a report that says why and no mark, so that it is tried again.
"""

import json
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nae._words import counted
from nae.errors import FormatError

__all__ = ["Outcome", "Report", "RunConfig", "Store"]

Outcome = Literal["done", "failed", "unavailable"]
LOADED = 0.1
"""Share of the machine that others may use before a run counts as disturbed."""


@dataclass(frozen=True)
class RunConfig:
    """What a run is asked for."""

    suite: str
    dataset: str
    model: str
    threads: int = 2
    seed: int = 0
    n_trees: int = 3000
    device: str = "cpu"
    """Where networks are trained, ours included."""
    split: int = 0
    """The seed by which rows are divided; a suite holds runs of one split."""

    def dumps(self) -> str:
        """Return the configuration as TOML."""
        return "".join(f"{name} = {json.dumps(value)}\n" for name, value in asdict(self).items())

    @classmethod
    def loads(cls, text: str) -> "RunConfig":
        """Return the configuration in a TOML text; a key that is not known is an error."""
        found = tomllib.loads(text)
        known = {each.name for each in fields(cls)}
        if not known >= set(found):
            raise FormatError(f"config.toml must hold {sorted(known)} only; got {sorted(set(found) - known)} as well.")
        return cls(**found)


@dataclass(frozen=True)
class Report:
    """What came out of a run. Scores that the task does not have are None."""

    dataset: str
    model: str
    outcome: Outcome
    reason: str = ""
    """Why there is no score."""
    rmse: float | None = None
    auc: float | None = None
    accuracy: float | None = None
    log_loss: float | None = None
    fit_seconds: float | None = None
    fit_processor_seconds: float | None = None
    """Of all threads and workers together: hardly longer on a busy machine."""
    predict_seconds: float | None = None
    """All test rows at once, the median of a few times."""
    peak_memory_mb: float | None = None
    """Of the whole process, with its libraries and the table; of workers, the largest one is added."""
    n_train: int = 0
    n_test: int = 0
    n_features: int = 0
    additivity: float | None = None
    """This and the next two, where the model has them, on test rows."""
    interaction_share: float | None = None
    cancellation: float | None = None
    threads: int = 0
    load_average: float = 0.0
    """Of the last minute, when the run began; a run that came before counts in it."""
    foreign_load: float | None = None
    """Share of the processors that other processes used while the model was fitted; None where it is not known."""
    machine: str = ""
    """Costs of different machines are not shown beside each other."""
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def is_loaded(self) -> bool:
        """Whether others used so much of the machine that the seconds say little."""
        return (self.foreign_load or 0.0) > LOADED

    @property
    def where(self) -> str:
        """The machine and the threads: seconds of one place do not stand beside those of another."""
        return f"{self.machine or 'unknown machine'}, {counted(self.threads, 'thread')}"

    def score(self, metric: str) -> float | None:
        """Return the score of that name."""
        value: float | None = getattr(self, metric)
        return value

    def dumps(self) -> str:
        """Return the report as JSON."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def loads(cls, text: str) -> "Report":
        """Return the report in a JSON text."""
        found = json.loads(text)
        known = {each.name for each in fields(cls)}
        if not isinstance(found, dict) or not known >= set(found):
            raise FormatError("report.json must hold the fields of a report only; it holds something else.")
        return cls(**found)


@dataclass(frozen=True)
class Store:
    """The folder of all runs."""

    root: Path

    def folder(self, config: RunConfig) -> Path:
        """Return the folder of a run."""
        return self.root / config.suite / config.dataset / config.model

    def begin(self, config: RunConfig) -> Path:
        """Make the folder of a run anew, with its configuration, and return it."""
        folder = self.folder(config)
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("DONE", "report.json", "influence.npy"):
            (folder / name).unlink(missing_ok=True)
        (folder / "config.toml").write_text(config.dumps())
        return folder

    def finish(self, config: RunConfig, report: Report, influence: NDArray[np.float32] | None = None) -> None:
        """Keep a report; mark the run as complete if it has scores."""
        folder = self.folder(config)
        if influence is not None:
            np.save(folder / "influence.npy", influence)
        (folder / "report.json").write_text(report.dumps())
        if report.outcome == "done":
            (folder / "DONE").touch()

    def done(self, config: RunConfig, *, machine: str = "") -> Report | None:
        """Return the report of a complete run of this configuration, if there is one.

        A run of another machine than the one named may have had other threads and another device: its seconds are not
        shown, and its scores are as good.
        """
        folder = self.folder(config)
        if not (folder / "DONE").exists():
            return None
        found, report = (
            RunConfig.loads((folder / "config.toml").read_text()),
            Report.loads((folder / "report.json").read_text()),
        )
        if machine and report.machine and report.machine != machine:
            found = replace(found, threads=config.threads, device=config.device)
        return report if found == config else None

    def reports(self, suite: str) -> Iterator[Report]:
        """Yield the reports of a suite, failed ones included."""
        for path in sorted((self.root / suite).glob("*/*/report.json")):
            yield Report.loads(path.read_text())

    def influences(self, suite: str) -> dict[tuple[str, str], NDArray[np.float32]]:
        """Return the influences of a suite's complete runs, by data set and model."""
        folders = [path.parent for path in sorted((self.root / suite).glob("*/*/DONE"))]
        found = {(folder.parent.name, folder.name): folder / "influence.npy" for folder in folders}
        return {key: np.load(path) for key, path in found.items() if path.exists()}
