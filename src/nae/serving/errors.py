"""The error of a request that cannot be answered."""

from typing import Any

__all__ = ["RequestError"]


class RequestError(Exception):
    """A request cannot be answered: the status, a sentence, and the place in the body."""

    def __init__(self, status: int, message: str, *, field: str | None = None, row: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.field, self.row = status, message, field, row

    def to_dict(self) -> dict[str, Any]:
        """Return the error as JSON values."""
        return {"error": self.message, "field": self.field, "row": self.row}
