"""Store each run in a folder: its configuration, its report, and a mark that it is complete.

::

    runs/<suite>/<dataset>/<model>/config.toml    what was asked for
                                   report.json    what came out
                                   influence.npy  what every test row adds to the error
                                   DONE           there is nothing left to do

The runs of other splits of the rows are other suites: ``suite-1``, ``suite-2``, ...
A run that failed has a report with the reason, but no mark, so that it is tried again.
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
"""If other processes use more than this share of the machine, a run counts as disturbed."""


@dataclass(frozen=True)
class RunConfig:
    """The configuration of a run."""

    suite: str
    dataset: str
    model: str
    threads: int = 2
    seed: int = 0
    n_trees: int = 3000
    device: str = "cpu"
    """The device of networks, including ours."""
    split: int = 0
    """The seed of the split. A suite has runs of one split."""

    def dumps(self) -> str:
        """Return the configuration as TOML."""
        return "".join(f"{name} = {json.dumps(value)}\n" for name, value in asdict(self).items())

    @classmethod
    def loads(cls, text: str) -> "RunConfig":
        """Return the configuration in a TOML text. An unknown key is an error."""
        found = tomllib.loads(text)
        known = {each.name for each in fields(cls)}
        if not known >= set(found):
            raise FormatError(f"config.toml must hold {sorted(known)} only; got {sorted(set(found) - known)} as well.")
        return cls(**found)


@dataclass(frozen=True)
class Report:
    """The report of a run. Scores that do not exist for the task are None."""

    dataset: str
    model: str
    outcome: Outcome
    reason: str = ""
    """The reason if there is no score."""
    rmse: float | None = None
    auc: float | None = None
    accuracy: float | None = None
    log_loss: float | None = None
    fit_seconds: float | None = None
    fit_processor_seconds: float | None = None
    """Processor time of all threads and workers, which is hardly longer on a busy machine."""
    predict_seconds: float | None = None
    """Time to predict all test rows at once, the median of a few repetitions."""
    peak_memory_mb: float | None = None
    """Peak memory of the whole process, with its libraries and the table, plus that of the largest worker."""
    memory_before_mb: float | None = None
    """Peak memory before the fit: that of libraries and table."""
    n_train: int = 0
    n_test: int = 0
    n_features: int = 0
    additivity: float | None = None
    """This metric and the next two are measured on test rows, if the model has them."""
    interaction_share: float | None = None
    cancellation: float | None = None
    threads: int = 0
    load_average: float = 0.0
    """Load of the machine in the minute before the run, including an earlier run."""
    foreign_load: float | None = None
    """Share of the processors that other processes used during the fit; None if unknown."""
    machine: str = ""
    """The machine. Costs of different machines are not compared."""
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def is_loaded(self) -> bool:
        """Whether other processes used so much of the machine that the seconds are not reliable."""
        return (self.foreign_load or 0.0) > LOADED

    @property
    def where(self) -> str:
        """The machine and the number of threads. Seconds of different places are not compared."""
        return f"{self.machine or 'unknown machine'}, {counted(self.threads, 'thread')}"

    def score(self, metric: str) -> float | None:
        """Return the score with the given name."""
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
        """Create an empty folder for a run, write its configuration, and return it."""
        folder = self.folder(config)
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("DONE", "report.json", "influence.npy"):
            (folder / name).unlink(missing_ok=True)
        (folder / "config.toml").write_text(config.dumps())
        return folder

    def finish(self, config: RunConfig, report: Report, influence: NDArray[np.float32] | None = None) -> None:
        """Write a report, and mark the run as complete if it has scores."""
        folder = self.folder(config)
        if influence is not None:
            np.save(folder / "influence.npy", influence)
        (folder / "report.json").write_text(report.dumps())
        if report.outcome == "done":
            (folder / "DONE").touch()

    def done(self, config: RunConfig, *, machine: str = "") -> Report | None:
        """Return the report of a complete run of this configuration, if there is one.

        A run on another machine may have had other threads and another device. Its scores count, but its seconds are
        not shown.
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
