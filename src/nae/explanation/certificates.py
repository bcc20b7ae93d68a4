"""Certificates: for every statement about a model, whether its tables prove it, an input refutes it, or neither."""

from dataclasses import dataclass
from typing import Any, ClassVar

from nae._words import counted
from nae.explanation.inputs import rounded_up, shown_value
from nae.explanation.printed import digest
from nae.explanation.serial import Serial, make_frame

__all__ = ["Certificate", "Certificates", "Counterexample"]

PROVEN, REFUTED, UNDECIDED = "proven", "refuted", "undecided"


@dataclass(frozen=True)
class Counterexample:
    """Two inputs that break a statement. None is a missing value."""

    features: tuple[str, ...]
    first: tuple[Any, ...]  # the value of every feature
    second: tuple[Any, ...]
    scores: tuple[float, ...]  # of the two inputs
    of: str  # what is compared: 'score', or the feature whose contributions are
    compared: tuple[float, ...]  # the two scores or contributions
    violation: float  # how far beyond the limit they are apart

    @property
    def changed(self) -> tuple[str, ...]:
        """The features in which the two inputs differ."""
        pairs = zip(self.features, self.first, self.second, strict=True)
        return tuple(name for name, one, other in pairs if one != other)

    @property
    def sentence(self) -> str:
        """The counterexample in words."""
        rows = list(zip(self.features, self.first, self.second, strict=True))
        same = ", ".join(f"{name} = {shown_value(one)}" for name, one, other in rows if one == other)
        moved = ", ".join(
            f"{name} from {shown_value(one)} to {shown_value(other)}" for name, one, other in rows if one != other
        )
        what = "the score" if self.of == "score" else f"the contribution of {self.of}"
        where = f", with {same}" if same else ""
        return f"Changing {moved} takes {what} from {self.compared[0]:.6g} to {self.compared[1]:.6g}{where}."


@dataclass(frozen=True)
class Certificate:
    """One statement and its verdict. All numbers are in units of the score."""

    kind: str  # monotone, max effect, isolated or unchanged
    feature: str
    output: str  # the target or class, or two classes: 'a against b'
    claim: str  # the statement in words
    verdict: str  # proven, refuted or undecided
    limit: float  # the change that the statement allows
    bound: float  # the largest change that the tables allow, for any input; it may be infinite
    tolerance: float  # a violation up to this size counts as none
    rounding: float  # the most by which rounding changes a computed score
    found: float | None = None  # the largest change that the search found; None if the statement is proven
    counterexample: Counterexample | None = None

    @property
    def margin(self) -> float:
        """How far the bound is from a violation; negative if nothing is proven."""
        return self.limit + self.tolerance - self.bound

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if self.verdict == PROVEN:
            numbers = f"limit {self.limit:.4g}, tolerance {self.tolerance:.2g}, rounding {rounded_up(self.rounding)}"
            return f"Proven: {self.claim} For any input, the change is at most {rounded_up(self.bound)} ({numbers})."
        if self.counterexample is not None:
            return f"Refuted: {self.claim} {self.counterexample.sentence}"
        return (
            f"Undecided: {self.claim} The tables allow a change of up to {rounded_up(self.bound)}; "
            f"the largest that a search found is {self.found or 0.0:.4g}."
        )


@dataclass(frozen=True, eq=False)
class Certificates(Serial):
    """The verdicts on several statements."""

    type_name: ClassVar[str] = "certificates"

    certificates: tuple[Certificate, ...]

    def __len__(self) -> int:
        return len(self.certificates)

    def __getitem__(self, at: int) -> Certificate:
        return self.certificates[at]

    def __repr__(self) -> str:
        names = (PROVEN, REFUTED, UNDECIDED)
        counts = [f"{sum(one.verdict == name for one in self.certificates)} {name}" for name in names]
        title = f"Certificates({counted(len(self), 'statement')}: {', '.join(counts)})"
        return digest(
            title,
            {
                "statement": [one.claim for one in self.certificates],
                "verdict": [one.verdict for one in self.certificates],
                "limit": [f"{one.limit:.4g}" for one in self.certificates],
                "at most": [rounded_up(one.bound) for one in self.certificates],
                "found": ["" if one.found is None else f"{one.found:.4g}" for one in self.certificates],
            },
            "text, to_frame()",
        )

    @property
    def all_proven(self) -> bool:
        """Whether every statement is proven."""
        return all(one.verdict == PROVEN for one in self.certificates)

    @property
    def text(self) -> str:
        """One sentence per statement."""
        return "\n".join(one.sentence for one in self.certificates)

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame, one row per statement and output."""
        names = ("kind", "feature", "output", "claim", "verdict", "limit", "bound", "margin", "tolerance", "rounding")
        columns: dict[str, Any] = {name: [getattr(one, name) for one in self.certificates] for name in names}
        return make_frame(columns | {"sentence": [one.sentence for one in self.certificates]}, backend)
