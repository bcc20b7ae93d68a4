"""How much changes between two models: at most, for any input, and on rows."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from nae._words import counted
from nae.errors import UserError, did_you_mean
from nae.explanation.inputs import rounded_up, shown_value
from nae.explanation.printed import digest
from nae.explanation.serial import Serial, make_frame

__all__ = ["Change", "ChangeCertificate", "RowChange", "RowChanges"]

SCORE = "score"


@dataclass(frozen=True)
class Change:
    """How much the score, or the contribution of a feature, changes from the first model to the second.

    All numbers are in units of the score.
    """

    feature: str | None  # None: the score
    output: str  # the target or class, or two classes: 'a against b'
    title: str  # what changes, in words
    lower: float  # for any input, the second value minus the first is at least this
    upper: float  # and at most this
    rounding: float  # the most by which rounding changes the difference of two computed values
    features: tuple[str, ...]
    example: tuple[Any, ...]  # the input with the largest change that a search found; None is a missing value
    values: tuple[float, ...]  # of the example in the two models

    @property
    def of(self) -> str:
        """What changes: a feature's contribution, or the score."""
        return self.feature or SCORE

    @property
    def bound(self) -> float:
        """The largest change for any input, up or down, proven from the tables."""
        return max(abs(self.lower), abs(self.upper))

    @property
    def found(self) -> float:
        """The size of the largest change that a search found."""
        return abs(self.values[1] - self.values[0])

    @property
    def sentence(self) -> str:
        """The change in words."""
        if self.bound == 0:
            return f"The {self.title} is the same for any input."
        at = ", ".join(
            f"{name} = {shown_value(value)}" for name, value in zip(self.features, self.example, strict=True)
        )
        return (
            f"The {self.title} changes by at most {rounded_up(self.bound)} for any input. The largest change found is "
            f"{self.found:.4g}, from {self.values[0]:.6g} to {self.values[1]:.6g}, at {at}."
        )


@dataclass(frozen=True, eq=False)
class ChangeCertificate(Serial):
    """How much changes between two models, proven for any input; ``certificate["income"]`` is that of a feature."""

    type_name: ClassVar[str] = "changes"

    changes: tuple[Change, ...]  # of the score and of all features, for every output
    link: str

    def __len__(self) -> int:
        return len(self.changes)

    def __getitem__(self, feature: str) -> Change:
        """Return the change of a feature's contribution; of several outputs, the largest."""
        return max(_those_of(feature, self.changes), key=lambda one: one.bound)

    @property
    def score(self) -> Change:
        """The change of the score; of several outputs, the largest."""
        return max(_those_of(None, self.changes), key=lambda one: one.bound)

    def __repr__(self) -> str:
        title = f"ChangeCertificate(score: at most {rounded_up(self.bound)}, found {self.found:.4g})"
        return digest(title, _columns(self.changes, ("of", "output", "bound", "found")), "text, to_frame()")

    @property
    def bound(self) -> float:
        """The largest change of any score, for any input."""
        return self.score.bound

    @property
    def found(self) -> float:
        """The largest change of a score that a search found."""
        return max(one.found for one in _those_of(None, self.changes))

    @property
    def prediction_sentence(self) -> str:
        """What the bound of the score says about predictions; empty if they are the score."""
        if self.link == "log":
            factor = rounded_up(math.exp(min(self.bound, 700.0)))
            return f"A prediction changes by a factor of at most {factor}."
        if self.link == "logit":
            return f"A probability changes by at most {rounded_up(math.tanh(self.bound / 4))}."
        return ""

    @property
    def text(self) -> str:
        """One sentence per change."""
        return "\n".join(
            [one.sentence for one in self.changes] + [self.prediction_sentence] * (self.link != "identity")
        )

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame, one row per output, for the score and each feature."""
        names = ("of", "output", "lower", "upper", "bound", "found", "rounding", "sentence")
        return make_frame(_columns(self.changes, names), backend)


@dataclass(frozen=True)
class RowChange:
    """How much the score, or the contribution of a feature, changes on rows, in units of the score."""

    feature: str | None  # None: the score
    output: str
    mean: float  # of the sizes of the changes
    largest: float
    row: int  # with the largest change, counted from 0

    @property
    def of(self) -> str:
        """What changes: a feature's contribution, or the score."""
        return self.feature or SCORE


@dataclass(frozen=True, eq=False)
class RowChanges(Serial):
    """How much changes between two models on given rows."""

    type_name: ClassVar[str] = "row changes"

    changes: tuple[RowChange, ...]
    n_rows: int

    def __getitem__(self, feature: str) -> RowChange:
        """Return the change of a feature's contribution; of several outputs, the largest."""
        return max(_those_of(feature, self.changes), key=lambda one: one.largest)

    @property
    def score(self) -> RowChange:
        """The change of the score; of several outputs, the largest."""
        return max(_those_of(None, self.changes), key=lambda one: one.largest)

    def __repr__(self) -> str:
        title = f"RowChanges({counted(self.n_rows, 'row')}; score: at most {self.largest:.4g})"
        return digest(title, _columns(self.changes, ("of", "output", "mean", "largest")), "to_frame()")

    @property
    def largest(self) -> float:
        """The largest change of any score on any of the rows."""
        return self.score.largest

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame, one row per output, for the score and each feature."""
        return make_frame(_columns(self.changes, ("of", "output", "mean", "largest", "row")), backend)


AnyChange = TypeVar("AnyChange", Change, RowChange)


def _those_of(feature: str | None, changes: tuple[AnyChange, ...]) -> list[AnyChange]:
    found = [one for one in changes if one.feature == feature]
    if not found:
        known = dict.fromkeys(one.feature for one in changes if one.feature is not None)
        raise UserError(f"No feature is called {feature!r}.{did_you_mean(str(feature), known)}")
    return found


def _columns(changes: tuple[AnyChange, ...], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: [getattr(one, name) for one in changes] for name in names}
