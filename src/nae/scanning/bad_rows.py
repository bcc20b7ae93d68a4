"""Rows that cannot be parsed: counted, and the first of them remembered by file and row."""

from dataclasses import dataclass, field

from nae._words import counted

__all__ = ["BadRow", "BadRows"]

_SHOWN = 5


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be parsed."""

    file: str
    row: int  # counted from 1, without the header
    reason: str

    def __str__(self) -> str:
        return f"row {self.row} of {self.file} {self.reason}"


@dataclass
class BadRows:
    """How many rows were left out, and which were the first."""

    count: int = 0
    first: list[BadRow] = field(default_factory=list)
    n_unknown: int = 0  # rows left out since they have no value where one was asked for

    def add(self, bad: BadRow) -> None:
        """Count a row."""
        self.count += 1
        if len(self.first) < _SHOWN:
            self.first.append(bad)

    def __str__(self) -> str:
        rest = "; …" if self.count > len(self.first) else ""
        return f"{counted(self.count, 'row')} left out that cannot be parsed: {'; '.join(map(str, self.first))}{rest}."
