"""Checkpoints: the whole state of a training in one safetensors file, so that it can go on elsewhere."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import safetensors
import safetensors.numpy

from nae._files import write_whole
from nae._typing import AnyArray
from nae.errors import FormatError
from nae.network import below
from nae.training.history import Epoch

__all__ = [
    "Checkpoints",
    "RunState",
    "read_state",
    "with_prefix",
    "without_prefix",
    "write_state",
]

_KEY = "values"


@dataclass(frozen=True)
class RunState:
    """Everything a training needs to go on after an epoch."""

    arrays: Mapping[str, AnyArray]
    values: Mapping[str, Any]
    """JSON values."""


class Checkpoints(Protocol):
    """A place that states are written to and read from."""

    def latest(self) -> RunState | None:
        """Return the state to go on from, or None to start at the beginning."""

    def save(self, state: RunState, epoch: Epoch) -> None:
        """Keep the state that a training has after an epoch."""


def write_state(path: Path, state: RunState) -> None:
    """Write a state to a file, whole or not at all: the state before it is there until it is."""
    arrays = {name: np.asarray(array, order="C") for name, array in state.arrays.items()}  # keeps single numbers
    write_whole(path, safetensors.numpy.save(arrays, {_KEY: json.dumps(state.values)}))


def read_state(path: Path) -> RunState:
    """Read a state from a file."""
    try:
        with safetensors.safe_open(path, "np") as file:
            values = json.loads((file.metadata() or {})[_KEY])
            return RunState({name: file.get_tensor(name) for name in file.keys()}, values)  # noqa: SIM118
    except (KeyError, ValueError, safetensors.SafetensorError) as error:
        raise FormatError(f"{path} is not the state of a training ({error!r}).") from error


def with_prefix(prefix: str, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return arrays under longer names."""
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def without_prefix(prefix: str, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return the arrays whose names begin with a prefix, without it."""
    return below(f"{prefix}/", arrays)
