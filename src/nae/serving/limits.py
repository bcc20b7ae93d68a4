"""How much one request, and all connections, may ask for."""

from dataclasses import dataclass

from nae.errors import ConfigError

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Limits of requests and connections; what is above gets 408, 413, 422 or 503, never memory."""

    max_rows: int = 10_000
    """Most rows to predict."""

    max_explained_rows: int = 1_000
    """Most rows to explain: an explanation is as large as all features times their causes."""

    max_body_bytes: int = 16_000_000
    """Most bytes of a body."""

    max_connections: int = 500
    """Most connections at once; fewer where the system allows the process few files. For `run_server`."""

    head_seconds: float = 10.0
    """How long the head of a request may take to arrive. For `run_server`."""

    body_seconds: float = 60.0
    """How long the body of a request may take to arrive, or a client to read on. For `run_server`."""

    def __post_init__(self) -> None:
        for name in ("max_rows", "max_explained_rows", "max_body_bytes", "max_connections"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1; got {getattr(self, name)}.")
        for name in ("head_seconds", "body_seconds"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} must be above 0; got {getattr(self, name)}.")
