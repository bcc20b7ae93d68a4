"""Measure what a run used of the machine, and what other processes used meanwhile."""

import os
import platform
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ForeignLoad", "describe", "peak_memory_mb", "processor_seconds"]

_PROC = Path("/proc")


def describe(device: str = "cpu") -> str:
    """Return a short description of the machine, with its GPU if networks are trained there."""
    version = platform.python_version()
    found = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors, Python {version}"
    if device.startswith("cuda"):
        import torch

        found += f", {torch.cuda.get_device_name(device)}"
    return found


def peak_memory_mb() -> float:
    """Return the peak memory of this process so far, plus that of each of its workers."""
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, kilobytes elsewhere
    here, ended = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    workers = sum(_peak_kilobytes(worker) for worker in _workers())
    return (here * unit + max(workers * 1024, ended * unit)) / 1e6


def processor_seconds() -> float:
    """Return the processor time of this process and its workers so far, which hardly depends on other processes."""
    ours = os.times()
    workers = sum(worker.ticks for worker in _workers()) / os.sysconf("SC_CLK_TCK")
    return ours.user + ours.system + ours.children_user + ours.children_system + workers


class ForeignLoad:
    """The load of other processes: all processor time minus our own. Linux only."""

    def __init__(self) -> None:
        self._start = _foreign_seconds()

    def since(self, seconds: float) -> float | None:
        """Return the share of all processors that others used since the start, ``seconds`` ago."""
        now = _foreign_seconds()
        if now is None or self._start is None or seconds <= 0:
            return None
        return max(0.0, (now - self._start) / (seconds * (os.cpu_count() or 1)))


@dataclass(frozen=True)
class _Process:
    folder: Path
    parent: int
    ticks: int


def _foreign_seconds() -> float | None:
    if not (_PROC / "stat").exists():
        return None
    user, nice, system = (int(ticks) for ticks in (_PROC / "stat").read_text().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK") - processor_seconds()


def _workers() -> Iterator[_Process]:
    """Yield the living children of this process."""
    for path in _PROC.glob("[0-9]*/stat"):
        try:
            # The name of a program may contain blanks, but the text after its closing bracket does not.
            rest = path.read_text().rpartition(")")[2].split()
        except OSError:  # the process has just ended
            continue
        process = _Process(path.parent, parent=int(rest[1]), ticks=int(rest[11]) + int(rest[12]))
        if process.parent == os.getpid():
            yield process


def _peak_kilobytes(process: _Process) -> int:
    try:
        lines = (process.folder / "status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
