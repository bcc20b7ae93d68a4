"""Count the rows that cannot be parsed, and remember the first of them by file and row."""

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
    """The number of rows that were left out, and the first few of them."""

    count: int = 0
    first: list[BadRow] = field(default_factory=list)
    n_unknown: int = 0  # number of rows left out because a required value is missing

    def add(self, bad: BadRow) -> None:
        """Count a row."""
        self.count += 1
        if len(self.first) < _SHOWN:
            self.first.append(bad)

    def __str__(self) -> str:
        rest = "; …" if self.count > len(self.first) else ""
        return f"{counted(self.count, 'row')} left out that cannot be parsed: {'; '.join(map(str, self.first))}{rest}."
