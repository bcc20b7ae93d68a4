"""Connect to the Ray at an address, or start one on this machine for as long as it is needed."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nae._optional import require
from nae.errors import ConfigError

__all__ = ["LOCAL", "cause_of", "connect"]

LOCAL = "local"
"""The address that stands for a temporary Ray on this machine."""

_PATIENCE = 10.0  # seconds to wait for an answer; Ray itself would wait for minutes


@contextmanager
def connect(address: str | None = None, *, n_cpus: int | None = None) -> Iterator[Any]:
    """Yield the ``ray`` module, connected.

    An existing connection is reused and left open. With 'local' or None, a Ray without dashboard is started, which only
    this machine can reach, and is ended afterwards. With another address, that cluster is joined. Usage statistics are
    not sent.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address in (None, LOCAL):
        # Ray reads this variable on import. With 0, it listens only on the loopback address.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    ray = require("ray", extra="scale")
    if ray.is_initialized():
        yield ray
        return
    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if address in (None, LOCAL):
        fewest = 2 if os.cpu_count() == 1 else None  # one processor trains while the other one reads
        options |= {"address": LOCAL, "num_cpus": n_cpus or fewest, "include_dashboard": False}
    else:
        _check_reachable(str(address))
        options["address"] = address
    try:
        ray.init(**options)
    except ConnectionError as error:
        raise ConfigError(_nobody_at(address, error)) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raise an error if nothing answers at a host and port. Other kinds of addresses are left to Ray."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdigit()) or "/" in address:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(_nobody_at(address, error)) from error


def _nobody_at(address: str | None, error: Exception) -> str:
    reason = str(error).partition("\n")[0].rstrip(".")
    return f"A Ray must answer at the address; none answers at {address}: {reason}. 'ray start --head' starts one."


def cause_of(error: BaseException) -> BaseException:
    """Return the original error of a job without Ray's wrapping; other errors are returned unchanged."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, Exception) else error
