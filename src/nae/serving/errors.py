"""What a request is told that cannot be answered."""

from typing import Any

__all__ = ["RequestError"]


class RequestError(Exception):
    """A request that cannot be answered: the status, a sentence, and where in the body it is wrong."""

    def __init__(self, status: int, message: str, *, field: str | None = None, row: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.field, self.row = status, message, field, row

    def to_dict(self) -> dict[str, Any]:
        """Return the complaint as JSON values."""
        return {"error": self.message, "field": self.field, "row": self.row}
