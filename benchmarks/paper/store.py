"""Store finished runs on disk, and all of them in two small files of the repository.

::

    runs/paper/<data>/<model>/<seed or fold>/run.json             what was asked for
                                             report.json          what came out
                                             explanation.json.gz  curves and maps, for the figures
                                             DONE                 there is nothing left to do

    benchmarks/results/paper/reports.json                         every report
    benchmarks/results/paper/explanations.json.gz                 the explanations that are drawn
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from benchmarks.paper.runs import Run
from nae.errors import FormatError

__all__ = ["KEPT", "Archive", "Report", "RunStore"]

KEPT = Path("benchmarks/results/paper")
"""The folder of the reports in the repository."""


@dataclass(frozen=True)
class Report:
    """The result of a run. Entries that a model does not have are None."""

    run: Run
    is_done: bool = True
    reason: str = ""
    """The reason, if it failed."""
    rmse: float | None = None
    auc: float | None = None
    validation: float | None = None
    """The same score on the validation rows, if the model was not fitted to them."""
    additivity: float | None = None
    """This metric and the next five are measured on training rows, with the values of a feature in 64 bins."""
    additivity_by_value: float | None = None
    """The same, with a bin for every distinct value."""
    additivity_floored: float | None = None
    """The same, with δ a hundredth of the score's variance: features with tiny contributions count as additive."""
    tightness: float | None = None
    interaction_share: float | None = None
    cancellation: float | None = None
    fit_seconds: float | None = None
    n_parameters: int | None = None
    parameters_mb: float | None = None
    device_memory_mb: float | None = None
    """Peak memory of torch on the device."""
    best_epoch: int | None = None
    n_epochs: int | None = None
    table_error: float | None = None
    n_train: int = 0
    n_test: int = 0
    n_features: int = 0
    n_categorical: int | None = None
    """This entry and the next one are statistics of a table; 0 classes for numbers."""
    n_classes: int | None = None
    device: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    def score(self, name: str) -> float | None:
        """Return the number with the given name."""
        value: float | None = getattr(self, name)
        return value

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, without entries of None."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> "Report":
        """Return the report in JSON values."""
        known = {each.name for each in fields(cls)}
        if not known >= set(found) or "run" not in found:
            raise FormatError(f"A report must have fields of {sorted(known)}; got {sorted(found)}.")
        return cls(**{**found, "run": Run.from_dict(found["run"])})


@dataclass(frozen=True)
class RunStore:
    """The folder of all runs."""

    root: Path

    def folder(self, run: Run) -> Path:
        """Return the folder of a run."""
        return self.root / "paper" / run.path

    def begin(self, run: Run) -> Path:
        """Create an empty folder for a run and return it."""
        folder = self.folder(run)
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("DONE", "report.json", "explanation.json.gz"):
            (folder / name).unlink(missing_ok=True)
        (folder / "run.json").write_text(run.dumps())
        return folder

    def finish(self, report: Report, explanation: Mapping[str, Any] | None = None) -> None:
        """Write a report, and mark the run as complete if it succeeded."""
        folder = self.folder(report.run)
        if explanation is not None:
            _write_gzip(folder / "explanation.json.gz", explanation)
        (folder / "report.json").write_text(json.dumps(report.to_dict(), indent=1) + "\n")
        if report.is_done:
            (folder / "DONE").touch()

    def is_done(self, run: Run) -> bool:
        """Whether the run is complete."""
        return (self.folder(run) / "DONE").exists()

    def reports(self) -> Iterator[Report]:
        """Yield the reports of all runs, failed ones included."""
        for path in sorted((self.root / "paper").rglob("report.json")):
            yield Report.from_dict(json.loads(path.read_text()))

    def explanation(self, run: Run) -> dict[str, Any] | None:
        """Return the explanation of a run, if it has one."""
        path = self.folder(run) / "explanation.json.gz"
        return _read_gzip(path) if path.exists() else None


@dataclass(frozen=True)
class Archive:
    """Reports and explanations in two files."""

    folder: Path

    def reports(self) -> Iterator[Report]:
        """Yield the kept reports."""
        path = self.folder / "reports.json"
        if path.exists():
            yield from (Report.from_dict(found) for found in json.loads(path.read_text()))

    def explanations(self) -> dict[str, dict[str, Any]]:
        """Return the kept explanations by the paths of their runs."""
        path = self.folder / "explanations.json.gz"
        return _read_gzip(path) if path.exists() else {}

    def write(self, reports: Iterable[Report], explanations: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace the kept reports by these, one per line."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(report.to_dict()) for report in sorted(reports, key=lambda report: report.run.path)]
        (self.folder / "reports.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
        _write_gzip(self.folder / "explanations.json.gz", dict(sorted(explanations.items())))


def _write_gzip(path: Path, content: Mapping[str, Any]) -> None:
    # The file has no time stamp, so that the same content gives the same bytes.
    path.write_bytes(gzip.compress(json.dumps(content, separators=(",", ":")).encode(), mtime=0))


def _read_gzip(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return found
