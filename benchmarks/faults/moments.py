"""The moments at which a process is killed, and how it kills itself at an exact one."""

import builtins
import io
import os
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["AfterCall", "AfterSeconds", "AtByte", "Extent", "Moment", "arm", "draw_moment"]

_CALLS = ("open", "fsync", "replace", "rename", "unlink", "remove", "mkdir", "rmdir", "chmod", "link", "symlink")
_WRITES = frozenset("wax+")


@dataclass(frozen=True)
class AfterSeconds:
    """A time after the start of the work, at which the parent kills the process."""

    seconds: float


@dataclass(frozen=True)
class AfterCall:
    """Right after a call of the file system, counted from 1."""

    number: int


@dataclass(frozen=True)
class AtByte:
    """While a file grows beyond a number of bytes, which are still written."""

    size: int


Moment = AfterSeconds | AfterCall | AtByte


@dataclass(frozen=True)
class Extent:
    """The length of an undisturbed run, in three measures."""

    seconds: float
    n_calls: int
    largest: int
    """Size of the largest file that it left, in bytes."""


def draw_moment(random: np.random.Generator, extent: Extent, number: int) -> Moment:
    """Return a random moment within a run: half of them by the clock, the others at calls and at bytes."""
    if number % 4 == 1:
        return AfterCall(int(random.integers(1, extent.n_calls + 1)))
    if number % 4 == 3:
        return AtByte(int(random.integers(0, extent.largest)))
    return AfterSeconds(float(random.uniform(0, extent.seconds)))


def arm(moment: Moment | None) -> Callable[[], int]:
    """Make this process kill itself at a moment. Return a function that counts the calls so far."""
    if isinstance(moment, AtByte):  # the system writes up to the limit, and then ends the process
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (moment.size, moment.size))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    fatal = moment.number if isinstance(moment, AfterCall) else None
    n_calls = 0

    def counted(call: Callable[..., Any], *, counts: Callable[..., bool]) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **named: Any) -> Any:
            nonlocal n_calls
            found = call(*arguments, **named)
            if counts(*arguments, **named):
                n_calls += 1
                if n_calls == fatal:
                    os.kill(os.getpid(), signal.SIGKILL)
            return found

        return wrapper

    for name in _CALLS:
        setattr(os, name, counted(getattr(os, name), counts=lambda *_, **__: True))
    builtins.open = io.open = counted(open, counts=_is_to_write)
    return lambda: n_calls


def _is_to_write(_: Any, mode: str = "r", *__: Any, **___: Any) -> bool:
    return bool(_WRITES & set(mode))
