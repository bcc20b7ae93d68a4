"""SufficientReasons: the fewest features that fix the decision about each row, in frames and sentences."""

from dataclasses import dataclass
from typing import Any, ClassVar

from nae._words import counted
from nae.explanation.printed import digest
from nae.explanation.serial import Serial, make_frame

__all__ = ["SufficientReason", "SufficientReasons"]


@dataclass(frozen=True)
class SufficientReason:
    """The features that fix the decision about one row."""

    decision: str
    features: tuple[str, ...]  # the one that gains most first
    values: tuple[str, ...]  # as texts
    n_features: int  # of the model
    is_smallest: bool  # whether there is proof that no fewer features fix the decision

    @property
    def sentence(self) -> str:
        """The reason in words."""
        n = len(self.features)
        if n == self.n_features:
            known = "No fewer features do" if self.is_smallest else "Fewer were not found to"
            return f"Only all {counted(n, 'feature')} together decide it: {self.decision}. {known}."
        if n == 0:
            return f"{self.decision[:1].upper()}{self.decision[1:]}, whatever the features are."
        pairs = [f"{name} = {value}" for name, value in zip(self.features, self.values, strict=True)]
        given = " and ".join([", ".join(pairs[:-1]), pairs[-1]] if n > 1 else pairs)
        verb = "decides" if n == 1 else "decide"
        rest = counted(self.n_features - n, "other feature")
        are = "is" if self.n_features - n == 1 else "are"
        text = f"{given} alone {verb} it: {self.decision}, whatever the {rest} {are}."
        return text if self.is_smallest else f"{text} It is not proven that fewer would not do."


@dataclass(frozen=True, eq=False)
class SufficientReasons(Serial):
    """The sufficient reasons of rows."""

    type_name: ClassVar[str] = "sufficient reasons"

    reasons: tuple[SufficientReason, ...]

    def __len__(self) -> int:
        return len(self.reasons)

    def __getitem__(self, row: int) -> SufficientReason:
        return self.reasons[row]

    def __repr__(self) -> str:
        columns: dict[str, list[str]] = {
            "row": [str(row) for row in range(len(self))],
            "decision": [one.decision for one in self.reasons],
            "decided by": [", ".join(one.features) or "nothing" for one in self.reasons],
            "smallest": ["proven" if one.is_smallest else "not proven" for one in self.reasons],
        }
        return digest(f"SufficientReasons({counted(len(self), 'row')})", columns, "text, to_frame()")

    @property
    def text(self) -> str:
        """One line per row."""
        return "\n".join(f"Row {row}: {one.sentence}" for row, one in enumerate(self.reasons, start=1))

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame, one row per row of the table."""
        columns: dict[str, list[object]] = {
            "row": list(range(len(self))),
            "decision": [one.decision for one in self.reasons],
            "n_features": [len(one.features) for one in self.reasons],
            "features": [", ".join(one.features) for one in self.reasons],
            "is_smallest": [one.is_smallest for one in self.reasons],
            "sentence": [one.sentence for one in self.reasons],
        }
        return make_frame(columns, backend)
