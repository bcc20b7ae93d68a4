"""The models that are served: read from a file or a folder, and replaced as a whole when a file changes.

A request gets its model once and keeps it, so a reload never changes an answer half-way. If a changed file cannot be
read, its previous model stays in service.
"""

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from nae.card import Card, make_card
from nae.errors import ConfigError, FormatError, NAEError
from nae.tables import TableModel, load

__all__ = ["Registry", "ServedModel", "file_state"]

_LOGGER = logging.getLogger("nae.serving")
_TRIES = 5  # how often to read a file again that changes while it is read

FileState = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class ServedModel:
    """One model in service."""

    name: str
    model: TableModel
    card: Card
    version: str  # the first digits of the file's SHA-256
    state: FileState


class Registry:
    """Models by name. Reading needs no lock, because the mapping is replaced and never changed."""

    def __init__(self, source: Path, models: Mapping[str, ServedModel], *, is_compiled: bool = False) -> None:
        self.source = source
        self.is_folder = source.is_dir()
        self._is_gone = False
        self._is_compiled = is_compiled
        self.n_reloads = 0
        self.n_failures = 0
        self._models: Mapping[str, ServedModel] = MappingProxyType(dict(models))
        self._failed: dict[str, FileState] = {}

    @staticmethod
    def open(source: str | Path, *, is_compiled: bool = False) -> "Registry":
        """Read a model file, or every ``*.nae`` of a folder. A file that cannot be read is an error.

        If ``is_compiled``, numba compiles every model: the server starts more slowly and answers faster.
        """
        path = Path(source)
        files = _files(path)
        if path.is_dir() and not files:
            raise ConfigError(f"The folder must hold model files (*.nae); {path} holds none.")
        if not path.exists():
            raise FormatError(f"No file is at {path}.")
        if path.is_dir():
            for file in files.values():
                _check_place(file)
        models = {name: _read(name, file, is_compiled=is_compiled) for name, file in files.items()}
        return Registry(path, models, is_compiled=is_compiled)

    @property
    def models(self) -> Mapping[str, ServedModel]:
        """The models that are in service now."""
        return self._models

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._models)

    def refresh(self) -> bool:
        """Read the files that have changed since the last look; return whether any has.

        The model of a new file is added, and the model of a removed file is taken out of service. The file of a single
        model may vanish for a moment while it is replaced, so it must be missing at two looks.
        """
        files = _files(self.source)
        was_gone, self._is_gone = self._is_gone, not files
        if self._is_gone and not (was_gone or self.is_folder):
            return False
        found: dict[str, ServedModel] = {}
        for name, file in files.items():
            before = self._models.get(name)
            after = self._read_changed(name, file, before)
            if after is not None:
                found[name] = after
        if dict(self._models) == found:
            return False
        self._models = MappingProxyType(found)
        self.n_reloads += 1
        return True

    def _read_changed(self, name: str, file: Path, before: ServedModel | None) -> ServedModel | None:
        try:
            state = file_state(file)
            if before is not None and before.state == state:
                return before
            if self._failed.get(name) == state:
                return before
            if self.is_folder:
                _check_place(file)
            after = _read(name, file, is_compiled=self._is_compiled)
        except Exception as error:  # an error in one file must not keep the others from being read
            known = isinstance(error, NAEError | OSError)
            _LOGGER.warning("%s is not loaded: %s%s", file, "" if known else f"{type(error).__name__}: ", error)
            self.n_failures += 1
            try:
                self._failed[name] = file_state(file)
            except OSError:
                self._failed.pop(name, None)
            return before
        _LOGGER.info("loaded %s, version %s", file, after.version)
        return after


def file_state(path: Path) -> FileState:
    """Return a stamp that changes with the file."""
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _files(source: Path) -> dict[str, Path]:
    if source.is_dir():
        return {file.stem: file for file in sorted(source.glob("*.nae")) if file.is_file()}
    return {source.stem: source} if source.exists() else {}


def _check_place(file: Path) -> None:
    if not file.resolve().is_relative_to(file.parent.resolve()):
        raise FormatError(f"A served file must lie in the folder; {file} is a link out of it.")


def _read(name: str, file: Path, *, is_compiled: bool) -> ServedModel:
    for _ in range(_TRIES):
        state = file_state(file)
        version = hashlib.sha256(file.read_bytes()).hexdigest()[:12]
        model = load(file)
        if file_state(file) == state:
            return ServedModel(name, model.compile() if is_compiled else model, make_card(model), version, state)
    raise FormatError(f"{file} changed {_TRIES} times while it was read.")
