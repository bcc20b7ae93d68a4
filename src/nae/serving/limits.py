"""Limits of requests and connections."""

from dataclasses import dataclass

from nae.errors import ConfigError

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Limits of requests and connections. Larger or slower requests are rejected with 408, 413, 422 or 503."""

    max_rows: int = 10_000
    """Largest number of rows to predict in one request."""

    max_explained_rows: int = 1_000
    """Largest number of rows to explain in one request. The size of an explanation is features times causes."""

    max_body_bytes: int = 16_000_000
    """Largest size of a body, in bytes. Larger bodies are rejected before they are read."""

    max_connections: int = 500
    """Largest number of connections at once; fewer if the system allows few open files. Used by `run_server`."""

    head_seconds: float = 10.0
    """How long the head of a request may take to arrive. Used by `run_server`."""

    body_seconds: float = 60.0
    """How long the body of a request, or the reading of an answer, may take. Used by `run_server`."""

    def __post_init__(self) -> None:
        for name in ("max_rows", "max_explained_rows", "max_body_bytes", "max_connections"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1; got {getattr(self, name)}.")
        for name in ("head_seconds", "body_seconds"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} must be above 0; got {getattr(self, name)}.")
