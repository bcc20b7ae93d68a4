"""Checkpoints through Ray Train: the first worker writes the state to the storage of the run."""

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs

from nae import errors
from nae._optional import require
from nae.errors import ConfigError, NAEError, TrainingError
from nae.tables import TableModel, load
from nae.training.checkpoint import RunState, read_state, write_state
from nae.training.history import Epoch

__all__ = ["RayCheckpoints", "open_storage", "read_model", "report_error", "report_model"]

_STATE = "state.safetensors"
_MODEL = "model.nae"
_ERROR = "error.json"


def open_storage(path: str | None) -> tuple[str | None, Any]:
    """Return a path and its file system for Ray, for folders and for URIs that Arrow or fsspec knows.

    If the file system is None, Ray finds Arrow's by itself.
    """
    if path is None:
        return None, None
    if "://" not in path:
        return str(Path(path).absolute()), None
    try:
        pa.fs.FileSystem.from_uri(path)
    except pa.ArrowInvalid:  # Arrow does not know this kind of storage
        try:
            system, inner = require("fsspec", extra="scale").core.url_to_fs(path)
        except (ValueError, ImportError) as error:
            raise ConfigError(f"storage_path must be a folder or a URI that Arrow or fsspec knows; {error}.") from error
        return inner, pa.fs.PyFileSystem(pa.fs.FSSpecHandler(system))
    except OSError as error:
        raise ConfigError(f"storage_path must be one that can be reached; {path} cannot: {error}.") from error
    return path, None


class RayCheckpoints:
    """States in the storage of a Ray run. Every worker must use it, because Ray waits for all of them."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def latest(self) -> RunState | None:
        found = require("ray.train", extra="scale").get_checkpoint()
        if found is None:
            return None
        with found.as_directory() as folder:
            path = Path(folder) / _STATE
            return read_state(path) if path.exists() else None  # a run that has ended starts again

    def save(self, state: RunState, epoch: Epoch) -> None:
        with tempfile.TemporaryDirectory() as folder:
            if self.rank == 0:
                write_state(Path(folder) / _STATE, state)
            _report(folder, rank=self.rank, metrics=asdict(epoch))


def report_model(model: TableModel, *, rank: int) -> None:
    """Write the finished model as the last checkpoint of the run."""
    with tempfile.TemporaryDirectory() as folder:
        if rank == 0:
            model.save(Path(folder) / _MODEL)
        _report(folder, rank=rank, metrics={"n_epochs": model.training.n_epochs})


def report_error(error: NAEError, *, rank: int) -> None:
    """Write an error in the data or the settings as the last checkpoint of the run."""
    with tempfile.TemporaryDirectory() as folder:
        if rank == 0:
            content = {"kind": type(error).__name__, "message": str(error)}
            (Path(folder) / _ERROR).write_text(json.dumps(content), encoding="utf-8")
        _report(folder, rank=rank, metrics={})


def read_model(result: Any) -> TableModel:
    """Return the model of a run, or raise its error."""
    if result.checkpoint is None:
        raise TrainingError(f"The run left no model ({result.error}); its files are at {result.path}.")
    with result.checkpoint.as_directory() as folder:
        complaint = Path(folder) / _ERROR
        if complaint.exists():
            content = json.loads(complaint.read_text(encoding="utf-8"))
            raise getattr(errors, content["kind"])(content["message"])
        return load(Path(folder) / _MODEL)


def _report(folder: str, *, rank: int, metrics: dict[str, Any]) -> None:
    train = require("ray.train", extra="scale")
    train.report(metrics, checkpoint=train.Checkpoint.from_directory(folder) if rank == 0 else None)
