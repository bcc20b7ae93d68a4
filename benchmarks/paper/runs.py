"""A run of the paper: a table, a model, its settings, and a seed or a fold."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from nae.errors import FormatError

__all__ = ["DEFAULT", "PAPER", "TABLE", "Run", "Settings", "Value", "default_run", "is_ours", "paper_run", "settings"]

Value = float | int | str | None
Settings = tuple[tuple[str, Value], ...]

PAPER = "paper"
"""Our estimators with the paper's encoder, and the paper's hyper-parameters for the table."""
DEFAULT = "default"
"""Our estimators with their defaults."""
TABLE = "table"
"""No model: only the statistics of the table are computed."""

LONGEST = 120
"""Largest length of a folder's name. File systems allow about twice as many characters."""


def settings(**values: Value) -> Settings:
    """Return settings in sorted order, so that equal settings compare as equal."""
    return tuple(sorted(values.items()))


@dataclass(frozen=True)
class Run:
    """One fit. Equal runs of different experiments are the same run."""

    data: str
    """A simulation, or a table of ``benchmarks.datasets``."""
    model: str
    """'paper' or 'default' for our models; a model of ``benchmarks.models``; or 'table' for no model."""
    settings: Settings = ()
    """Settings that differ from the mode."""
    options: Settings = ()
    """Settings of the simulation."""
    seed: int = 0
    fold: int | None = None
    """The number of the test fold. None is the single split of the table."""
    is_timed: bool = False
    """Whether the run is timed. Such a run must not share the machine."""
    is_smoke: bool = False
    """Whether this is a smoke run: few generated rows and few epochs."""

    @property
    def path(self) -> str:
        """The path of its folder below the folder of runs."""
        which = f"seed-{self.seed}" if self.fold is None else f"fold-{self.fold}"
        first = "smoke/" if self.is_smoke else ""
        data, model = _slug(self.data, self.options), _slug(self.model, self.settings)
        return f"{first}{data}/{model}/{which}{'-timed' if self.is_timed else ''}"

    @property
    def is_first(self) -> bool:
        """Whether it is the first of its repetitions, which is drawn."""
        return self.seed == 0 and not self.fold

    def smoke(self) -> "Run":
        """Return the smoke version of the run."""
        return replace(self, is_smoke=True)

    def dumps(self) -> str:
        """Return the run as JSON."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> "Run":
        """Return the run in JSON values. An unknown key is an error."""
        known = {each.name for each in fields(cls)}
        if known != set(found):
            raise FormatError(f"A run must have the fields {sorted(known)}; got {sorted(found)}.")
        pairs = {name: tuple((key, value) for key, value in found[name]) for name in ("settings", "options")}
        return cls(**{**found, **pairs})


def paper_run(data: str, *, options: Settings = (), seed: int = 0, fold: int | None = None, **values: Value) -> Run:
    """Return a run of our model in paper mode."""
    return Run(data, PAPER, settings(**values), options, seed, fold)


def default_run(data: str, *, options: Settings = (), seed: int = 0, fold: int | None = None, **values: Value) -> Run:
    """Return a run of our model with its defaults."""
    return Run(data, DEFAULT, settings(**values), options, seed, fold)


def is_ours(run: Run) -> bool:
    """Whether it is one of our models."""
    return run.model in (PAPER, DEFAULT)


def _slug(name: str, values: Settings) -> str:
    """Return a name for a folder: the settings in words, or their digest if that is too long."""
    words = ".".join(f"{key}-{value}" for key, value in values)
    if len(words) > LONGEST:
        words = hashlib.sha256(words.encode()).hexdigest()[:12]
    return f"{name}.{words}" if words else name
