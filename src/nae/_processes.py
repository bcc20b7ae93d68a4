"""Name processes by machine and number, for the files they leave behind; and count processors and threads."""

import hashlib
import os
import re
import socket
from pathlib import Path

__all__ = ["count_processors", "count_threads", "is_gone", "machine", "this_process"]

_NAME = re.compile(r"([0-9a-f]{8})-(\d+)")
_LIMITS = Path("/sys/fs/cgroup")  # what a container may use; the names of the files changed with the second version
_LIMIT_FILES = (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))


def machine() -> str:
    """Return a short name of this machine."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def this_process() -> str:
    """Return a name of this process: its machine and its number."""
    return f"{machine()}-{os.getpid()}"


def is_gone(name: str) -> bool:
    """Return whether a process of this machine has ended. A process of another machine counts as running."""
    found = _NAME.fullmatch(name)
    if found is None or found[1] != machine() or os.name != "posix":  # on other systems this call would end the process
        return False
    try:
        os.kill(int(found[2]), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:  # the process belongs to another user
        return False
    return False


def count_processors() -> int:
    """Return how many processors this process may use: those it is bound to, or fewer if its container may."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for names in _LIMIT_FILES:
        try:
            quota, period = map(int, " ".join((_LIMITS / name).read_text() for name in names).split())
        except (OSError, ValueError):  # there is no such file, or it says 'max'
            continue
        if quota > 0 and period > 0:
            return min(own, -(-quota // period))
    return own


def count_threads() -> int:
    """Return how many threads this process may use: its processors, or fewer if ``OMP_NUM_THREADS`` says so.

    joblib and other libraries set that variable in the processes that they start side by side.
    """
    own = count_processors()
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return min(own, max(1, int(asked))) if asked.isdecimal() else own
