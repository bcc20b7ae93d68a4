"""What happened in a training, epoch by epoch, as plain data."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from nae._words import counted

__all__ = ["ASKED", "Epoch", "History"]

ASKED = "asked to stop"


@dataclass(frozen=True)
class Epoch:
    """One pass over the training rows."""

    epoch: int
    loss: float
    validation: float | None
    additivity: float | None
    seconds: float


@dataclass
class History:
    """The epochs of a run, and how it ended."""

    epochs: list[Epoch] = field(default_factory=list)
    best_epoch: int = 0
    stopped: str = "ran all epochs"
    standard_error: float | None = None  # of the validation loss at the best epoch
    penalty: float | None = None  # the weight the dial ended at
    kept_share: float | None = None  # of what was learned beyond the start of a small table
    kept_validation: float | None = None  # the validation loss with that share

    def __len__(self) -> int:
        return len(self.epochs)

    def __repr__(self) -> str:
        return f"History({counted(len(self), 'epoch')}, the best is {self.best_epoch}; {self.stopped})"

    def __iter__(self) -> Iterator[Epoch]:
        return iter(self.epochs)

    def __getitem__(self, index: int) -> Epoch:
        return self.epochs[index]

    def column(self, name: str) -> list[Any]:
        """Return one quantity of all epochs: 'loss', 'validation', 'additivity' or 'seconds'."""
        return [getattr(epoch, name) for epoch in self.epochs]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        rows = [asdict(epoch) for epoch in self.epochs]
        return {
            "epochs": rows,
            "best_epoch": self.best_epoch,
            "stopped": self.stopped,
            "standard_error": self.standard_error,
            "penalty": self.penalty,
            "kept_share": self.kept_share,
            "kept_validation": self.kept_validation,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "History":
        """Return the history that :meth:`to_dict` made the values of."""
        return cls(**{**values, "epochs": [Epoch(**row) for row in values["epochs"]]})

    @property
    def was_asked_to_stop(self) -> bool:
        """Whether a callback ended the run."""
        return ASKED in self.stopped

    @property
    def best_validation(self) -> float | None:
        """The validation loss of what was kept: that of the best epoch, or of a share of it."""
        if self.kept_validation is not None:
            return self.kept_validation
        return self.epochs[self.best_epoch - 1].validation if self.epochs else None
