"""Run the server: open a socket, serve on it with uvicorn, and end in order after a signal."""

import logging
import signal
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress

import uvicorn

from nae.errors import ConfigError
from nae.serving.app import make_app
from nae.serving.gate import hosts_of
from nae.serving.limits import Limits
from nae.serving.protocol import Throttle, make_protocol
from nae.serving.registry import Registry

__all__ = ["run_server"]

_BACKLOG = 64  # connections that are accepted at once, before one of them can be refused


def run_server(
    registry: Registry,
    limits: Limits | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    reload_seconds: float | None = 1.0,
    grace_seconds: float = 30.0,
    token: str | None = None,
    allow_hosts: Iterable[str] = (),
    announce: Callable[[str], None] | None = None,
    watches_drift: bool = False,
) -> None:
    """Serve until SIGTERM or SIGINT, then finish running requests and return.

    Parameters
    ----------
    registry
        The models.
    limits
        Limits of requests and connections.
    host, port
        Where to listen. Default: the loopback address. Port 0 chooses a free port.
    reload_seconds
        How often to look for changed files. If None, never.
    grace_seconds
        How long running requests may take after the signal.
    token
        The bearer token that requests must send, except to /healthz. If None, no token is required.
    allow_hosts
        Host names that requests may use. On a loopback address, its own names are accepted too, and all others are
        refused. On other addresses, any name is accepted if none is given here.
    announce
        A function that is called with the address once it is known.
    watches_drift
        Whether /metrics compares the rows that were asked for a prediction with the training rows of their model.
    """
    limits, host = limits or Limits(), host.strip("[]")  # an IPv6 address stands in brackets in a URL
    app = make_app(
        registry,
        limits,
        reload_seconds=reload_seconds,
        token=token,
        hosts=hosts_of(host, allow_hosts),
        watches_drift=watches_drift,
    )
    config = uvicorn.Config(
        app,
        http=make_protocol(limits, _most_connections(limits)),
        ws="none",
        backlog=_BACKLOG,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=max(1, round(grace_seconds)),
        server_header=False,
    )
    listener = _listen(host, port)
    throttles = [(logging.getLogger(name), Throttle()) for name in ("uvicorn.error", "asyncio", "nae.serving")]
    try:
        for logger, throttle in throttles:
            logger.addFilter(throttle)
        if announce is not None:
            address = listener.getsockname()
            shown = f"[{address[0]}]" if ":" in address[0] else address[0]
            announce(f"http://{shown}:{address[1]}")
        # uvicorn raises the signal again when it has stopped, but an orderly stop is not a failure.
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(ValueError):  # not the main thread: the caller handles signals
                signal.signal(number, lambda *_: None)
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        listener.close()
        for logger, throttle in throttles:
            logger.removeFilter(throttle)


def _most_connections(limits: Limits) -> int:
    """Return the limit, or less if the system allows few open files: some are reserved for files and refusals."""
    try:
        from resource import RLIMIT_NOFILE, getrlimit
    except ImportError:  # Windows has no such limit
        return limits.max_connections
    files = getrlimit(RLIMIT_NOFILE)[0]
    return limits.max_connections if files < 0 else max(1, min(limits.max_connections, files - 3 * _BACKLOG))


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        raise ConfigError(f"Nothing can listen on {host}:{port}; {error.strerror or error}.") from error
    return listener
