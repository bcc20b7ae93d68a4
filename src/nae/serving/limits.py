"""How much one request may ask for."""

from dataclasses import dataclass

from nae.errors import ConfigError

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Limits of one request; what is above gets 413 or 422, never memory."""

    max_rows: int = 10_000
    """Most rows to predict."""

    max_explained_rows: int = 1_000
    """Most rows to explain: an explanation is as large as all features times their causes."""

    max_body_bytes: int = 16_000_000
    """Most bytes of a body."""

    def __post_init__(self) -> None:
        for name in ("max_rows", "max_explained_rows", "max_body_bytes"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1; got {getattr(self, name)}.")
