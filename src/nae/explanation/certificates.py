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
    """Inputs that break a statement: two; three for a curve, from left to right; one for outputs that cross."""

    features: tuple[str, ...]
    inputs: tuple[tuple[Any, ...], ...]  # the values of all features; None is a missing value
    scores: tuple[float, ...]  # of the inputs; where outputs cross, that of the lower and of the upper one
    of: str  # what is compared: 'score', the feature whose contributions are, or the two outputs
    compared: tuple[float, ...]  # two scores or contributions; for a curve, the middle score and the straight line
    violation: float  # how far beyond the limit they are apart

    @property
    def first(self) -> tuple[Any, ...]:
        """The first input."""
        return self.inputs[0]

    @property
    def second(self) -> tuple[Any, ...]:
        """The last input."""
        return self.inputs[-1]

    @property
    def changed(self) -> tuple[str, ...]:
        """The features in which the inputs differ."""
        return tuple(name for name, *values in self._columns if any(value != values[0] for value in values))

    @property
    def sentence(self) -> str:
        """The counterexample in words."""
        changed = self.changed
        same = ", ".join(f"{name} = {shown_value(values[0])}" for name, *values in self._columns if name not in changed)
        moved = [(name, *map(shown_value, values)) for name, *values in self._columns if name in changed]
        where = f", with {same}" if same else ""
        one, other = (f"{value:.6g}" for value in self.compared)
        if len(self.inputs) == 1:
            return f"The scores of {self.of} are {one} and {other}{where}."
        if len(self.inputs) == 3:
            ((name, left, middle, right),) = moved
            return (
                f"At {name} = {middle}, the score is {one}; "
                f"on the straight line from {left} to {right}, it would be {other}{where}."
            )
        changes = ", ".join(f"{name} from {first} to {second}" for name, first, second in moved)
        what = "the score" if self.of == "score" else f"the contribution of {self.of}"
        return f"Changing {changes} takes {what} from {one} to {other}{where}."

    @property
    def _columns(self) -> list[tuple[Any, ...]]:
        return list(zip(self.features, *self.inputs, strict=True))


@dataclass(frozen=True)
class Certificate:
    """One statement and its verdict. All numbers are in units of the score."""

    kind: str  # monotone, max effect, isolated, unchanged, curved or ordered
    feature: str  # empty for a statement about outputs
    output: str  # the target or class, or two classes: 'a against b'
    claim: str  # the statement in words
    verdict: str  # proven, refuted or undecided
    limit: float  # the change that the statement allows
    bound: float  # the largest change that the tables allow, for any input; it may be infinite; negative: apart
    tolerance: float  # a violation up to this size counts as none
    rounding: float  # the most by which rounding changes a computed score
    found: float | None = None  # the largest change that the search found; None if the statement is proven
    counterexample: Counterexample | None = None
    way: str = ""  # increasing or decreasing, convex or concave

    @property
    def margin(self) -> float:
        """How far the bound is from a violation; negative if nothing is proven."""
        return self.limit + self.tolerance - self.bound

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if self.verdict == PROVEN:
            numbers = f"limit {self.limit:.4g}, tolerance {self.tolerance:.2g}, rounding {rounded_up(self.rounding)}"
            return f"Proven: {self.claim} For any input, {self._proof} ({numbers})."
        if self.counterexample is not None:
            return f"Refuted: {self.claim} {self.counterexample.sentence}"
        return (
            f"Undecided: {self.claim} The tables allow a change of up to {rounded_up(self.bound)}; "
            f"the largest that a search found is {self.found or 0.0:.4g}."
        )

    @property
    def _proof(self) -> str:
        """What the bound says, in words."""
        if self.kind == "ordered" and self.bound < 0:
            return f"they are at least {rounded_up(self.bound)[1:]} apart"
        what = {"ordered": "a crossing", "curved": "the distance from the line"}.get(self.kind, "the change")
        return f"{what} is at most {rounded_up(self.bound)}"


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
