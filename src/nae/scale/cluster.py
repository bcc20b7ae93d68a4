"""A Ray to work with: the one at an address, or one of our own on this machine for as long as it is needed."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nae._optional import require
from nae.errors import ConfigError

__all__ = ["LOCAL", "cause_of", "connect"]

LOCAL = "local"
"""The address of a Ray on this machine, started for the occasion."""

_PATIENCE = 10.0  # seconds to wait for an answer; Ray itself asks for minutes


@contextmanager
def connect(address: str | None = None, *, n_cpus: int | None = None) -> Iterator[Any]:
    """Yield the ``ray`` module, connected.

    A connection that is there already is used and left alone. 'local' (or None) starts a Ray that only this machine
    can reach, without dashboard, and ends it afterwards; other addresses are joined. Nothing is sent to Ray's makers.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address in (None, LOCAL):
        # The name of the switch is Ray's: nodes of a cluster or, with 0, this machine's loopback alone. Read on import.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    ray = require("ray", extra="scale")
    if ray.is_initialized():
        yield ray
        return
    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if address in (None, LOCAL):
        fewest = 2 if os.cpu_count() == 1 else None  # one trains while one reads
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
    """Complain when nobody answers at a host and port; other addresses are read by Ray alone."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdigit()) or "/" in address:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(_nobody_at(address, error)) from error


def _nobody_at(address: str | None, error: Exception) -> str:
    reason = str(error).partition("\n")[0].rstrip(".")
    return f"A Ray must answer at the address; at {address} none does: {reason}. 'ray start --head' starts one."


def cause_of(error: BaseException) -> BaseException:
    """Return what went wrong in a job, without the words of Ray around it; other errors as they are."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, Exception) else error
